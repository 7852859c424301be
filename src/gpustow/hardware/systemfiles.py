"""What the kernel tells about GPUs in /sys and /proc: NUMA nodes, and the device nodes of MIG instances.

Both are read below a root that is passed in, so that a host's files can be read from where they are mounted. A file
that is not there says nothing, as in k8s-device-plugin v0.20.0; a file that is there and makes no sense is an error.
"""

import re
from pathlib import Path

MIG_MINORS = "proc/driver/nvidia-caps/mig-minors"
"""Where the driver lists the minor numbers of MIG capabilities, below the root."""

_LINE = re.compile(r"gpu(\d+)/gi(\d+)(?:/ci(\d+))?/access (\d+)")

MigMinors = dict[tuple[int, int, int | None], int]
"""Minor numbers by the GPU's minor number, GPU instance, and compute instance (None: of the GPU instance itself)."""


def sysfs_bus_id(bus_id: str) -> str:
    """NVML's PCI bus id as sysfs writes it: `00000008:01:00.0` is `0008:01:00.0` there."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def numa_node(root: Path, bus_id: str) -> int | None:
    """The NUMA node of a PCI device; None where the kernel knows none.

    Raises:
        ValueError: the kernel's file holds no number.
    """
    try:
        text = (root / "sys/bus/pci/devices" / sysfs_bus_id(bus_id) / "numa_node").read_text(encoding="ascii").strip()
    except OSError:
        return None
    node = int(text)
    return node if node >= 0 else None


def mig_minors(root: Path) -> MigMinors:
    """The minor numbers of all MIG instances that can exist; empty where the driver has no such file."""
    try:
        text = (root / MIG_MINORS).read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    minors: MigMinors = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is not None:
            gpu, gpu_instance, compute_instance, minor = match.groups()
            key = (int(gpu), int(gpu_instance), None if compute_instance is None else int(compute_instance))
            minors[key] = int(minor)
    return minors


def capability_path(minor: int) -> str:
    """The device node of a MIG capability."""
    return f"/dev/nvidia-caps/nvidia-cap{minor}"
