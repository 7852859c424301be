"""The specification of a node under WSL."""

import os
from pathlib import Path

from gpustow.config import Config
from gpustow.hardware.node import Platform
from gpustow.injection.cdi.edits import CdiDeviceNode
from gpustow.injection.cdi.generator import Generated, generate
from gpustow.injection.hostdevices import HostDevices
from tests.injection.cdi.generator.drivertree import Tree
from tests.injection.cdi.generator.nodes import GPU_0, gpu, node

_STORE = "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_1"
_EXPECTED = (
    "libcuda.so.1.1",
    "libcuda_loader.so",
    "libnvidia-ptxjitcompiler.so.1",
    "libnvidia-ml.so.1",
    "libnvidia-ml_loader.so",
    "libnvdxgdmal.so.1",
    "nvcubins.bin",
    "nvidia-smi",
)
_NODE = node(gpu(0, GPU_0), platform=Platform.WSL)


def _generated(tree: Tree) -> Generated:
    generated = generate(_NODE, Config(cdi_disable_hooks=("enable-cuda-compat",)), tree.root(), HostDevices())
    generated.spec.check()
    return generated


def _machine(tree: Tree) -> Tree:
    tree.device("/dev/dxg").file("/usr/lib/wsl/lib/libdxcore.so").program("/usr/bin/nvidia-ctk")
    for name in (*_EXPECTED, "libnvwgf2umx.so", "nvoptix.bin", "other.dll", "readme.txt"):
        tree.file(f"{_STORE}/{name}")
    tree.directory(f"{_STORE}/directory.so").directory("/usr/lib/wsl/drivers/other_amd64_2")
    return tree


def test_all_gpus_are_one_device_and_the_driver_comes_from_windows(tmp_path: Path) -> None:
    generated = _generated(_machine(Tree(tmp_path)))
    (device,) = generated.spec.devices
    assert device.name == "all"
    assert device.edits.device_nodes == (CdiDeviceNode("/dev/dxg", permissions="rwm"),)
    edits = generated.spec.edits
    assert edits.env == ("NVIDIA_VISIBLE_DEVICES=void",)
    assert [mount.container_path for mount in edits.mounts] == [
        "/usr/lib/wsl/lib/libdxcore.so",
        f"{_STORE}/libcuda.so.1.1",
        f"{_STORE}/libcuda_loader.so",
        f"{_STORE}/libnvdxgdmal.so.1",
        f"{_STORE}/libnvidia-ml.so.1",
        f"{_STORE}/libnvidia-ml_loader.so",
        f"{_STORE}/libnvidia-ptxjitcompiler.so.1",
        f"{_STORE}/libnvwgf2umx.so",
        f"{_STORE}/nvcubins.bin",
        f"{_STORE}/nvidia-smi",
        f"{_STORE}/nvoptix.bin",
        f"{_STORE}/other.dll",
    ]
    assert [hook.args[2:] for hook in edits.hooks] == [
        ("create-symlinks", "--link", f"{_STORE}/nvidia-smi::/usr/bin/nvidia-smi"),
        ("update-ldcache", "--folder", "/usr/lib/wsl/lib", "--folder", _STORE),
    ]
    assert generated.left_out == ()


def test_of_several_drivers_the_newest_is_taken_and_told(tmp_path: Path) -> None:
    tree = _machine(Tree(tmp_path)).file("/usr/lib/wsl/drivers/older/libcuda.so.1.1")
    os.utime(tmp_path / "usr/lib/wsl/drivers/older/libcuda.so.1.1", (1, 1))
    generated = _generated(tree)
    assert f"{_STORE}/libcuda.so.1.1" in [mount.container_path for mount in generated.spec.edits.mounts]
    assert generated.warnings == (
        f"/usr/lib/wsl/drivers has 2 drivers with libcuda.so.1.1; the newest is taken, {_STORE}",
    )


def test_what_windows_does_not_have_is_told(tmp_path: Path) -> None:
    tree = Tree(tmp_path).program("/usr/bin/nvidia-ctk").file(f"{_STORE}/libcuda.so.1.1")
    generated = _generated(tree)
    assert [hook.args[2] for hook in generated.spec.edits.hooks] == ["update-ldcache"]
    assert [sentence.partition(": ")[2] for sentence in generated.left_out] == [
        "libraries /usr/lib/wsl/lib/libdxcore.so",
        f"files of the Windows driver {', '.join(_EXPECTED[1:])}",
    ]
    assert generated.warnings == ("not found below /: device nodes /dev/dxg",)


def test_without_a_driver_of_windows_there_is_only_the_device_node(tmp_path: Path) -> None:
    generated = _generated(Tree(tmp_path).device("/dev/dxg"))
    assert generated.spec.edits.mounts == ()
    assert "no directory below /usr/lib/wsl/drivers has libcuda.so.1.1" in generated.warnings[0]
