"""All specifications of a node: class `gpu`, and the other classes that it has devices of.

Class `gpu` has a device for every name that Allocate can answer with, and more: each GPU that is not in MIG mode and
each MIG device whatever the MIG strategy serves, and `all`, which stands for all of them and is what monitoring asks
for (k8s-device-plugin#1203). The NVIDIA Container Toolkit makes it where it is installed and gives every name that is
needed; else our own generator does, and says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpustow.config import Config, MigStrategy
from gpustow.errors import CdiSpecError, HardwareError
from gpustow.hardware.node import Node, Platform
from gpustow.injection.cdi.edits import CdiEdits
from gpustow.injection.cdi.generator import DriverRoot, generate, generate_other_classes
from gpustow.injection.cdi.generator.generated import VOID
from gpustow.injection.cdi.names import ALL, device_name
from gpustow.injection.cdi.simplify import simplified, with_all
from gpustow.injection.cdi.specification import CdiSpec
from gpustow.injection.cdi.toolkit import Toolkit, ToolkitFailed
from gpustow.injection.hostdevices import HostDevices
from gpustow.resources.device import Device
from gpustow.resources.gpu import gpu_device
from gpustow.resources.mig import mig_devices


@dataclass(frozen=True, slots=True)
class CdiSpecs:
    """The specifications, one a class, and what the operator should know about them."""

    specs: tuple[CdiSpec, ...]
    notes: tuple[str, ...] = ()


def cdi_specs(
    node: Node, config: Config, host: HostDevices, root: DriverRoot, toolkit: Toolkit | None = None
) -> CdiSpecs:
    """The specifications of the node. May take seconds.

    Raises:
        HardwareError: nothing is found that a container with a GPU could be given.
        CdiSpecError: a specification breaks the rules of CDI.
    """
    spec, notes = _gpu_spec(node, config, host, root, toolkit)
    others = generate_other_classes(config, root, host)
    specs = tuple(simplified(each) for each in (with_all(spec), *(other.spec for other in others)))
    for each in specs:
        each.check()
    told = (*_nameless(node, config), *notes, *(sentence for other in others for sentence in other.left_out))
    return CdiSpecs(specs, tuple(dict.fromkeys(told)))


def device_names(node: Node, config: Config) -> tuple[str, ...]:
    """The names in class `gpu` that Allocate can answer with; devices whose name CDI does not allow have none."""
    if node.platform is not Platform.NVML:
        return (ALL,)
    named = (_name(device, config) for device in _devices(node, config))
    return tuple(name for name in named if isinstance(name, str))


def _gpu_spec(
    node: Node, config: Config, host: HostDevices, root: DriverRoot, toolkit: Toolkit | None
) -> tuple[CdiSpec, Sequence[str]]:
    told = []
    if toolkit is not None:
        try:
            spec = toolkit.generate(config, node.platform, device_names(node, config))
        except ToolkitFailed as error:
            told.append(f"{toolkit.program} gives no CDI specification, and our own generator makes it: {error}")
        else:
            return replace(spec, edits=_void(spec.edits)), ()
    generated = generate(node, config, root, host)
    if not generated.spec.devices:
        raise HardwareError(
            "there is nothing that a container with a GPU could be given by CDI",
            advice="; ".join([*told, *generated.left_out]),
        )
    return generated.spec, (*told, *generated.left_out)


def _void(edits: CdiEdits) -> CdiEdits:
    """With the variable that tells NVIDIA's own runtime to stay out of it, which the toolkit writes since 1.15."""
    name, _, _ = VOID.partition("=")
    env = tuple(text for text in edits.env if text.partition("=")[0] != name)
    return replace(edits, env=(*env, VOID))


def _devices(node: Node, config: Config) -> Iterator[Device]:
    for gpu in node.gpus:
        if not gpu.mig_enabled or config.mig_strategy is MigStrategy.NONE:
            yield gpu_device(gpu)
        yield from mig_devices(gpu)


def _name(device: Device, config: Config) -> str | CdiSpecError:
    try:
        return device_name(device, config.device_id_strategy)
    except CdiSpecError as error:
        return error


def _nameless(node: Node, config: Config) -> Iterator[str]:
    """A sentence for each device that has no name; Allocate refuses it."""
    if node.platform is Platform.NVML:
        for device in _devices(node, config):
            if isinstance(error := _name(device, config), CdiSpecError):
                yield f"device {device.index} is left out: {error}"
