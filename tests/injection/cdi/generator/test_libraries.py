"""Which libraries are found, in the layouts in which drivers are installed."""

from pathlib import Path

import pytest

from gpustow.injection.cdi.generator.findings import Findings
from gpustow.injection.cdi.generator.libraries import DriverLibraries, find_libraries, library_directories
from tests.injection.cdi.generator.drivertree import I386, X86_64, Tree, ld_cache
from tests.injection.cdi.generator.nodes import GLIBC, VERSION


def _found(tree: Tree, version: str = VERSION, *, explicit: bool = False) -> tuple[DriverLibraries, tuple[str, ...]]:
    findings = Findings("/")
    libraries = find_libraries(tree.files(), version, findings, explicit=explicit)
    return libraries, (*findings.warnings, *findings.left_out)


@pytest.mark.parametrize(
    "directory",
    [
        "/usr/lib64",
        GLIBC,
        "/usr/lib/aarch64-linux-gnu",
        f"{GLIBC}/nvidia/current",
        "/lib64",
        "/lib/x86_64-linux-gnu/nvidia/current",
        "",
    ],
)
def test_libraries_of_the_drivers_version_are_found_where_drivers_put_them(tmp_path: Path, directory: str) -> None:
    tree = Tree(tmp_path)
    for name in ("libcuda", "libnvidia-ml", "vdpau/libvdpau_nvidia"):
        tree.library(f"{directory}/{name}.so.{VERSION}")
    tree.library(f"{directory}/libcuda.so.1.2.3").library(f"{directory}/libc.so.6")
    libraries, _ = _found(tree)
    assert libraries == DriverLibraries(
        VERSION,
        (directory or "/",),
        tuple(f"{directory}/{name}.so.{VERSION}" for name in ("libcuda", "libnvidia-ml", "vdpau/libvdpau_nvidia")),
    )


def test_a_directory_that_is_another_by_a_link_is_one(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library(f"/usr/lib64/libcuda.so.{VERSION}").link("/lib64", "usr/lib64")
    libraries, _ = _found(tree)
    assert libraries.directories == ("/usr/lib64",)
    assert libraries.driver == (f"/usr/lib64/libcuda.so.{VERSION}",)


def test_libraries_may_lie_in_two_directories(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library(f"/usr/lib64/libcuda.so.{VERSION}").library(f"{GLIBC}/libnvidia-ml.so.{VERSION}")
    libraries, _ = _found(tree)
    assert libraries.directories == ("/usr/lib64", GLIBC)
    assert libraries.driver == (f"/usr/lib64/libcuda.so.{VERSION}", f"{GLIBC}/libnvidia-ml.so.{VERSION}")


def test_a_library_that_is_no_lib_by_name_goes_with_the_driver(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library(f"/usr/lib64/libcuda.so.{VERSION}").library(f"/usr/lib64/tls_test.so.{VERSION}")
    libraries, _ = _found(tree)
    assert libraries.driver == (f"/usr/lib64/libcuda.so.{VERSION}", f"/usr/lib64/tls_test.so.{VERSION}")


def test_elsewhere_libraries_are_found_by_the_loaders_cache(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for name, soname in (("libcuda", "libcuda.so.1"), ("libnvidia-ml", "libnvidia-ml.so.1")):
        tree.library(f"/opt/nvidia/lib/{name}.so.{VERSION}").link(f"/opt/nvidia/lib/{soname}", f"{name}.so.{VERSION}")
    tree.library(f"/opt/nvidia/lib32/libcuda.so.{VERSION}").link("/opt/nvidia/lib32/libcuda.so.1", "gone")
    tree.file(
        "/etc/ld.so.cache",
        ld_cache(
            [
                ("libcuda.so.1", "/opt/nvidia/lib/libcuda.so.1", X86_64),
                ("libcuda.so.1", "/opt/nvidia/lib32/libcuda.so.1", I386),
                ("libgone.so.1", "/opt/gone/libgone.so.1", X86_64),
            ],
            old=1,
        ),
    )
    libraries, told = _found(tree)
    assert libraries.directories == ("/opt/nvidia/lib",)
    assert libraries.driver == tuple(f"/opt/nvidia/lib/{name}.so.{VERSION}" for name in ("libcuda", "libnvidia-ml"))
    assert not [each for each in told if "cache" in each]


def test_a_damaged_cache_is_told_and_costs_only_what_it_would_have_shown(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library(f"/usr/lib64/libcuda.so.{VERSION}").file("/etc/ld.so.cache", "nonsense")
    libraries, told = _found(tree)
    assert libraries.driver == (f"/usr/lib64/libcuda.so.{VERSION}",)
    assert told[0] == "/etc/ld.so.cache of the driver root is not used: it is too short for its header"


@pytest.mark.parametrize("name", ["libcuda", "libnvidia-ml"])
def test_without_nvml_the_version_is_that_in_the_names_of_libraries(tmp_path: Path, name: str) -> None:
    tree = Tree(tmp_path).library(f"/usr/lib64/{name}.so.550.54.15").library("/usr/lib64/libcuda.so.1")
    libraries, _ = _found(tree, "")
    assert (libraries.version, libraries.directories) == ("550.54.15", ("/usr/lib64",))


def test_a_cache_that_is_too_large_to_be_one_is_told_and_not_used(tmp_path: Path) -> None:
    library = f"/opt/nvidia/libcuda.so.{VERSION}"
    cache = ld_cache([("libcuda.so.1", library, X86_64)])
    largest = cache + b"\0" * ((8 << 20) - len(cache))
    tree = Tree(tmp_path).library(library).file("/etc/ld.so.cache", largest)
    assert _found(tree)[0].driver == (library,)
    libraries, told = _found(tree.file("/etc/ld.so.cache", largest + b"\0"))
    assert libraries.driver == ()
    assert told[0] == "/etc/ld.so.cache of the driver root is not used: it is larger than 8 MiB"


def test_libraries_of_another_version_than_is_loaded_are_not_given_and_told(tmp_path: Path) -> None:
    libraries, told = _found(Tree(tmp_path).library("/usr/lib64/libcuda.so.550.54.15"), "560.1")
    assert libraries == DriverLibraries("560.1")
    (sentence,) = told
    assert sentence == (
        "the libraries below the driver root are those of driver 550.54.15, but driver 560.1 is loaded: containers get "
        "none; load the new driver (or reboot the node), or correct the driver root"
    )


def test_a_root_without_libraries_is_told(tmp_path: Path) -> None:
    libraries, told = _found(Tree(tmp_path))
    assert libraries == DriverLibraries(VERSION)
    assert told == (
        f"there are no libraries of driver {VERSION} below the driver root: containers get none; is it mounted?",
    )
    libraries, told = _found(Tree(tmp_path), "")
    assert libraries == DriverLibraries("")
    assert told == ("the driver's version is not known, neither from NVML nor by its libraries: containers get none",)


def test_a_version_is_no_pattern(tmp_path: Path) -> None:
    libraries, _ = _found(Tree(tmp_path).library("/usr/lib64/libcuda.so.1.1"), "*")
    assert libraries.driver == ()


def test_libraries_with_numbers_of_their_own_go_with_the_driver(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library(f"/usr/lib64/libcuda.so.{VERSION}").library("/usr/lib64/libnvidia-nvvm70.so.4")
    tree.library("/usr/lib64/libnvidia-egl-gbm.so.1.1.0").library("/usr/lib64/libnvidia-egl-wayland.so.1.1.9")
    tree.library("/usr/lib64/libGL.so.1.7.0").link("/usr/lib64/libGL.so", "libGL.so.1.7.0")
    libraries, told = _found(tree)
    assert libraries.driver == (f"/usr/lib64/libcuda.so.{VERSION}", "/usr/lib64/libnvidia-nvvm70.so.4")
    assert libraries.graphics == (
        "/usr/lib64/libnvidia-egl-gbm.so.1.1.0",
        "/usr/lib64/libnvidia-egl-wayland.so.1.1.9",
    )
    assert told == ("not found below /: graphics libraries libnvidia-egl-wayland2.so.*.*",)
    libraries, told = _found(tree, explicit=True)
    assert libraries.driver[-1] == "/usr/lib64/libGL.so.1.7.0"
    assert "libraries libEGL.so, libGLESv1_CM.so" in told[0]


def test_a_link_that_leaves_the_root_is_not_followed_out_of_it(tmp_path: Path) -> None:
    (tmp_path / f"libcuda.so.{VERSION}").touch()
    tree = Tree(tmp_path / "root").link(f"/usr/lib64/libcuda.so.{VERSION}", f"../../../libcuda.so.{VERSION}")
    tree.link(f"/usr/lib64/libnvidia-ml.so.{VERSION}", f"{tmp_path}/libcuda.so.{VERSION}")
    libraries, _ = _found(tree)
    assert libraries.driver == ()


@pytest.mark.parametrize(
    ("name", "is_library"),
    [
        ("libcuda.so", True),
        ("libcuda.so.1", True),
        ("libcuda.so.999.1", True),
        ("lib.so", False),
        ("libcuda.so_old", False),
        ("libcuda.sock", False),
        ("nvidia_drv.so", False),
        ("nvcubins.bin", False),
    ],
)
def test_the_loader_is_told_of_directories_with_libraries_by_their_names(name: str, *, is_library: bool) -> None:
    assert library_directories([f"/a/{name}", f"/a/{name}"]) == (("/a",) if is_library else ())
