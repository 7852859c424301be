"""The specification of a Tegra board, from L4T's lists."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import Config
from gpustow.hardware.node import Node, Platform
from gpustow.injection.cdi.generator import DriverRoot, Generated, generate
from gpustow.injection.cdi.generator.tegra import _chain
from gpustow.injection.hostdevices import HostDevices
from tests.injection.cdi.generator.drivertree import Tree
from tests.injection.cdi.generator.nodes import gpu, node

_LISTS = "/etc/nvidia-container-runtime/host-files-for-container.d"
_LIBS = "/usr/lib/aarch64-linux-gnu/tegra"
_ORIN = replace(gpu(0, "tegra"), device_paths=(), compute_capability=(8, 7))


def _node(cuda: str = "") -> Node:
    return node(_ORIN, platform=Platform.TEGRA, driver="", cuda=cuda)


def _generated(root: DriverRoot, cuda: str = "") -> Generated:
    return generate(_node(cuda), Config(), root, HostDevices())


def _board(tree: Tree) -> Tree:
    tree.file(f"{_LISTS}/devices.csv", "dev, /dev/nvmap\ndev, /dev/nvhost-*\ndev, /dev/gone\n\n")
    tree.file(
        f"{_LISTS}/drivers.csv",
        f"lib, {_LIBS}/libcuda.so.1.1\nsym, /usr/lib/libcuda.so\ndir, /lib/firmware/tegra\nlib, {_LIBS}/gone.so\n"
        f"dir, {_LIBS}/libcuda.so.1.1\n",
    )
    tree.file(f"{_LISTS}/l4t.csv", "lib, /usr/lib/other/libnvrm.so\n").file("/etc/nv_tegra_release")
    tree.device("/dev/nvmap", mode=0o660, gid=44).device("/dev/nvhost-gpu").device("/dev/nvhost-ctrl")
    tree.file(f"{_LIBS}/libcuda.so.1.1").file("/usr/lib/other/libnvrm.so").directory("/lib/firmware/tegra")
    tree.link("/usr/lib/libcuda.so", "aarch64-linux-gnu/tegra/libcuda.so.1").link(
        f"{_LIBS}/libcuda.so.1", "libcuda.so.1.1"
    )
    return tree.program("/usr/bin/nvidia-ctk")


def test_the_board_is_one_device_with_what_the_lists_name(tmp_path: Path) -> None:
    generated = _generated(_board(Tree(tmp_path)).root("/host", "/host"))
    generated.spec.check()
    (device,) = generated.spec.devices
    assert device.name == "all"
    assert {each.path: each.host_path for each in device.edits.device_nodes} == {
        path: f"/host{path}" for path in ("/dev/nvmap", "/dev/nvhost-ctrl", "/dev/nvhost-gpu")
    }
    assert device.edits.additional_gids == (44,)
    edits = generated.spec.edits
    assert [(mount.container_path, mount.host_path) for mount in edits.mounts] == [
        (path, f"/host{path}")
        for path in (
            "/lib/firmware/tegra",
            f"{_LIBS}/libcuda.so.1.1",
            "/usr/lib/other/libnvrm.so",
            "/etc/nv_tegra_release",
        )
    ]
    assert [hook.args[2:] for hook in edits.hooks] == [
        (
            "create-symlinks",
            "--link",
            "aarch64-linux-gnu/tegra/libcuda.so.1::/usr/lib/libcuda.so",
            "--link",
            f"libcuda.so.1.1::{_LIBS}/libcuda.so.1",
        ),
        ("update-ldcache", "--folder", _LIBS, "--folder", "/usr/lib/other"),
    ]
    assert edits.env == ("NVIDIA_VISIBLE_DEVICES=void",)
    assert generated.left_out == (
        "not found below /host: device nodes of the lists /dev/gone",
        f"not found below /host: files of the lists (dir) {_LIBS}/libcuda.so.1.1",
        f"not found below /host: files of the lists (lib) {_LIBS}/gone.so",
    )


def test_newer_cuda_libraries_of_an_image_are_used_where_the_version_is_known(tmp_path: Path) -> None:
    (hook,) = _generated(_board(Tree(tmp_path)).root(), "12.6").spec.edits.hooks[1:-1]
    assert hook.args[2:] == (
        "enable-cuda-compat",
        "--host-cuda-version=12.6",
        "--cuda-compat-container-root=/usr/local/cuda/compat_orin",
    )
    xavier = node(replace(_ORIN, compute_capability=(7, 2)), platform=Platform.TEGRA, cuda="11.4")
    generated = generate(xavier, Config(), _board(Tree(tmp_path / "xavier")).root(), HostDevices())
    assert generated.spec.edits.hooks[1].args[3:] == ("--host-cuda-version=11.4",)


def test_the_lists_may_lie_in_our_own_file_system(tmp_path: Path) -> None:
    tree = _board(Tree(tmp_path / "driver"))
    (tmp_path / "driver" / _LISTS.lstrip("/")).rename(tmp_path / "lists")
    own = Tree(tmp_path / "own").file(f"{_LISTS}/devices.csv", "dev, /dev/nvmap\n").files()
    (device,) = _generated(replace(tree.root(), system=own)).spec.devices
    assert [each.path for each in device.edits.device_nodes] == ["/dev/nvmap"]


def test_a_link_in_a_directory_that_is_a_link_is_relative_to_the_real_one(tmp_path: Path) -> None:
    tree = Tree(tmp_path).file("/opt/l4t/libx.so.1").link("/opt/l4t/lib/libx.so", "../libx.so.1")
    tree.link("/usr/lib/l4t", "/opt/l4t/lib").link("/opt/l4t/lib/first.so", "libx.so")
    assert list(_chain(tree.files(), "/usr/lib/l4t/first.so")) == [
        "libx.so::/usr/lib/l4t/first.so",
        "../libx.so.1::/opt/l4t/lib/libx.so",
    ]


def test_a_circle_of_links_has_an_end(tmp_path: Path) -> None:
    files = Tree(tmp_path).link("/a", "b").link("/b", "a").files()
    assert set(_chain(files, "/a")) == {"b::/a", "a::/b"}


def test_lines_that_are_none_are_told_and_skipped(tmp_path: Path) -> None:
    lines = "dev, /dev/nvmap\nnonsense\nblk, /dev/x\ndev, dev/x\ndev /dev/nvhost-gpu\nlib,\n"
    tree = _board(Tree(tmp_path)).file(f"{_LISTS}/devices.csv", lines)
    generated = _generated(tree.root())
    (device,) = generated.spec.devices
    assert [each.path for each in device.edits.device_nodes] == ["/dev/nvmap"]
    skipped = [sentence for sentence in generated.warnings if "is skipped" in sentence]
    assert skipped[0] == f"{_LISTS}/devices.csv, line 2 is skipped: not a kind and a path: 'nonsense'"
    assert len(skipped) == 5


def test_a_board_without_lists_has_no_device_and_says_so(tmp_path: Path) -> None:
    generated = _generated(Tree(tmp_path).root())
    assert generated.spec.devices == ()
    assert generated.warnings == (f"the lists in {_LISTS} name no device nodes that are there: there is no device",)
    assert generated.left_out == (f"not found below /: lists for Tegra {_LISTS}",)


def test_a_list_that_is_not_there_is_told(tmp_path: Path) -> None:
    tree = Tree(tmp_path).file(f"{_LISTS}/devices.csv", "dev, /dev/nvmap").device("/dev/nvmap")
    assert (
        f"not found below /: lists for Tegra {_LISTS}/drivers.csv, {_LISTS}/l4t.csv" in _generated(tree.root()).left_out
    )


def test_a_simulated_board_has_a_device_to_which_nothing_is_done() -> None:
    config = Config()
    generated = generate(_node(), config, DriverRoot.of_simulated(config), HostDevices())
    generated.spec.check()
    (device,) = generated.spec.devices
    assert device.edits.env == ("NVCT_EMPTY_DEVICE=",)


@given(st.text(max_size=100) | st.text("devsymlib, /*[\n", max_size=60))
def test_any_text_is_a_list_whose_lines_are_used_or_skipped(text: str) -> None:
    with TemporaryDirectory() as directory:
        tree = Tree(Path(directory)).file(f"{_LISTS}/devices.csv", text).device("/dev/nvmap")
        for each in _generated(tree.root()).spec.devices:
            assert [made.path for made in each.edits.device_nodes] == ["/dev/nvmap"]
