"""The machine that we run on, read through the fake library in a process of its own."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from gpustow.errors import HardwareError
from gpustow.hardware.machine import MachineReader
from gpustow.hardware.node import Node, Platform
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.nvml import NvmlReader, Places
from gpustow.hardware.nvml.library import NOT_SUPPORTED, UNKNOWN
from tests.nvml.machine import machine, shared_process
from tests.nvml.readerprocess import ReaderProcess

__all__ = ["machine", "shared_process"]

Read = Callable[..., Node]


def _load_error(library: str, *, dxcore: bool) -> str:
    if library == "libdxcore.so":
        return "" if dxcore else "no Windows"
    return "" if Path(library).exists() else "not mounted"


def _read(_reader: NvmlReader, *, strategy: str, places: Places, dxcore: bool) -> Node:
    return MachineReader("node", strategy, places, load_error=partial(_load_error, dxcore=dxcore)).read()


@pytest.fixture
def read(machine: ReaderProcess) -> Iterator[Read]:
    def read(strategy: str = "auto", *, dxcore: bool = False) -> Node:
        places = Places(str(machine.driver.driver_root), machine.driver.system_root)
        node: Node = machine.call(partial(_read, strategy=strategy, places=places, dxcore=dxcore))
        return node

    yield read
    machine.driver.heal()


@pytest.mark.parametrize("strategy", ["auto", "nvml"])
def test_an_ordinary_machine_is_read_by_nvml_once(strategy: str, read: Read, machine: ReaderProcess) -> None:
    node = read(strategy)
    assert node.platform is Platform.NVML
    assert len(node.gpus) == 4
    assert machine.counts()["nvmlDeviceGetUUID", 0] == 1


def test_case_c31_an_integrated_gpu_is_served_as_tegra_though_nvml_cannot_serve_it(
    read: Read, machine: ReaderProcess
) -> None:
    machine.driver.show(load_node_model("jetson-orin"))
    machine.driver.fail("nvmlDeviceGetMinorNumber", NOT_SUPPORTED)
    node = read()
    assert (node.platform, [gpu.uuid for gpu in node.gpus]) == (Platform.TEGRA, ["tegra"])


def test_an_integrated_gpu_that_nvml_serves_is_tegra_as_well(read: Read, machine: ReaderProcess) -> None:
    machine.driver.show(load_node_model("jetson-orin"))
    assert read().platform is Platform.TEGRA
    assert read("nvml").platform is Platform.NVML


def test_gpus_that_do_not_tell_their_names_are_not_integrated(read: Read, machine: ReaderProcess) -> None:
    machine.driver.fail("nvmlDeviceGetMinorNumber", UNKNOWN)
    machine.driver.fail("nvmlDeviceGetName", UNKNOWN)
    node = read()
    assert (node.platform, node.gpus) == (Platform.NVML, ())


def test_case_c31_under_wsl_gpus_need_no_minor_number(read: Read, machine: ReaderProcess) -> None:
    machine.driver.fail("nvmlDeviceGetMinorNumber", NOT_SUPPORTED)
    machine.driver.fail("nvmlDeviceGetPciInfo", NOT_SUPPORTED)
    machine.driver.fail("nvmlDeviceGetMemoryInfo", NOT_SUPPORTED, gpu=1)
    machine.driver.fail("nvmlDeviceGetUUID", UNKNOWN, gpu=2)
    machine.driver.lose(3)
    node = read(dxcore=True)
    t4 = load_node_model("t4-4").node
    assert (node.platform, node.driver_version, node.cuda_version) == (
        Platform.WSL,
        t4.driver_version,
        t4.cuda_version,
    )
    assert [gpu.uuid for gpu in node.gpus] == [t4.gpus[0].uuid, t4.gpus[1].uuid, "GPU-2"]
    assert [gpu.memory_bytes for gpu in node.gpus] == [t4.gpus[0].memory_bytes, None, t4.gpus[2].memory_bytes]
    assert {gpu.device_paths for gpu in node.gpus} == {("/dev/dxg",)}
    assert [note.partition(":")[0] for note in node.notes] == ["GPU 2", "GPU 3"]


def test_a_machine_on_which_nothing_is_found_is_refused_with_all_that_was_tried(tmp_path: Path) -> None:
    reader = MachineReader("node", places=Places("", tmp_path), load_error=lambda library: f"{library} is not there")
    with pytest.raises(HardwareError, match=r"platform unknown.*tried wsl: .*; tegra: .*; nvml: "):
        reader.read()


def test_tegra_is_read_where_its_files_are(tmp_path: Path) -> None:
    release = tmp_path / "etc/nv_tegra_release"
    release.parent.mkdir()
    release.touch()
    model = tmp_path / "proc/device-tree/model"
    model.parent.mkdir(parents=True)
    model.write_text("Board\0")
    for strategy in ("auto", "tegra"):
        reader = MachineReader("node", strategy, Places(str(tmp_path)), load_error=lambda library: f"no {library}")
        assert reader.read().gpus[0].model == "Board"
