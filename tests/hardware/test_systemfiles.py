from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.hardware.systemfiles import MIG_MINORS, capability_path, mig_minors, numa_node, sysfs_bus_id


@pytest.mark.parametrize(
    ("nvml", "sysfs"),
    [
        ("00000000:07:00.0", "0000:07:00.0"),
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("00000008:01:00.0", "0008:01:00.0"),  # GB200: each GPU has a PCI domain of its own
        ("00010000:E1:00.0", "10000:e1:00.0"),
    ],
)
def test_a_bus_id_is_written_as_sysfs_does(nvml: str, sysfs: str) -> None:
    assert sysfs_bus_id(nvml) == sysfs


def _numa_file(root: Path, text: str) -> None:
    device = root / "sys/bus/pci/devices/0000:07:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text(text)


@pytest.mark.parametrize(("text", "node"), [("0\n", 0), ("7\n", 7), ("-1\n", None)])
def test_the_numa_node_is_the_number_in_the_file_and_minus_one_is_none(
    tmp_path: Path, text: str, node: int | None
) -> None:
    _numa_file(tmp_path, text)
    assert numa_node(tmp_path, "00000000:07:00.0") == node


def test_without_a_file_there_is_no_numa_node(tmp_path: Path) -> None:
    assert numa_node(tmp_path, "00000000:07:00.0") is None


def test_a_file_that_holds_no_number_is_an_error(tmp_path: Path) -> None:
    _numa_file(tmp_path, "zero\n")
    with pytest.raises(ValueError, match="zero"):
        numa_node(tmp_path, "00000000:07:00.0")


def _minors(root: Path, text: str) -> dict[tuple[int, int, int | None], int]:
    file = root / MIG_MINORS
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return mig_minors(root)


def test_the_minors_of_instances_are_read_and_other_lines_skipped(tmp_path: Path) -> None:
    text = "config 1\nmonitor 2\ngpu0/gi7/access 66\ngpu0/gi7/ci0/access 67\ngpu12/gi0/ci7/access 9\nnonsense\n\n"
    assert _minors(tmp_path, text) == {(0, 7, None): 66, (0, 7, 0): 67, (12, 0, 7): 9}


def test_without_the_drivers_file_there_are_no_minors(tmp_path: Path) -> None:
    assert mig_minors(tmp_path) == {}


@given(text=st.text(st.sampled_from("gpuicaess/0123456789 \n"), max_size=60))
def test_any_file_gives_minors(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    assert all(minor >= 0 for minor in _minors(tmp_path_factory.mktemp("root"), text).values())


def test_a_capability_is_a_device_node() -> None:
    assert capability_path(66) == "/dev/nvidia-caps/nvidia-cap66"
