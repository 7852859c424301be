"""Tegra boards, from their files."""

from pathlib import Path

import pytest

from gpustow.hardware.node import Platform
from gpustow.hardware.tegra import TegraReader, is_tegra


def write(root: Path, path: str, content: bytes) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return root


def test_a_release_file_makes_a_tegra(tmp_path: Path) -> None:
    assert is_tegra(write(tmp_path, "etc/nv_tegra_release", b"# R36 (release), REVISION: 4.0\n"))


@pytest.mark.parametrize(
    ("family", "tegra"), [(b"Tegra\n", True), (b"tegra234", True), (b"Samsung Exynos", False), (b"", False)]
)
def test_of_the_family_the_text_decides(family: bytes, tegra: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a column
    assert is_tegra(write(tmp_path, "sys/devices/soc0/family", family)) is tegra


def test_an_ordinary_machine_is_no_tegra(tmp_path: Path) -> None:
    assert not is_tegra(tmp_path)


@pytest.mark.parametrize(
    ("compatible", "capability"),
    [
        (b"nvidia,p3768-0000+p3767-0005\0nvidia,p3767-0005\0nvidia,tegra234\0", (8, 7)),
        (b"nvidia,jetson-xavier\0nvidia,tegra194\0", (7, 2)),
        (b"nvidia,tegra999\0", None),
        (b"", None),
    ],
)
def test_a_board_is_read_from_the_device_tree(
    compatible: bytes, capability: tuple[int, int] | None, tmp_path: Path
) -> None:
    write(tmp_path, "proc/device-tree/model", b"NVIDIA Jetson Orin Nano Developer Kit\0")
    write(tmp_path, "proc/device-tree/compatible", compatible)
    node = TegraReader("edge", tmp_path).read()
    (gpu,) = node.gpus
    assert (node.name, node.platform) == ("edge", Platform.TEGRA)
    assert (gpu.uuid, gpu.model, gpu.compute_capability) == (
        "tegra",
        "NVIDIA Jetson Orin Nano Developer Kit",
        capability,
    )
    assert (gpu.device_paths, gpu.memory_bytes, gpu.numa_node) == ((), None, None)


def test_a_board_whose_files_say_nothing_still_has_its_gpu(tmp_path: Path) -> None:
    (gpu,) = TegraReader("edge", tmp_path).read().gpus
    assert (gpu.model, gpu.compute_capability) == ("Tegra", None)
