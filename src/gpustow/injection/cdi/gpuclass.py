"""Which devices are in class `gpu` of an ordinary node, and what they are called there.

There is a device for every name that Allocate can answer with, and more: each GPU that is not in MIG mode, and each MIG
device whatever the MIG strategy serves. A GPU in MIG mode is no device of its own, unless the MIG strategy `none`
serves it as if it were whole. A MIG device whose capabilities the kernel does not list has been left out by the reader
already, which says so.

GPUs that the configuration leaves out are left out here too, so that `all`, which is made from these, does not open
them. A name that a container was given before stays in the file for as long as it may be asked for (`oldnames`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpustow.config import Config, MigStrategy
from gpustow.errors import CdiSpecError
from gpustow.hardware.node import Gpu, Node, Platform
from gpustow.injection.cdi.names import ALL, device_name
from gpustow.resources.device import Device
from gpustow.resources.gpu import gpu_device
from gpustow.resources.mig import mig_devices
from gpustow.resources.selection import select_gpus


@dataclass(frozen=True, slots=True)
class GpuClass:
    """The devices by name, each with its GPU; and a sentence for each that has no name, which Allocate refuses."""

    devices: Mapping[str, tuple[Gpu, Device]]
    nameless: tuple[str, ...] = ()


def gpu_class(node: Node, config: Config) -> GpuClass:
    """The devices of class `gpu` where they are GPUs and MIG devices; none under WSL and on Tegra."""
    devices: dict[str, tuple[Gpu, Device]] = {}
    nameless = []
    for gpu, device in _listed(node, config):
        try:
            devices[device_name(device, config.device_id_strategy)] = gpu, device
        except CdiSpecError as error:
            nameless.append(f"device {device.index} is left out: {error}")
    return GpuClass(devices, tuple(nameless))


def device_names(node: Node, config: Config) -> tuple[str, ...]:
    """The names in class `gpu`, beside `all` on an ordinary node; devices whose name CDI does not allow have none."""
    return tuple(gpu_class(node, config).devices) if node.platform is Platform.NVML else (ALL,)


def _listed(node: Node, config: Config) -> Iterator[tuple[Gpu, Device]]:
    if node.platform is not Platform.NVML:
        return
    ours, _ = select_gpus(node, config)
    for gpu in ours.gpus:
        if not gpu.mig_enabled or config.mig_strategy is MigStrategy.NONE:
            yield gpu, gpu_device(gpu)
        yield from ((gpu, device) for device in mig_devices(gpu))
