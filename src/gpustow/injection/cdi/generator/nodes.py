"""Device nodes as edits: where they are on the host, and which groups a process needs to use them.

What can change is left out. Major numbers are given out when a kernel module is loaded, and the runtime believes a
number that it is given: a file that was written before nvidia-uvm was loaded again would make broken nodes. So neither
numbers nor type nor mode are written, and the runtime reads them from the host's node each time (CDI 1.1; the toolkit
writes them since 1.19). The group is written, because without one the runtime takes the process's own.

A node that is not there is written all the same, and told: the driver makes some only when they are first used, and
the runtime's error names the path. It costs nobody else anything.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import dirname, join, normpath

from gpustow.hardware.node import Gpu
from gpustow.hardware.systemfiles import sysfs_bus_id
from gpustow.injection.cdi.edits import CdiDeviceNode, CdiEdits
from gpustow.injection.cdi.generator.files import Status
from gpustow.injection.cdi.generator.findings import Findings
from gpustow.injection.cdi.generator.roots import DriverRoot
from gpustow.injection.cdi.generator.symlinks import link

PERMISSIONS = "rwm"
"""Read, write and make, as the NVIDIA Container Toolkit has it."""

_WORLD = 0o006


@dataclass(frozen=True, slots=True)
class DeviceNodes:
    """Makes edits of device nodes; `additional_gids` says whether processes get the groups that they need."""

    root: DriverRoot
    findings: Findings
    additional_gids: bool = True

    def edits(self, paths: Iterable[str]) -> CdiEdits:
        """The nodes with these paths in the container, each once, with their groups."""
        nodes: list[CdiDeviceNode] = []
        gids: set[int] = set()
        for path in dict.fromkeys(paths):
            status = self._status(path)
            if status is None:
                self.findings.missing("device nodes", [path])
            host_path = self.root.device_host_path(path)
            gid = status.gid if status is not None else 0
            host_path = "" if host_path == path else host_path
            nodes.append(CdiDeviceNode(path, host_path, permissions=PERMISSIONS, gid=gid or None))
            if status is not None and gid and status.mode & _WORLD != _WORLD:
                gids.add(gid)
        return CdiEdits(device_nodes=tuple(nodes), additional_gids=tuple(sorted(gids)) if self.additional_gids else ())

    def drm_nodes(self, gpu: Gpu) -> tuple[str, ...]:
        """The DRM nodes of this GPU, those that are there."""
        return tuple(path for path in self._listed(gpu) if self._status(path) is not None)

    def drm_links(self, gpu: Gpu, nodes: Iterable[str]) -> tuple[str, ...]:
        """The links that name the GPU's DRM nodes by its PCI bus id, those that lead to one of `nodes`."""
        return tuple(self._drm_links(gpu, frozenset(nodes)))

    def _drm_links(self, gpu: Gpu, nodes: frozenset[str]) -> Iterator[str]:
        for kind in ("card", "render"):
            path = f"/dev/dri/by-path/pci-{_bus_id(gpu)}-{kind}"
            text = self.root.devices.link(path)
            if text is not None and normpath(join(dirname(path), text)) in nodes:
                yield link(text, path)

    def _listed(self, gpu: Gpu) -> Iterator[str]:
        bus_id = _bus_id(gpu)
        if bus_id:
            for name in self.root.system.names(f"/sys/bus/pci/devices/{bus_id}/drm"):
                yield f"/dev/dri/{name}"

    def _status(self, path: str) -> Status | None:
        """Of the device node at `path`; None if there is none, or a link, which no runtime takes for one."""
        status = self.root.devices.status(path)
        return status if status is not None and status.is_character_device else None


def _bus_id(gpu: Gpu) -> str:
    """The GPU's PCI bus id as the kernel writes it; empty where it is not known."""
    try:
        return sysfs_bus_id(gpu.pci_bus_id)
    except ValueError:
        return ""
