"""Tegra: boards such as Jetson, whose GPU is part of the processor. There is no NVML to ask, or one that says little.

What kind of board it is stands in files, as L4T (NVIDIA's Linux for Tegra) and the kernel write them. The GPU is always
one, has no device node, no memory and no NUMA node of its own; it is passed to containers by the container runtime's
own lists of files. As in k8s-device-plugin v0.20.0 its device is called `tegra`.

Limits: the version of the driver is not read.
"""

from pathlib import Path

from gpustow.hardware.node import Gpu, Node, Platform

DEVICE = "tegra"

_RELEASE = "etc/nv_tegra_release"
_FAMILY = "sys/devices/soc0/family"
_COMPATIBLE = "proc/device-tree/compatible"
_MODEL = "proc/device-tree/model"

COMPUTE_CAPABILITIES = {
    "tegra210": (5, 3),
    "tegra186": (6, 2),
    "tegra194": (7, 2),
    "tegra234": (8, 7),
}
"""By the processor's name in the device tree: TX1 and Nano, TX2, Xavier, Orin (NVIDIA's list of CUDA GPUs)."""


def is_tegra(root: Path) -> bool:
    """Whether the files below `root` are those of a Tegra board: the test of NVIDIA's go-nvlib.

    Other makers of processors have a file with the family as well, so that its text decides.
    """
    return (root / _RELEASE).exists() or _text(root, _FAMILY).lower().startswith("tegra")


class TegraReader:
    """A NodeReader for Tegra boards, from the files below `root`. `name` is the node's."""

    def __init__(self, name: str, root: Path) -> None:
        self._name = name
        self._root = root

    def read(self) -> Node:
        """The node. It has its GPU also where the files say nothing about it."""
        gpu = Gpu(
            index=0,
            uuid=DEVICE,
            pci_bus_id="",
            minor=0,
            model=_text(self._root, _MODEL) or "Tegra",
            memory_bytes=None,
            compute_capability=_compute_capability(_text(self._root, _COMPATIBLE)),
            numa_node=None,
            device_paths=(),
        )
        return Node(self._name, Platform.TEGRA, (gpu,))


def _compute_capability(compatible: str) -> tuple[int, int] | None:
    """From the device tree's list of what the board is compatible with, special names first."""
    names = (entry.removeprefix("nvidia,") for entry in compatible.split("\0"))
    return next((COMPUTE_CAPABILITIES[name] for name in names if name in COMPUTE_CAPABILITIES), None)


def _text(root: Path, path: str) -> str:
    """What stands in a file, without the zero that ends texts of the device tree; nothing if it cannot be read."""
    try:
        return (root / path).read_text(encoding="utf-8", errors="replace").strip("\0\n ")
    except OSError:
        return ""
