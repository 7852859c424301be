"""The specifications of the other classes: devices that go with GPUs and belong to other drivers, or to several nodes.

class          device             what
imex-channel   the number, `0`    one channel of memory that is shared between nodes
gdrcopy        all                GDRCopy: the processor reads and writes GPU memory
gds            all                GPUDirect Storage: its nodes, udev's data and the configuration file of cuFile
mofed          all                InfiniBand: verbs of every adapter, and connection management

A class is there if the node has its device nodes, by the same reading that Allocate goes by, so that no container asks
for a class without a file.
"""

from collections.abc import Iterator
from dataclasses import replace

from gpustow.config import Config
from gpustow.injection.cdi.edits import CdiEdits, CdiMount
from gpustow.injection.cdi.generator.files import target
from gpustow.injection.cdi.generator.generated import VOID, Generated
from gpustow.injection.cdi.generator.roots import DriverRoot
from gpustow.injection.cdi.generator.sources import Sources
from gpustow.injection.cdi.names import ALL, GDRCOPY_CLASS, GDS_CLASS, IMEX_CLASS, MOFED_CLASS, kind
from gpustow.injection.cdi.specification import CdiDevice, CdiSpec
from gpustow.injection.hostdevices import HostDevices, imex_channel_path

_UDEV = "/run/udev"
_CUFILE = "/etc/cufile.json"


def generate_other_classes(config: Config, root: DriverRoot, host: HostDevices) -> tuple[Generated, ...]:
    """The specifications of the classes beside `gpu` of which the node has device nodes.

    What is told of the roots themselves is told with class `gpu`.
    """
    generated = []
    if host.imex_channels:
        sources = Sources.of(config, root)
        devices = tuple(_channel(number, sources) for number in host.imex_channels)
        generated.append(Generated(CdiSpec(kind(IMEX_CLASS), devices), sources.left_out, sources.warnings))
    for class_, paths in ((GDRCOPY_CLASS, host.gdrcopy), (GDS_CLASS, host.gds), (MOFED_CLASS, host.mofed)):
        if paths:
            sources = Sources.of(config, root)
            edits = sources.nodes.edits(paths)
            if class_ == GDS_CLASS:
                edits += CdiEdits(mounts=tuple(_storage(sources)))
            spec = CdiSpec(kind(class_), (CdiDevice(ALL, edits),), CdiEdits(env=(VOID,)))
            generated.append(Generated(spec, sources.left_out, sources.warnings))
    return tuple(generated)


def _channel(number: int, sources: Sources) -> CdiDevice:
    """A channel's node, with its path on the host in any case, as the toolkit writes it."""
    edits = sources.nodes.edits([imex_channel_path(number)])
    nodes = (replace(node, host_path=sources.root.device_host_path(node.path)) for node in edits.device_nodes)
    return CdiDevice(str(number), replace(edits, device_nodes=tuple(nodes)))


def _storage(sources: Sources) -> Iterator[CdiMount]:
    for path in (_UDEV, _CUFILE):
        if target(sources.root.driver, path) is None:
            sources.findings.missing("files of GPUDirect Storage", [path])
        else:
            yield from sources.search.mounts([path])
