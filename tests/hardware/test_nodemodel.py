import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.errors import NodeModelError
from gpustow.hardware.faults import GpuLost, MigReconfigured, SlowNvml, XidFault
from gpustow.hardware.links import Link, PcieLevel
from gpustow.hardware.node import FabricIdentity, Platform
from gpustow.hardware.nodemodel import NodeModel, load_node_model, parse_node_model, shipped_models

GPU = "name: n\ngpus: [{model: NVIDIA A100-SXM4-40GB, count: 2"


def _model(text: str) -> NodeModel:
    return parse_node_model(text, "node.yaml")


def _problems(text: str) -> dict[str, str]:
    with pytest.raises(NodeModelError) as caught:
        _model(text)
    assert caught.value.source == "node.yaml"
    assert caught.value.exit_code == 4
    messages: dict[str, str] = {}
    for problem in caught.value.problems:
        messages[problem.path] = messages.get(problem.path, "") + problem.message
    return messages


@pytest.mark.parametrize(
    ("name", "gpus", "model", "scores"),
    [
        ("a100-4-mig-5", 4, "NVIDIA A100-SXM4-40GB", (420, 410)),
        ("dgx-1-v100", 8, "Tesla V100-SXM2-16GB", (150, 10)),
        ("dgx-a100", 8, "NVIDIA A100-SXM4-40GB", (1240, 1210)),
        ("hgx-h100", 8, "NVIDIA H100 80GB HBM3", (1820, 1810)),
        ("t4-4", 4, "Tesla T4", (30, 30)),
    ],
)
def test_a_shipped_model_is_the_machine_it_names(name: str, gpus: int, model: str, scores: tuple[int, int]) -> None:
    loaded = load_node_model(name)
    matrix = loaded.node.links.scores(range(gpus))
    assert loaded.name == name
    assert {gpu.model for gpu in loaded.node.gpus} == {model}
    assert len(loaded.node.gpus) == gpus
    assert (matrix[0][1], matrix[0][gpus - 1]) == scores


def test_the_model_with_mig_has_five_devices_on_each_of_four_gpus() -> None:
    node = load_node_model("a100-4-mig-5").node
    assert [[device.profile.name for device in gpu.mig_devices] for gpu in node.gpus] == [["1g.5gb"] * 5] * 4
    assert len({device.uuid for gpu in node.gpus for device in gpu.mig_devices}) == 20


@pytest.mark.parametrize("name", shipped_models())
def test_a_shipped_model_says_what_it_is(name: str) -> None:
    model = load_node_model(name)
    assert model.description
    assert model.source == f"{name} (shipped)"
    assert model.name == name


def test_uuids_are_the_same_on_every_machine() -> None:
    node = load_node_model("a100-4-mig-5").node
    assert node.gpus[0].uuid == "GPU-131efaff-9345-511a-a42e-2981f1a33eb6"
    assert node.gpus[0].mig_devices[0].uuid == "MIG-af4a1837-f330-5042-8883-ff5001187fbb"


def test_bus_ids_that_are_not_given_keep_away_from_those_that_are() -> None:
    node = _model("name: n\ngpus: [{model: Tesla T4, count: 2}, {model: Tesla T4, pciBusId: '0000:01:00.0'}]").node
    assert [gpu.pci_bus_id for gpu in node.gpus] == ["00000000:01:01.0", "00000000:02:00.0", "00000000:01:00.0"]


def test_a_high_index_has_a_bus_id_as_well() -> None:
    (gpu,) = _model("name: n\ngpus: [{model: Tesla T4, index: 300}]").node.gpus
    assert gpu.pci_bus_id == "00000001:2D:00.0"


def test_the_gpu_of_a_tegra_board_is_not_on_pci() -> None:
    assert [gpu.pci_bus_id for gpu in load_node_model("jetson-orin").node.gpus] == [""]


def test_a_model_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("name: mine\ngpus: []\n")
    assert load_node_model(str(file)).name == "mine"


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xfa"])
def test_a_file_that_cannot_be_read_is_told_with_what_is_shipped(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "node.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(NodeModelError, match="cannot be read") as caught:
        load_node_model(str(file))
    assert "dgx-a100" in str(caught.value)


def test_where_a_file_is_silent_the_rest_follows_from_the_model_and_the_index() -> None:
    first, second = _model(f"{GPU}}}]").node.gpus
    assert (second.index, second.minor, second.pci_bus_id) == (1, 1, "00000000:02:00.0")
    assert second.device_paths == ("/dev/nvidia1",)
    assert (second.memory_bytes, second.compute_capability) == (40960 << 20, (8, 0))
    assert second.numa_node is None
    assert (second.mig_capable, second.mig_enabled, second.memory_slices) == (True, False, 8)
    assert first.uuid != second.uuid


def test_everything_about_a_gpu_can_be_given() -> None:
    node = _model(
        """
        name: odd
        platform: nvml
        driverVersion: 550.90.07
        cudaVersion: 12.10
        gpus:
          - model: NVIDIA Something New
            memory: 10GiB
            computeCapability: 12.1
            memorySlices: 4
            index: 3
            uuid: GPU-mine
            pciBusId: 0a:00.0
            minor: 7
            numaNode: 2
            fabric: {clusterUuid: 11111111-2222-3333-4444-555555555555, clique: 2}
            migProfiles:
              - {name: 2g.5gb+gfx, memoryMiB: 5000, memorySlices: 2, placements: [0, 2], maxCount: 2, profileId: 5,
                 nvmlProfile: 11, multiprocessors: 9}
            mig:
              devices:
                - {profile: 1c.2g.5gb+gfx, uuid: MIG-mine, start: 2, gpuInstance: 4, computeInstance: 3,
                   memory: 4999MiB, devicePaths: [/dev/a, /dev/b]}
        """
    ).node
    (gpu,) = node.gpus
    assert (node.driver_version, node.cuda_version) == ("550.90.07", "12.10")
    assert (gpu.index, gpu.uuid, gpu.pci_bus_id, gpu.minor) == (3, "GPU-mine", "00000000:0A:00.0", 7)
    assert (gpu.memory_bytes, gpu.compute_capability, gpu.numa_node) == (10 << 30, (12, 1), 2)
    assert gpu.device_paths == ("/dev/nvidia7",)
    assert gpu.fabric == FabricIdentity("11111111-2222-3333-4444-555555555555", 2)
    (device,) = gpu.mig_devices
    assert (device.uuid, device.start, device.gpu_instance, device.compute_instance) == ("MIG-mine", 2, 4, 3)
    assert (device.memory_bytes, device.device_paths) == (4999 << 20, ("/dev/a", "/dev/b"))
    assert device.profile.name == "1c.2g.5gb+gfx"
    assert (device.profile.profile_id, device.profile.nvml_profile, device.profile.multiprocessors) == (5, 11, 4)


def test_values_go_to_the_gpus_of_a_group_one_for_all_or_one_for_each() -> None:
    node = _model(f"{GPU}, numaNode: 1, index: [4, 2], mig: [{{devices: [7g.40gb]}}, {{enabled: false}}]}}]").node
    assert [(gpu.index, gpu.numa_node, len(gpu.mig_devices)) for gpu in node.gpus] == [(2, 1, 0), (4, 1, 1)]


def test_groups_count_on_from_one_another() -> None:
    node = _model(
        "name: n\ngpus: [{model: Tesla T4, count: 2}, {model: NVIDIA A10, index: 5}, {model: NVIDIA L4}]"
    ).node
    assert [(gpu.index, gpu.model) for gpu in node.gpus] == [
        (0, "Tesla T4"),
        (1, "Tesla T4"),
        (5, "NVIDIA A10"),
        (6, "NVIDIA L4"),
    ]


@pytest.mark.parametrize(("platform", "paths"), [("nvml", ("/dev/nvidia0",)), ("wsl", ("/dev/dxg",)), ("tegra", ())])
def test_device_nodes_follow_the_platform(platform: str, paths: tuple[str, ...]) -> None:
    node = _model(f"name: n\nplatform: {platform}\ngpus: [{{model: Orin (nvgpu)}}]").node
    assert node.platform is Platform(platform)
    assert node.gpus[0].device_paths == paths
    assert node.gpus[0].memory_bytes is None


def test_links_can_be_given_as_matrices_that_differ_by_direction() -> None:
    text = f"{GPU}}}]\nlinks: {{pcie: [X PIX, '? X'], nvlinks: [X 2, [1, X]], nvswitchLinks: [6, 4]}}"
    assert _model(text).node.links.table() == {
        (0, 1): Link(PcieLevel.SINGLE_SWITCH, 6),
        (1, 0): Link(None, 5),
    }


def test_a_random_fabric_takes_its_seed_from_the_file() -> None:
    one, two = (_model(f"{GPU}}}]\nlinks: {{fabric: random, seed: {seed}}}").fabric for seed in (1, 2))
    assert one != two


def test_faults_are_typed_values_on_a_schedule() -> None:
    model = _model(
        f"""{GPU}}}]
faults:
  - {{fault: xid, after: 10, gpu: 1, code: 79, gpuInstance: 7, computeInstance: 0}}
  - {{fault: lost, after: 1m, gpu: 0, for: 2 s}}
  - {{fault: slow, after: 1h, delay: 250ms, for: 5s}}
  - {{fault: slow, after: 0.5s, delay: 1s}}
  - {{fault: mig, after: 3s, gpu: 1, devices: [3g.20gb, 3g.20gb]}}
  - {{fault: mig, after: 4s, gpu: 1, enabled: false}}
"""
    )
    xid, lost, slow, slower, cut, uncut = model.faults
    assert xid == XidFault(10.0, 1, 79, 7, 0)
    assert lost == GpuLost(60.0, 0, 2.0)
    assert slow == SlowNvml(3600.0, 0.25, 5.0)
    assert slower == SlowNvml(0.5, 1.0)
    assert isinstance(cut, MigReconfigured)
    assert [device.gpu_instance for device in cut.devices] == [1, 2]
    assert uncut == MigReconfigured(4.0, 1, enabled=False, devices=())


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("", "", "this has to be a mapping"),
        ("- 1", "", "this has to be a mapping"),
        ("a: [", "", "it is not YAML"),
        ("gpus: []", "name", "this key has to be given"),
        ("name: ''\ngpus: []", "name", "this key has to be given"),
        ("name: a/b\ngpus: []", "name", "this has to match ^"),
        ("name: n", "gpus", "this key has to be given"),
        ("name: n\ngpus: 4", "gpus", "this has to be a list (found '4')"),
        ("name: n\ngpus: [{model: Tesla T4, count: 0}]", "gpus[0].count", "this has to be at least 1 (found '0')"),
        ("name: n\ngpus: [{model: Tesla T4, count: 1.5}]", "gpus[0].count", "this has to be a whole number (found"),
        ("name: n\ngpus: [{model: Tesla T4, uuid: ['']}]", "gpus[0].uuid[0]", "this may not be empty"),
        (
            "name: n\ngpus: [{model: NVIDIA A30, mig: {enabled: perhaps}}]",
            "gpus[0].mig.enabled",
            "this has to be true or false (found 'perhaps')",
        ),
        ("name: n\ngpus: [4]", "gpus[0]", "this has to be a mapping of keys to values (found '4')"),
        ("name: n\nGPUS: []\ngpus: []", "GPUS", "there is no such key; did you mean gpus?"),
        ("name: n\ngpus: []\nxyz: 1", "xyz", "there is no such key; there are: name, "),
        ("name: n\ngpus: []\nplatform: mars", "platform", "'nvml', 'tegra' or 'wsl' (found 'mars')"),
        (f"{GPU}, numaNodes: 1}}]", "gpus[0].numaNodes", "did you mean numaNode?"),
        (
            f"{GPU}, numaNode: a}}]",
            "gpus[0].numaNode",
            "a whole number (found 'a')",
        ),
        (f"{GPU}, numaNode: [0, -2]}}]", "gpus[0].numaNode[1]", "at least -1 (found '-2')"),
        (f"{GPU}, numaNode: [0, 1, 2]}}]", "gpus[0].numaNode", "2 values, one a GPU; there are 3"),
        (f"{GPU}, uuid: GPU-a}}]", "gpus[0].uuid", "2 values, one a GPU; there are 1"),
        (f"{GPU}, uuid: [GPU-a, GPU-a]}}]", "gpus", "two GPUs have the UUID GPU-a"),
        (f"{GPU}, index: [3, 3]}}]", "gpus", "two GPUs have the index 3"),
        (f"{GPU}, memory: lots}}]", "gpus[0].memory", "an amount such as 40960MiB"),
        (f"{GPU}, pciBusId: [a, 01:00.0]}}]", "gpus[0].pciBusId[0]", "a PCI bus id such as 0000:07:00.0 (found 'a')"),
        (f"{GPU}, computeCapability: x}}]", "gpus[0].computeCapability", "a compute capability such as 8.0"),
        (f"{GPU}, mig: {{devices: [1g.6gb]}}}}]", "gpus[0].mig.devices[0]", "did you mean 1g.5gb?"),
        (
            f"{GPU}, mig: [{{}}, {{devices: [1g.5gb, {{profile: 1g.5gb, count: 7}}]}}]}}]",
            "gpus[0].mig[1].devices[1]",
            "no room for another 1g.5gb",
        ),
        (f"{GPU}, mig: {{enabled: false, devices: [1g.5gb]}}}}]", "gpus[0].mig", "while MIG is not enabled"),
        (
            f"{GPU}, mig: {{devices: [{{profile: 1g.5gb, count: 2, uuid: MIG-a}}]}}}}]",
            "gpus[0].mig.devices[0]",
            "a count goes with a profile alone",
        ),
        (
            f"{GPU}, mig: {{devices: [{{profile: 1g.5gb, uuid: MIG-a}}]}}}}]",
            "gpus",
            "two MIG devices have the UUID MIG-a",
        ),
        ("name: n\ngpus: [{model: Tesla T4, mig: {}}]", "gpus[0].mig", "GPU 0 has no MIG"),
        ("name: n\ngpus: [{model: Tesla T5}]", "gpus[0].model", "did you mean 'Tesla T4'?"),
        ("name: n\ngpus: [{model: qqq}]", "gpus[0].model", "computeCapability has to be given"),
        (f"{GPU}}}]\nlinks: {{}}", "links", "say either `fabric`"),
        (f"{GPU}}}]\nlinks: {{fabric: hgx, nvlinks: []}}", "links", "say either `fabric`"),
        (f"{GPU}}}]\nlinks: {{fabric: hgxx}}", "links.fabric", "did you mean hgx?"),
        (f"{GPU}}}]\nlinks: {{fabric: qqq}}", "links.fabric", "there are: dgx-1-v100"),
        (f"{GPU}}}]\nlinks: {{fabric: hgx}}", "links.fabric", "for 8 GPUs, and the node has 2"),
        (f"{GPU}}}]\nlinks: {{pcie: [X PIX]}}", "links.pcie", "2 rows, one a GPU; there are 1"),
        (f"{GPU}}}]\nlinks: {{pcie: [X PIX, X]}}", "links.pcie[1]", "2 columns, one a GPU; there are 1"),
        (f"{GPU}}}]\nlinks: {{pcie: [X PIX, NV4 X]}}", "links.pcie[1][0]", "'NV4' is none of PSB PIX"),
        (f"{GPU}}}]\nlinks: {{nvlinks: [X 1, NV1 X]}}", "links.nvlinks[1][0]", "'NV1' is no number of NVLinks"),
        (f"{GPU}}}]\nlinks: {{nvswitchLinks: [1, 2, 3]}}", "links.nvswitchLinks", "2 values, one a GPU"),
        (f"{GPU}}}]\nfaults: [{{after: 1s}}]", "faults[0]", "has to be one of xid, lost, slow, mig"),
        (f"{GPU}}}]\nfaults: [{{fault: fire, after: 1s}}]", "faults[0]", "has to be one of xid, lost, slow, mig"),
        (f"{GPU}}}]\nfaults: [{{fault: lost, after: soon, gpu: 0}}]", "faults[0].after", "30s or 5m (found 'soon')"),
        (
            f"{GPU}}}]\nfaults: [{{fault: lost, after: 1s, gpu: 2}}]",
            "faults[0].gpu",
            "there is no GPU 2; there are: 0, 1",
        ),
        (
            f"{GPU}}}]\nfaults: [{{fault: lost, after: 1s, gpu: 0, until: 2s}}]",
            "faults[0].until",
            "there is no such key",
        ),
        (f"{GPU}}}]\nfaults: [{{fault: xid, after: 1s, gpu: 0}}]", "faults[0].code", "this key has to be given"),
        (
            f"{GPU}}}]\nfaults: [{{fault: mig, after: 1s, gpu: 0, devices: [9g.1gb]}}]",
            "faults[0].devices[0]",
            "has no MIG profile '9g.1gb'",
        ),
    ],
)
def test_a_fault_of_the_file_is_told_with_path_and_value(text: str, path: str, message: str) -> None:
    problems = _problems(text)
    assert path in problems
    assert message in problems[path]


def test_all_faults_of_a_file_are_told_at_once() -> None:
    text = f"{GPU}, numaNode: a, migs: 1}}, {{count: 1}}]\nfaults: [{{fault: lost, after: x, gpu: 0}}]\nnam: m"
    assert set(_problems(text)) == {"gpus[0].numaNode", "gpus[0].migs", "gpus[1].model", "faults[0].after", "nam"}


@given(
    st.recursive(
        st.text(alphabet="ax1:.-", max_size=6),
        lambda children: (
            st.lists(children, max_size=3)
            | st.dictionaries(
                st.sampled_from(["name", "gpus", "model", "count", "mig", "devices", "links", "fabric", "faults", "x"]),
                children,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_document_gives_a_model_or_a_node_model_error(document: object) -> None:
    with contextlib.suppress(NodeModelError):
        assert _model(json.dumps(document)).node.gpus is not None
