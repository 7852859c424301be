"""Device nodes: their places, their groups, and the nodes for drawing."""

from pathlib import Path

import pytest

from gpustow.injection.cdi.edits import CdiDeviceNode, CdiEdits
from gpustow.injection.cdi.generator.findings import Findings
from gpustow.injection.cdi.generator.nodes import DeviceNodes
from tests.injection.cdi.generator.drivertree import Tree
from tests.injection.cdi.generator.nodes import GPU_0, gpu

_GPU = gpu(0, GPU_0, "00000000:3B:00.0")
_SYSFS = "/sys/bus/pci/devices/0000:3b:00.0"


def _nodes(tree: Tree, dev_root: str = "/", *, additional_gids: bool = True) -> DeviceNodes:
    return DeviceNodes(tree.root("/driver", dev_root), Findings(dev_root), additional_gids=additional_gids)


def test_a_node_has_its_path_and_no_number_that_could_change(tmp_path: Path) -> None:
    nodes = _nodes(Tree(tmp_path).device("/dev/nvidia0"))
    assert nodes.edits(["/dev/nvidia0", "/dev/nvidia0"]) == CdiEdits(
        device_nodes=(CdiDeviceNode("/dev/nvidia0", permissions="rwm"),)
    )
    assert nodes.findings.left_out == ()


def test_the_hosts_path_is_below_the_dev_root(tmp_path: Path) -> None:
    (node,) = _nodes(Tree(tmp_path).device("/dev/nvidia0"), "/run/nvidia/driver").edits(["/dev/nvidia0"]).device_nodes
    assert (node.path, node.host_path) == ("/dev/nvidia0", "/run/nvidia/driver/dev/nvidia0")


@pytest.mark.parametrize(
    ("mode", "gid", "gids"), [(0o660, 44, (44,)), (0o666, 44, ()), (0o664, 44, (44,)), (0o660, 0, ())]
)
def test_the_group_is_needed_where_not_everybody_may_read_and_write(
    tmp_path: Path, mode: int, gid: int, gids: tuple[int, ...]
) -> None:
    tree = Tree(tmp_path).device("/dev/dri/card0", mode=mode, gid=gid)
    edits = _nodes(tree).edits(["/dev/dri/card0"])
    assert edits.additional_gids == gids
    assert edits.device_nodes[0].gid == (gid or None)
    without = _nodes(tree, additional_gids=False).edits(["/dev/dri/card0"])
    assert without.additional_gids == ()
    assert without.device_nodes == edits.device_nodes


def test_groups_are_sorted_and_each_is_there_once(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for name, gid in (("a", 109), ("b", 44), ("c", 109)):
        tree.device(f"/dev/{name}", mode=0o660, gid=gid)
    assert _nodes(tree).edits(["/dev/a", "/dev/b", "/dev/c"]).additional_gids == (44, 109)


def test_a_node_that_is_not_there_is_written_and_told(tmp_path: Path) -> None:
    nodes = _nodes(Tree(tmp_path).file("/dev/nvidia1").device("/dev/real").link("/dev/nvidia2", "real"), "/root")
    edits = nodes.edits(["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2"])
    assert [node.path for node in edits.device_nodes] == ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2"]
    assert nodes.findings.left_out == ("not found below /root: device nodes /dev/nvidia0, /dev/nvidia1, /dev/nvidia2",)


def test_the_nodes_for_drawing_are_those_that_the_kernel_has_for_the_gpu(tmp_path: Path) -> None:
    tree = Tree(tmp_path).link(_SYSFS, "../../../devices/pci0000:3a/0000:3b:00.0")
    for name in ("card1", "renderD128", "controlD64"):
        tree.directory(f"/sys/devices/pci0000:3a/0000:3b:00.0/drm/{name}")
    for name in ("card0", "card1", "renderD128"):
        tree.device(f"/dev/dri/{name}")
    tree.link("/dev/dri/by-path/pci-0000:3b:00.0-card", "../card1")
    tree.link("/dev/dri/by-path/pci-0000:3b:00.0-render", "../renderD129")
    nodes = _nodes(tree, "/run/nvidia/driver")
    assert nodes.drm_nodes(_GPU) == ("/dev/dri/card1", "/dev/dri/renderD128")
    links = nodes.drm_links(_GPU, nodes.drm_nodes(_GPU))
    assert links == ("../card1::/dev/dri/by-path/pci-0000:3b:00.0-card",)


@pytest.mark.parametrize("bus_id", ["", "nonsense", "00000000:AF:00.0"])
def test_a_gpu_of_which_the_kernel_knows_no_nodes_for_drawing_has_none(tmp_path: Path, bus_id: str) -> None:
    nodes = _nodes(Tree(tmp_path).directory(f"{_SYSFS}/drm/card0").device("/dev/dri/card0"))
    unknown = gpu(0, GPU_0, bus_id)
    assert nodes.drm_nodes(unknown) == ()
    assert nodes.drm_links(unknown, ["/dev/dri/card0"]) == ()
