"""Which files of the driver are mounted, from where on the host, to where in the container."""

import socket
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from gpustow.injection.cdi.edits import CdiMount
from gpustow.injection.cdi.generator.findings import Findings
from gpustow.injection.cdi.generator.mounts import READ_ONLY, SOCKET, FileSearch
from tests.injection.cdi.generator.drivertree import Tree

_ROOT = "/run/nvidia/driver"
Look = Callable[[FileSearch], Iterable[CdiMount]]


def _found(tree: Tree, look: Look) -> tuple[dict[str, str], tuple[str, ...]]:
    """The mounts, by container path, from where they are; and what is told."""
    search = FileSearch(tree.root(_ROOT), Findings(_ROOT))
    mounts = list(look(search))
    assert all(mount.type == "" for mount in mounts)
    return {mount.container_path: mount.host_path for mount in mounts}, search.findings.left_out


def _same(*paths: str) -> dict[str, str]:
    return {path: _ROOT + path for path in paths}


def test_configuration_files_are_mounted_where_they_are_found(tmp_path: Path) -> None:
    paths = (
        "/etc/X11/xorg.conf.d/10-nvidia.conf",
        "/usr/share/glvnd/egl_vendor.d/10_nvidia.json",
        "/usr/local/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
        "/usr/share/nvidia/nvoptix.bin",
        "/etc/OpenCL/vendors/nvidia.icd",
    )
    tree = Tree(tmp_path)
    for path in (*paths, "/usr/share/other"):
        tree.file(path)
    tree.directory("/etc/nvidia/nvoptix.bin")
    found, told = _found(tree, FileSearch.configurations)
    assert found == _same(*paths)
    (sentence,) = told
    assert sentence == (
        f"not found below {_ROOT}: configuration files egl/egl_external_platform.d/10_nvidia_wayland.json, "
        "egl/egl_external_platform.d/09_nvidia_wayland2.json, X11/xorg.conf.d/nvidia-drm-outputclass.conf"
    )


def test_a_link_is_mounted_from_where_it_leads_inside_the_root(tmp_path: Path) -> None:
    tree = Tree(tmp_path).program("/usr/lib/nvidia/current/nvidia-smi")
    tree.link("/etc/alternatives/nvidia-smi", "/usr/lib/nvidia/current/nvidia-smi")
    tree.link("/usr/bin/nvidia-smi", "/etc/alternatives/nvidia-smi")
    found, _ = _found(tree, FileSearch.programs)
    assert found == {"/usr/bin/nvidia-smi": f"{_ROOT}/usr/lib/nvidia/current/nvidia-smi"}


def test_the_vulkan_files_are_always_below_etc_in_the_container(tmp_path: Path) -> None:
    tree = Tree(tmp_path).file("/usr/share/vulkan/icd.d/nvidia_icd.json").file("/etc/vulkan/icd.d/nvidia_icd.json")
    tree.file("/usr/share/vulkan/implicit_layer.d/nvidia_layers.json")
    found, told = _found(tree, FileSearch.vulkan)
    assert found == {
        "/etc/vulkan/icd.d/nvidia_icd.json": f"{_ROOT}/etc/vulkan/icd.d/nvidia_icd.json",
        "/etc/vulkan/implicit_layer.d/nvidia_layers.json": (
            f"{_ROOT}/usr/share/vulkan/implicit_layer.d/nvidia_layers.json"
        ),
    }
    assert told == (f"not found below {_ROOT}: Vulkan files vulkan/icd.d/nvidia_layers.json",)


def test_the_vulkan_files_may_lie_at_the_root(tmp_path: Path) -> None:
    found, _ = _found(Tree(tmp_path).file("/vulkan/icd.d/nvidia_icd.x86_64.json"), FileSearch.vulkan)
    assert found == {"/etc/vulkan/icd.d/nvidia_icd.x86_64.json": f"{_ROOT}/vulkan/icd.d/nvidia_icd.x86_64.json"}


def test_a_driver_without_vulkan_is_told_once(tmp_path: Path) -> None:
    found, told = _found(Tree(tmp_path), FileSearch.vulkan)
    assert found == {}
    assert len(told) == 1
    assert "vulkan/icd.d/nvidia_icd.json" in told[0]
    assert "x86_64" not in told[0]


_FIRMWARE = "nvidia/999.1/gsp_ga10x.bin"


@pytest.mark.parametrize(
    "places",
    [
        ["/opt/firmware", "/lib/firmware/updates/6.1.0"],
        ["/lib/firmware/updates/6.1.0", "/lib/firmware/updates"],
        ["/lib/firmware/updates", "/lib/firmware/6.1.0"],
        ["/lib/firmware/6.1.0", "/lib/firmware"],
        ["/lib/firmware"],
    ],
)
def test_firmware_is_that_which_the_kernel_would_load(tmp_path: Path, places: list[str]) -> None:
    tree = Tree(tmp_path).file("/sys/module/firmware_class/parameters/path", "/opt/firmware\n")
    tree.file("/proc/sys/kernel/osrelease", "6.1.0\n")
    for place in places:
        tree.file(f"{place}/{_FIRMWARE}").file(f"{place}/nvidia/999.1/other.bin").file(f"{place}/nvidia/1.0/gsp.bin")
    found, told = _found(tree, lambda search: search.firmware("999.1"))
    assert (found, told) == (_same(f"{places[0]}/{_FIRMWARE}"), ())


def test_a_node_without_firmware_is_told(tmp_path: Path) -> None:
    found, told = _found(Tree(tmp_path), lambda search: search.firmware("999.1"))
    assert (found, told) == ({}, (f"not found below {_ROOT}: firmware nvidia/999.1/gsp*.bin",))


def test_programs_are_the_first_that_can_be_run(tmp_path: Path) -> None:
    tree = Tree(tmp_path).file("/usr/local/bin/nvidia-smi").program("/usr/bin/nvidia-smi").program("/bin/nvidia-smi")
    tree.program("/usr/bin/nvidia-imex-ctl").directory("/usr/bin/nvidia-imex")
    found, told = _found(tree, FileSearch.programs)
    assert found == _same("/usr/bin/nvidia-smi", "/usr/bin/nvidia-imex-ctl")
    (sentence,) = told
    assert sentence == (
        f"not found below {_ROOT}: programs nvidia-debugdump, nvidia-persistenced, nvidia-cuda-mps-control, "
        "nvidia-cuda-mps-server, nvidia-imex"
    )


def test_sockets_can_be_written_to_and_run_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path).directory("/run/nvidia-persistenced").directory("/tmp/nvidia-mps")  # noqa: S108 - in the tree
    tree.file("/var/run/nvidia-fabricmanager/socket")
    monkeypatch.chdir(tmp_path)  # a socket's path may have 107 characters
    with socket.socket(socket.AF_UNIX) as persistence:
        persistence.bind("run/nvidia-persistenced/socket")
    mounts = list(FileSearch(tree.root(_ROOT), Findings(_ROOT)).sockets())
    paths = ("/run/nvidia-persistenced/socket", "/var/run/nvidia-fabricmanager/socket", "/tmp/nvidia-mps")  # noqa: S108 - as above
    assert mounts == [CdiMount(_ROOT + path, path, SOCKET) for path in paths]
    assert "ro" not in SOCKET


def test_sockets_that_are_not_there_are_told(tmp_path: Path) -> None:
    found, told = _found(Tree(tmp_path).directory("/run/nvidia-persistenced/socket"), FileSearch.sockets)
    assert found == {}
    assert told == (
        f"not found below {_ROOT}: sockets nvidia-persistenced/socket, nvidia-fabricmanager/socket, /tmp/nvidia-mps",
    )


def test_a_path_that_leads_nowhere_is_not_mounted(tmp_path: Path) -> None:
    tree = Tree(tmp_path).link("/usr/bin/nvidia-smi", "../../../gone").file("/there")
    found, _ = _found(tree, lambda search: search.mounts(["/usr/bin/nvidia-smi", "/gone", "/there"]))
    assert found == _same("/there")


@pytest.mark.parametrize(
    ("home", "driver", "extension"),
    [
        ("/usr/lib64/nvidia/xorg", "", ""),
        ("/usr/lib64/nvidia/xorg/modules", "/drivers", "/extensions"),
        ("/usr/lib64/xorg/modules", "/drivers", "/extensions"),
        ("/usr/lib/xorg/modules/updates", "/drivers", "/extensions"),
        ("/usr/X11R6/lib/modules", "/drivers", "/extensions"),
    ],
)
def test_the_modules_of_x11_are_found(tmp_path: Path, home: str, driver: str, extension: str) -> None:
    paths = (f"{home}{driver}/nvidia_drv.so", f"{home}{extension}/libglxserver_nvidia.so.999.1")
    tree = Tree(tmp_path)
    for path in paths:
        tree.file(path)
    found, told = _found(tree, lambda search: search.xorg("999.1", ["/usr/lib64"]))
    assert (found, told) == (_same(*paths), ())


def test_what_is_mounted_cannot_be_written_to_unless_it_is_a_socket(tmp_path: Path) -> None:
    (mount,) = FileSearch(Tree(tmp_path).program("/usr/bin/nvidia-smi").root(), Findings("/")).programs()
    assert mount == CdiMount("/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi", READ_ONLY)
    assert "ro" in READ_ONLY
