"""The other names of libraries."""

from pathlib import Path

from gpustow.injection.cdi.generator.symlinks import driver_links, graphics_links
from tests.injection.cdi.generator.drivertree import Tree
from tests.injection.cdi.generator.nodes import VERSION

_CUDA = f"/usr/lib64/libcuda.so.{VERSION}"


def test_links_beside_a_library_are_made_by_its_own_name(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library(f"/usr/lib64/libnvidia-ml.so.{VERSION}", "libnvidia-ml.so.1")
    tree.link("/usr/lib64/libnvidia-ml.so.1", f"libnvidia-ml.so.{VERSION}")
    tree.link("/usr/lib64/libnvidia-ml.so", "libnvidia-ml.so.1")
    assert driver_links(tree.files(), [f"/usr/lib64/libnvidia-ml.so.{VERSION}"], VERSION) == (
        f"libnvidia-ml.so.{VERSION}::/usr/lib64/libnvidia-ml.so.1",
        "libnvidia-ml.so.1::/usr/lib64/libnvidia-ml.so",
    )


def test_a_name_that_is_no_link_on_the_host_is_not_made_one(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library(f"/usr/lib64/libnvidia-ml.so.{VERSION}", "libnvidia-ml.so.1")
    tree.library("/usr/lib64/libnvidia-ml.so.1")
    assert driver_links(tree.files(), [f"/usr/lib64/libnvidia-ml.so.{VERSION}"], VERSION) == ()


def test_a_library_without_a_name_is_linked_by_its_file(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library(f"/usr/lib64/libx.so.{VERSION}").link("/usr/lib64/libx.so", f"libx.so.{VERSION}")
    assert driver_links(tree.files(), [f"/usr/lib64/libx.so.{VERSION}", "/usr/lib64/gone.so.1"], VERSION) == (
        f"libx.so.{VERSION}::/usr/lib64/libx.so",
    )


def test_a_library_whose_name_is_the_short_one_is_linked_once(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library(f"/usr/lib64/libx.so.{VERSION}", "libx.so")
    tree.link("/usr/lib64/libx.so", f"libx.so.{VERSION}")
    assert driver_links(tree.files(), [f"/usr/lib64/libx.so.{VERSION}"], VERSION) == (
        f"libx.so.{VERSION}::/usr/lib64/libx.so",
    )


def test_some_links_are_made_whether_or_not_the_host_has_them(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library(_CUDA, "libcuda.so.1")
    paths = [_CUDA, f"/usr/lib64/libGLX_nvidia.so.{VERSION}", f"/usr/lib64/libnvidia-opticalflow.so.{VERSION}"]
    expected = (
        "libcuda.so.1::/usr/lib64/libcuda.so",
        f"libGLX_nvidia.so.{VERSION}::/usr/lib64/libGLX_indirect.so.0",
        "libnvidia-opticalflow.so.1::/usr/lib64/libnvidia-opticalflow.so",
    )
    assert driver_links(tree.files(), paths, VERSION) == expected
    tree.link("/usr/lib64/libcuda.so", "libcuda.so.1")
    assert driver_links(tree.files(), paths, VERSION) == expected


def test_drawing_has_links_of_its_own(tmp_path: Path) -> None:
    tree = Tree(tmp_path).library("/usr/lib64/libnvidia-egl-gbm.so.1.1.0", "libnvidia-egl-gbm.so.1")
    tree.link("/usr/lib64/libnvidia-egl-gbm.so.1", "libnvidia-egl-gbm.so.1.1.0")
    others = [
        f"/usr/lib64/libnvidia-allocator.so.{VERSION}",
        f"/usr/lib64/libnvidia-vulkan-producer.so.{VERSION}",
        f"/usr/lib/xorg/modules/extensions/libglxserver_nvidia.so.{VERSION}",
    ]
    assert graphics_links(tree.files(), ["/usr/lib64/libnvidia-egl-gbm.so.1.1.0"], others, VERSION) == (
        "../libnvidia-allocator.so.1::/usr/lib64/gbm/nvidia-drm_gbm.so",
        f"libnvidia-vulkan-producer.so.{VERSION}::/usr/lib64/libnvidia-vulkan-producer.so",
        f"libglxserver_nvidia.so.{VERSION}::/usr/lib/xorg/modules/extensions/libglxserver_nvidia.so",
        "libnvidia-egl-gbm.so.1.1.0::/usr/lib64/libnvidia-egl-gbm.so.1",
    )
