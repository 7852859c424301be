from pathlib import Path

import pytest

from gpustow.errors import HardwareError
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.nvml.library import LIBRARY, library_path
from tests.nvml.fakedriver import FakeDriver
from tests.nvml.readerprocess import ReaderProcess

FOLDERS = [
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
]


@pytest.mark.parametrize("root", ["", "/", "/nowhere"])
def test_without_a_driver_root_the_linker_looks_for_the_library(root: str) -> None:
    assert library_path(root) == LIBRARY


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_library_is_found_in_the_usual_folders_of_the_driver_root(tmp_path: Path, folder: str) -> None:
    """Where k8s-device-plugin v0.20.0 looks, symbolic links resolved."""
    real = tmp_path / folder / "libnvidia-ml.so.550.90.07"
    real.parent.mkdir(parents=True)
    real.touch()
    (real.parent / LIBRARY).symlink_to(real.name)
    assert library_path(str(tmp_path)) == str(real.resolve())


def test_the_first_of_the_folders_that_has_it_wins(tmp_path: Path) -> None:
    for folder in reversed(FOLDERS[1:]):
        library = tmp_path / folder / LIBRARY
        library.parent.mkdir(parents=True, exist_ok=True)
        library.touch()
    broken = tmp_path / FOLDERS[0]
    broken.mkdir(parents=True)
    (broken / LIBRARY).symlink_to("gone")
    assert library_path(str(tmp_path)) == str((tmp_path / FOLDERS[1] / LIBRARY).resolve())


def test_a_library_that_cannot_be_loaded_is_told_with_what_to_do(tmp_path: Path) -> None:
    driver = FakeDriver(tmp_path, load_node_model("t4-4"))
    library = driver.driver_root / FOLDERS[0] / LIBRARY
    library.unlink()
    library.write_text("this is no library")
    with ReaderProcess(driver) as process, pytest.raises(HardwareError, match="there is no NVIDIA driver") as caught:
        process.read()
    assert "--driver-root-ctr-path" in str(caught.value)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "Driver Not Loaded .nvmlInit.*nvidia-smi has to work there"),
        (4, "Insufficient Permissions.*Run privileged"),
        (18, "mismatch.*reload the module or restart the node"),
        (999, "Unknown Error.*See what nvidia-smi says"),
    ],
)
def test_an_nvml_that_does_not_come_up_is_told_with_what_to_do(machine: ReaderProcess, code: int, words: str) -> None:
    machine.driver.fail("nvmlInitWithFlags", code)
    with pytest.raises(HardwareError, match=f"(?s){words}"):
        machine.read()
