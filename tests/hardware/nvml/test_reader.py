from collections.abc import Callable
from dataclasses import replace

import pytest

from gpustow.errors import HardwareError
from gpustow.hardware.links import Link, PcieLevel
from gpustow.hardware.mig import MigEngines
from gpustow.hardware.node import Node, Platform
from gpustow.hardware.nodemodel import NodeModel, load_node_model, parse_node_model, shipped_models
from tests.hardware.profiletable import BOARDS
from tests.nvml.fakedriver import FakeDriver
from tests.nvml.readerprocess import ReaderProcess

Start = Callable[[NodeModel], tuple[FakeDriver, ReaderProcess]]

NVML_MODELS = [name for name in shipped_models() if load_node_model(name).node.platform is Platform.NVML]


@pytest.fixture
def start(machine: ReaderProcess) -> Start:
    """Starts a new reader on the fake machine of a model."""

    def start(model: NodeModel) -> tuple[FakeDriver, ReaderProcess]:
        machine.start(model)
        return machine.driver, machine

    return start


def _model(gpus: str, more: str = "") -> NodeModel:
    return parse_node_model(f"name: node\ncudaVersion: '12.4'\ngpus: [{gpus}]\n{more}", "n")


def _without_notes(node: Node) -> Node:
    return replace(node, notes=())


def _with_engines(node: Node) -> Node:
    """The node as the library tells it: the engines of boards that are in no table of ours are none there."""
    return replace(
        node,
        gpus=tuple(
            replace(
                gpu,
                mig_devices=tuple(
                    replace(device, engines=device.engines or MigEngines()) for device in gpu.mig_devices
                ),
            )
            for gpu in node.gpus
        ),
    )


@pytest.mark.parametrize("name", NVML_MODELS)
def test_a_shipped_model_is_read_through_the_library_as_the_simulated_reader_reads_it(name: str, start: Start) -> None:
    model = load_node_model(name)
    _, process = start(model)
    assert process.read() == model.node


@pytest.mark.parametrize("mode", ["true", "false"])
@pytest.mark.parametrize("board", BOARDS)
def test_every_board_is_read_with_the_names_and_places_of_its_mig_profiles(
    board: str, mode: str, machine: ReaderProcess
) -> None:
    """In MIG mode NVML tells the places; else they come from the table of known models."""
    devices = f"[{BOARDS[board][0][0]}]" if mode == "true" else "[]"
    model = _model(f"{{model: {board}, mig: {{enabled: {mode}, devices: {devices}}}}}")
    machine.start(model)
    node = machine.read()
    assert {
        (
            profile.name,
            profile.profile_id,
            profile.nvml_profile,
            profile.gpu_slices,
            profile.memory_slices,
            profile.max_count,
            profile.placements,
        )
        for profile in node.gpus[0].mig_profiles
    } == set(BOARDS[board])
    assert node == _with_engines(model.node)


@pytest.mark.parametrize("board", BOARDS)
def test_every_profile_that_a_board_can_be_cut_into_is_read_back_as_a_device(
    board: str, machine: ReaderProcess
) -> None:
    for name, *_ in BOARDS[board]:
        model = _model(f"{{model: {board}, mig: {{devices: ['{name}']}}}}")
        machine.driver.show(model)
        (device,) = machine.read().gpus[0].mig_devices
        assert device.profile.name == name
        assert device == _with_engines(model.node).gpus[0].mig_devices[0]


@pytest.mark.parametrize("layout", ["1c.3g.20gb, 2c.3g.20gb", "1c.4g.20gb, 1g.5gb+me"])
def test_parts_of_an_instance_and_suffixes_are_read_back(layout: str, machine: ReaderProcess) -> None:
    model = _model(f"{{model: NVIDIA A100-SXM4-40GB, mig: {{devices: [{layout}]}}}}")
    machine.start(model)
    assert machine.read().gpus == model.node.gpus


def test_a_display_adapter_is_no_gpu_and_keeps_its_index(machine: ReaderProcess) -> None:
    model = _model("{model: Tesla T4}, {model: Tesla T4, index: 2}", "links: {fabric: one-socket}")
    machine.start(model)
    assert [gpu.index for gpu in machine.read().gpus] == [0, 2]


def test_links_that_differ_by_direction_and_to_switches_are_counted(machine: ReaderProcess) -> None:
    model = _model(
        "{model: Tesla T4, count: 3}",
        "links: {pcie: [X PIX SYS, PIX X SYS, SYS SYS X], nvlinks: [X 2 0, 1 X 0, 0 0 X], nvswitchLinks: [6, 4, 0]}",
    )
    machine.start(model)
    assert machine.read().links.table() == {
        (0, 1): Link(PcieLevel.SINGLE_SWITCH, 6),
        (1, 0): Link(PcieLevel.SINGLE_SWITCH, 5),
        (0, 2): Link(PcieLevel.SYSTEM, 0),
        (2, 0): Link(PcieLevel.SYSTEM, 0),
        (1, 2): Link(PcieLevel.SYSTEM, 0),
        (2, 1): Link(PcieLevel.SYSTEM, 0),
    }


def test_a_fabric_without_a_cluster_is_none(start: Start) -> None:
    """HGX H100 reports a completed fabric with a UUID of zeros."""
    driver, process = start(load_node_model("gb200-tray"))
    driver.change(f"gpu 0 fabric 3 0 2 {'0' * 32}")
    driver.change("gpu 1 fabric 2 0 2 3c4f5a6b7d8e4f90a1b2c3d4e5f60718")
    driver.change("gpu 2 fabric 3 999 2 3c4f5a6b7d8e4f90a1b2c3d4e5f60718")
    fabrics = [gpu.fabric for gpu in process.read().gpus]
    assert fabrics == [None, None, None, load_node_model("gb200-tray").node.gpus[3].fabric]


def test_an_nvlink_that_is_not_active_or_leads_elsewhere_is_none(start: Start) -> None:
    driver, process = start(load_node_model("dgx-1-v100"))
    driver.change("gpu 0 link 0 0 0 00000000:07:00.0")
    driver.change("gpu 0 link 1 1 255 00000000:99:00.0")
    table = process.read().links.table()
    assert (table[0, 1].nvlinks, table[0, 2].nvlinks, table[0, 3].nvlinks) == (0, 0, 2)


def test_a_machine_without_gpus_is_a_node_without_gpus(machine: ReaderProcess) -> None:
    machine.start(_model(""))
    assert machine.read().gpus == ()


def test_link_calls_grow_with_the_gpus_and_level_calls_with_their_pairs(start: Start) -> None:
    model = load_node_model("dgx-2")
    _, process = start(model)
    process.read()
    process.read()
    counts = process.counts()
    for gpu in range(16):
        assert counts["nvmlDeviceGetNvLinkState", gpu] == 7  # six links, and the number behind the last
        assert counts["nvmlDeviceGetNvLinkRemoteDeviceType", gpu] == 6
        assert counts["nvmlDeviceGetNvLinkRemotePciInfo_v2", gpu] == 0  # they end at switches
        assert counts["nvmlDeviceGetTopologyCommonAncestor", gpu] == 15 - gpu


def test_links_are_read_anew_when_the_gpus_are_others(start: Start) -> None:
    model = load_node_model("t4-4")
    driver, process = start(model)
    driver.lose(1)
    node = process.read()
    assert [gpu.index for gpu in node.gpus] == [0, 2, 3]
    assert node.notes == ("GPU 1 is lost: it is left out",)
    assert node.unreadable == (1,)
    driver.heal()
    assert process.read() == model.node


def test_links_are_read_anew_when_something_about_them_could_not_be_read(start: Start) -> None:
    model = load_node_model("dgx-1-v100")
    driver, process = start(model)
    driver.fail("nvmlDeviceGetNvLinkState", 999, gpu=3)
    node = process.read()
    assert node.links.table()[3, 2].nvlinks == 0
    assert node.notes == ("GPU 3: NVLinks cannot be read: Unknown Error (nvmlDeviceGetNvLinkState)",)
    driver.heal()
    assert process.read() == model.node


def test_an_nvlink_that_cannot_be_read_costs_that_nvlink(start: Start) -> None:
    model = load_node_model("dgx-1-v100")
    driver, process = start(model)
    driver.fail("nvmlDeviceGetNvLinkState", 999, gpu=0, start=2)
    driver.fail("nvmlDeviceGetNvLinkState", 0, gpu=0, start=3)
    table = process.read().links.table()
    assert [table[0, other].nvlinks for other in (1, 2, 3, 4)] == [1, 0, 2, 2]


def test_the_mig_layout_is_read_anew_each_time_and_the_links_are_not(start: Start) -> None:
    cut = load_node_model("hgx-h100-mig")
    driver, process = start(cut)
    process.read()
    before = process.counts()
    text = "name: n\ngpus: [{model: NVIDIA H100 80GB HBM3, count: 8, numaNode: [0, 0, 0, 0, 1, 1, 1, 1], pciBusId: "
    text += f"{[gpu.pci_bus_id for gpu in cut.node.gpus]}, uuid: {[gpu.uuid for gpu in cut.node.gpus]}}}]"
    plain = parse_node_model(text + "\nlinks: {fabric: hgx}", "n")
    driver.show(plain)
    node = process.read()
    assert node.gpus == plain.node.gpus
    assert node.links == cut.node.links
    assert process.counts()["nvmlDeviceGetNvLinkState", 0] == before["nvmlDeviceGetNvLinkState", 0]


@pytest.mark.parametrize("lost", [0, 3])
def test_a_gpu_that_is_lost_while_levels_are_read_is_found_out(start: Start, lost: int) -> None:
    driver, process = start(load_node_model("t4-4"))
    driver.fail("nvmlDeviceGetTopologyCommonAncestor", 15, gpu=0)
    driver.fail("nvmlDeviceGetUUID", 15, gpu=lost, start=2)
    node = process.read()
    assert [gpu.index for gpu in node.gpus] == [index for index in range(4) if index != lost]
    assert {end for pair, _ in node.links.readings for end in pair} == {gpu.index for gpu in node.gpus}
    assert f"GPU {lost} is lost: it is left out" in node.notes
    assert node.unreadable == (lost,)


def test_a_level_that_we_do_not_know_is_unknown_and_told(start: Start) -> None:
    driver, process = start(load_node_model("t4-4"))
    driver.change("gpu 0 level 1 77")
    node = process.read()
    assert node.links.table()[1, 0] == Link()
    assert node.notes == ("GPU 0: PCIe level 77 is not known",)


def test_a_numa_file_that_makes_no_sense_costs_the_numa_node(start: Start) -> None:
    driver, process = start(load_node_model("t4-4"))
    (driver.system_root / "sys/bus/pci/devices/0000:00:1b.0").rename(driver.system_root / "elsewhere")
    (driver.system_root / "sys/bus/pci/devices/0000:00:1c.0/numa_node").write_text("left")
    node = process.read()
    assert [gpu.numa_node for gpu in node.gpus] == [None, None, 0, 0]
    assert len(node.notes) == 1
    assert node.notes[0].startswith("GPU 1: NUMA node cannot be read")


def test_mig_devices_without_a_capability_are_left_out(start: Start) -> None:
    driver, process = start(load_node_model("a30-mig"))
    (driver.system_root / "proc/driver/nvidia-caps/mig-minors").write_text(
        "gpu0/gi3/access 30\ngpu0/gi3/ci0/access 31\ngpu0/gi4/access 39\n"
    )
    first, second = process.read().gpus
    assert [device.gpu_instance for device in first.mig_devices] == [3]
    assert first.mig_devices[0].device_paths == (
        "/dev/nvidia0",
        "/dev/nvidia-caps/nvidia-cap30",
        "/dev/nvidia-caps/nvidia-cap31",
    )
    assert second.mig_enabled
    assert second.mig_devices == ()


def test_a_name_that_is_no_text_costs_the_name(start: Start) -> None:
    driver, process = start(load_node_model("t4-4"))
    driver.flat_file.write_bytes(driver.flat_file.read_bytes() + b"gpu 0 name \xff\n")
    node = process.read()
    assert [gpu.model for gpu in node.gpus] == ["", "Tesla T4", "Tesla T4", "Tesla T4"]
    assert node.notes == ("GPU 0: model cannot be read: the answer is not text (nvmlDeviceGetName)",)


def test_an_nvml_that_does_not_tell_the_number_of_gpus_cannot_be_read(start: Start) -> None:
    driver, process = start(load_node_model("t4-4"))
    driver.fail("nvmlDeviceGetCount_v2", 999)
    with pytest.raises(HardwareError, match=r"Unknown Error \(nvmlDeviceGetCount\)"):
        process.read()


def test_a_driver_that_comes_back_is_read(start: Start) -> None:
    model = load_node_model("t4-4")
    driver, process = start(model)
    driver.fail("nvmlInitWithFlags", 9)
    with pytest.raises(HardwareError):
        process.read()
    driver.heal()
    assert process.read() == model.node


def test_a_shutdown_that_fails_costs_nothing(start: Start) -> None:
    model = load_node_model("t4-4")
    driver, process = start(model)
    driver.fail("nvmlShutdown", 999)
    assert _without_notes(process.read()) == model.node


def test_as_many_nvlinks_as_can_be_are_counted(start: Start) -> None:
    model = _model("{model: Tesla T4, count: 2}", "links: {pcie: [X PIX, PIX X], nvswitchLinks: 36}")
    _, process = start(model)
    assert process.read() == model.node


def test_without_profiles_a_mig_device_of_an_unknown_model_is_named_by_its_own_attributes(start: Start) -> None:
    profile = "{name: 2g.5gb, memoryMiB: 5000, memorySlices: 2, placements: [0, 2], nvmlProfile: 1, profileId: 5, "
    profile += "maxCount: 2, multiprocessors: 9}, {name: 4g.20gb, memoryMiB: 20000, memorySlices: 8}"
    model = _model(
        "{model: NVIDIA Something New, memory: 20000MiB, computeCapability: 12.1, "
        f"migProfiles: [{profile}], mig: {{devices: [2g.5gb, 1c.2g.5gb]}}}}"
    )
    driver, process = start(model)
    driver.fail("nvmlDeviceGetGpuInstanceProfileInfo", 3)
    (gpu,) = process.read().gpus
    assert [device.profile.name for device in gpu.mig_devices] == ["2g.5gb", "1c.2g.5gb"]
    assert [device.start for device in gpu.mig_devices] == [0, 2]
    assert gpu.mig_profiles == ()
