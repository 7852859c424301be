"""The parts of the specification of an ordinary node: its GPUs and MIG devices, and what all of them need.

Which devices there are, and their names, is a matter of class `gpu` (`gpuclass`).

Which GPUs share coherent memory with the processor, the annotation that a feature flag asks for, is told by their
model: those on one module with a Grace processor do. (The toolkit asks NVML for the addressing mode.)

Graphics on a MIG device takes a profile that allows it (`+gfx`); only such a device gets the DRM nodes.
"""

import re
from collections.abc import Iterator, Sequence

from gpustow.hardware.node import Gpu, Node
from gpustow.injection.cdi.edits import CdiEdits, CdiHook, CdiMount
from gpustow.injection.cdi.generator.generated import Parts
from gpustow.injection.cdi.generator.libraries import DriverLibraries, find_libraries, library_directories
from gpustow.injection.cdi.generator.sources import Sources
from gpustow.injection.cdi.generator.symlinks import driver_links, graphics_links
from gpustow.injection.cdi.gpuclass import gpu_class
from gpustow.injection.cdi.specification import CdiDevice
from gpustow.injection.hostdevices import HostDevices
from gpustow.resources.device import Device

COHERENT = "gpu.nvidia.com/coherent"
_COHERENT_MODEL = re.compile(r"\bG[HB]\d+")
"""GH200, GB200, GB300: Grace with Hopper, with Blackwell."""

_GRAPHICS = "gfx"


def nvml_parts(node: Node, host: HostDevices, sources: Sources) -> Parts:
    """The devices and common edits of a node with NVIDIA's ordinary driver."""
    listed = gpu_class(node, sources.config).devices.items()
    devices = tuple(_device(name, gpu, device, sources) for name, (gpu, device) in listed)
    return Parts(devices, _common(node, host, sources))


def _device(name: str, gpu: Gpu, device: Device, sources: Sources) -> CdiDevice:
    annotations = {}
    if sources.features.coherent_annotations and device.mig is None:
        annotations[COHERENT] = str(_COHERENT_MODEL.search(gpu.model) is not None).lower()
    return CdiDevice(name, _device_edits(gpu, device, sources), annotations)


def _device_edits(gpu: Gpu, device: Device, sources: Sources) -> CdiEdits:
    if device.mig is not None and _GRAPHICS not in device.mig.profile.attribute:
        return sources.nodes.edits(device.paths)
    drm = sources.nodes.drm_nodes(gpu)
    links = sources.nodes.drm_links(gpu, drm)
    return sources.nodes.edits((*device.paths, *drm)) + CdiEdits(hooks=sources.hooks.create_symlinks(links))


def _common(node: Node, host: HostDevices, sources: Sources) -> CdiEdits:
    """What every container with a device of this node gets."""
    libraries = find_libraries(
        sources.root.driver, node.driver_version, sources.findings, explicit=sources.features.explicit_libraries
    )
    modules = tuple(sources.search.xorg(libraries.version, libraries.directories)) if libraries.directories else ()
    edits = CdiEdits(
        env=_environment(libraries),
        mounts=tuple(_mounts(libraries, modules, sources)),
        hooks=_hooks(libraries, modules, sources),
    )
    return edits + sources.nodes.edits(host.control)


def _mounts(libraries: DriverLibraries, modules: Sequence[CdiMount], sources: Sources) -> Iterator[CdiMount]:
    search = sources.search
    yield from search.mounts((*libraries.driver, *libraries.graphics))
    yield from modules
    yield from search.configurations()
    yield from search.vulkan()
    if libraries.version:
        yield from search.firmware(libraries.version)
    yield from search.programs()
    if sources.features.sockets:
        yield from search.sockets()


def _hooks(libraries: DriverLibraries, modules: Sequence[CdiMount], sources: Sources) -> tuple[CdiHook, ...]:
    files, hooks, version = sources.root.driver, sources.hooks, libraries.version
    others = (*libraries.driver, *(module.container_path for module in modules))
    return (
        *hooks.create_symlinks(graphics_links(files, libraries.graphics, others, version)),
        *hooks.create_symlinks(driver_links(files, libraries.driver, version)),
        *(hooks.enable_cuda_compat(f"--host-driver-version={version}") if version else ()),
        *hooks.update_ldcache(library_directories(libraries.driver)),
        *hooks.disable_device_node_modification(),
        *hooks.update_application_profile(),
    )


def _environment(libraries: DriverLibraries) -> tuple[str, ...]:
    if not libraries.directories:
        return ()
    return (f"NVIDIA_CTK_LIBCUDA_DIR={':'.join(libraries.directories)}",)
