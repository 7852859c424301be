from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpustow.hardware.gpumodels import GPU_MODELS
from gpustow.hardware.links import Link, Links, PcieLevel
from gpustow.hardware.modelwriter import write_node_model
from gpustow.hardware.node import FabricIdentity, Node
from gpustow.hardware.nodemodel import load_node_model, parse_node_model, shipped_models


def _read_back(node: Node) -> Node:
    return parse_node_model(write_node_model(node), "written").node


@pytest.mark.parametrize("name", shipped_models())
def test_a_shipped_node_is_read_back_as_it_was(name: str) -> None:
    node = load_node_model(name).node
    assert _read_back(node) == node


def _node(gpus: str, more: str = "") -> Node:
    return parse_node_model(f"name: n\ngpus: [{gpus}]\n{more}", "n").node


@pytest.mark.parametrize(
    "node",
    [
        _node(""),
        _node("{model: Tesla T4, minor: 5, index: 3, pciBusId: '0000:07:00.0'}"),
        _node("{model: Tesla T4, memory: 12345}"),
        _node("{model: Brand New, computeCapability: 12.1, memorySlices: 4, uuid: GPU-x}"),
        _node("{model: NVIDIA A30, mig: {}}"),
        _node("{model: NVIDIA A30, mig: {devices: [{profile: 1g.6gb, index: 2, memory: 7MiB, start: 3}]}}"),
        _node("{model: NVIDIA A30, mig: {devices: [{profile: 1g.6gb, devicePaths: [/dev/a]}]}}"),
        _node(
            "{model: NVIDIA A30, mig: {devices: [{profile: 1c.2g.12gb, computeInstance: 4}, 1c.2g.12gb, 1g.6gb+me]}}"
        ),
        _node(
            "{model: Brand New, computeCapability: 12.1, mig: {devices: [2g.5gb+gfx]}, "
            "migProfiles: [{name: 2g.5gb+gfx, memoryMiB: 5000, placements: [0, 2]}]}"
        ),
        _node("{model: Tesla T4, count: 2}", "links: {pcie: ['X ?', PIX X], nvlinks: [X 1, 2 X]}"),
        _node("{model: Tesla T4, count: 3}", "links: {fabric: random}"),
        _node("{model: NVIDIA A100-SXM4-40GB, migProfiles: [{name: 7g.40gb, memoryMiB: 40192}]}"),
    ],
    ids=lambda node: ",".join(gpu.model for gpu in node.gpus),
)
def test_an_odd_node_is_read_back_as_it_was(node: Node) -> None:
    assert _read_back(node) == node


def test_a_bus_id_is_safe_from_yaml_readers_that_guess_types() -> None:
    """YAML 1.1 takes 0000:07:00.0 for a number to base 60."""
    document = yaml.safe_load(write_node_model(load_node_model("dgx-a100").node))
    assert document["gpus"][0]["pciBusId"] == "00000000:07:00.0"
    assert document["cudaVersion"] == "12.4"


def test_what_could_not_be_read_stands_at_the_top() -> None:
    node = replace(load_node_model("t4-4").node, notes=("GPU 9 is lost: it is left out",))
    assert write_node_model(node).startswith("# GPU 9 is lost: it is left out\nname: t4-4\n")


def test_a_note_of_several_lines_stays_a_comment() -> None:
    node = replace(load_node_model("t4-4").node, notes=("GPU 1: a file\nname: b",))
    assert _read_back(node).name == "t4-4"


def test_a_node_without_a_name_gets_one() -> None:
    assert _read_back(replace(load_node_model("t4-4").node, name="")).name == "node"


def test_what_is_not_known_is_filled_in_from_the_model() -> None:
    full = load_node_model("a30-mig").node
    known = GPU_MODELS["NVIDIA A30"]
    first = replace(
        full.gpus[0],
        memory_bytes=None,
        compute_capability=None,
        mig_profiles=(),
        mig_devices=tuple(replace(device, start=None) for device in full.gpus[0].mig_devices),
    )
    back = _read_back(replace(full, gpus=(first, full.gpus[1]))).gpus[0]
    assert back == replace(full.gpus[0], mig_profiles=known.mig_profiles)


def test_a_gpu_whose_model_could_not_be_read_can_still_be_simulated() -> None:
    full = load_node_model("a30-mig").node
    nameless = tuple(
        replace(gpu, model="", pci_bus_id="", compute_capability=None, mig_profiles=()) for gpu in full.gpus
    )
    back = _read_back(replace(full, gpus=nameless))
    assert [gpu.model for gpu in back.gpus] == ["unknown", "unknown"]
    assert [len(gpu.mig_devices) for gpu in back.gpus] == [4, 4]


def test_a_bus_id_that_could_not_be_read_does_not_clash_with_another_gpu() -> None:
    full = _node("{model: Tesla T4, pciBusId: '0000:02:00.0'}, {model: Tesla T4, pciBusId: '0000:01:00.0'}")
    node = replace(full, gpus=(replace(full.gpus[0], pci_bus_id=""), full.gpus[1]))
    assert _read_back(node).gpus[1] == full.gpus[1]


def test_a_mig_gpu_without_profiles_and_devices_is_written_without_mig() -> None:
    (gpu,) = _node("{model: Brand New, computeCapability: 12.1}").gpus
    node = replace(_node(""), gpus=(replace(gpu, mig_capable=True, mig_enabled=True),))
    assert _read_back(node).gpus == (gpu,)


_LINK = st.builds(Link, st.none() | st.sampled_from(PcieLevel), st.integers(0, 18))


@given(
    st.lists(_LINK, min_size=6, max_size=6),
    st.none() | st.builds(FabricIdentity, st.uuids().map(str), st.integers(0, 99)),
)
def test_any_links_and_fabric_are_read_back(links: list[Link], fabric: FabricIdentity | None) -> None:
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    node = load_node_model("t4-4").node
    gpus = tuple(replace(gpu, fabric=fabric) for gpu in node.gpus[:3])
    node = replace(node, gpus=gpus, links=Links(tuple(zip(pairs, links, strict=True))))
    assert _read_back(node) == node
