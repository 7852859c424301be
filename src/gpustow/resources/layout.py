"""Which devices become which resource, by the MIG strategy: the rules and refusals of v0.20.0.

strategy  GPU without MIG   GPU in MIG mode               MIG devices
none      nvidia.com/gpu    nvidia.com/gpu, as if whole   not looked at
single    nvidia.com/gpu    -                             nvidia.com/gpu
mixed     nvidia.com/gpu    -                             nvidia.com/mig-<profile>

`single` promises that all devices of the node are alike, so it refuses a GPU in MIG mode that is empty, MIG devices
that differ, and plain GPUs beside MIG devices, in this order. Under `mixed` an empty GPU is a warning, and so is a MIG
device without a name. The names are those where no pattern of the operator's says otherwise (`naming`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpustow.config import MigStrategy
from gpustow.errors import HardwareError
from gpustow.hardware.mig import MigProfile
from gpustow.hardware.node import Gpu, Node, Platform
from gpustow.resources.device import Device
from gpustow.resources.gpu import gpu_device, joint_device
from gpustow.resources.mig import alike, mig_devices, profile_order
from gpustow.resources.naming import Naming

_UNIFORM_ADVICE = "Give all GPUs of the node the same MIG layout, or set --mig-strategy=mixed."


@dataclass(frozen=True, slots=True)
class Layout:
    """Devices, not yet shared, by the name of their resource: whole GPUs first, then MIG profiles, small to large."""

    devices: Mapping[str, tuple[Device, ...]]
    warnings: tuple[str, ...] = ()


def lay_out(node: Node, naming: Naming) -> Layout:
    """The resources of `node`, each with one device or more.

    Raises HardwareError if the node's MIG devices do not go with the MIG strategy.
    """
    gpus = sorted(node.gpus, key=lambda gpu: gpu.index)
    if node.platform is not Platform.NVML:
        return Layout(_gathered((naming.of_gpu(gpu.model), joint_device(node.platform, gpu)) for gpu in gpus[:1]))
    cut = [gpu for gpu in gpus if gpu.mig_enabled]
    if naming.strategy is MigStrategy.NONE:
        return Layout(_gathered(_whole(gpus, naming)), _warn_of_ignored(cut))
    plain = [gpu for gpu in gpus if not gpu.mig_enabled]
    if cut and naming.strategy is MigStrategy.SINGLE:
        _check_uniform(plain, cut)
    parts, nameless = _parts(cut, naming)
    return Layout(
        _gathered([*_whole(plain, naming), *parts]), (*_warn_of_empty(cut), *map(_warn_of_nameless, nameless))
    )


def _whole(gpus: Sequence[Gpu], naming: Naming) -> list[tuple[str, Device]]:
    return [(naming.of_gpu(gpu.model), gpu_device(gpu)) for gpu in gpus]


def _parts(cut: Sequence[Gpu], naming: Naming) -> tuple[list[tuple[str, Device]], list[tuple[MigProfile, Device]]]:
    """The MIG devices with the names of their resources, small profiles first; and those without a name."""
    named: list[tuple[str, Device]] = []
    nameless: list[tuple[MigProfile, Device]] = []
    for profile, device in sorted(_with_profile(cut), key=lambda pair: profile_order(pair[0])):
        name = naming.of_mig(profile)
        if name is None:
            nameless.append((profile, device))
        else:
            named.append((name, device))
    return named, nameless


def _gathered(named: Iterable[tuple[str, Device]]) -> dict[str, tuple[Device, ...]]:
    """Devices by the name of their resource, in the order in which the names come."""
    devices: dict[str, list[Device]] = {}
    for name, device in named:
        devices.setdefault(name, []).append(device)
    return {name: _in_order(own) for name, own in devices.items()}


def _check_uniform(plain: Sequence[Gpu], cut: Sequence[Gpu]) -> None:
    """Raises HardwareError if the node breaks what `single` promises."""
    if empty := _empty(cut):
        raise HardwareError(
            f"MIG strategy single: {_listed(empty)} in MIG mode without MIG devices",
            advice="Create MIG devices there, turn its MIG mode off, or set --mig-strategy=mixed.",
        )
    if not alike([profile for gpu in cut for profile in _profiles(gpu)]):
        raise HardwareError(
            f"MIG strategy single: more than one MIG device type present on node: {_layouts(cut)}",
            advice="Give every GPU of the node MIG devices of the same one profile, or set migStrategy to mixed.",
        )
    if plain:
        raise HardwareError(
            "MIG strategy single: all devices on the node must be configured with the same migEnabled value, but "
            f"{_listed(plain)} not in MIG mode, and {_listed(cut)}",
            advice=_UNIFORM_ADVICE,
        )


def _in_order(devices: Sequence[Device]) -> tuple[Device, ...]:
    return tuple(sorted(devices, key=lambda device: (device.gpu_index, device.edge, device.uuid)))


def _with_profile(cut: Sequence[Gpu]) -> list[tuple[MigProfile, Device]]:
    return [(device.mig.profile, device) for gpu in cut for device in mig_devices(gpu) if device.mig is not None]


def _profiles(gpu: Gpu) -> list[MigProfile]:
    return [device.profile for device in gpu.mig_devices]


def _layouts(cut: Sequence[Gpu]) -> str:
    """The profiles of each GPU, told once for GPUs that are cut alike."""
    gpus: dict[str, list[str]] = {}
    for gpu in cut:
        number = Counter(profile.name for profile in sorted(_profiles(gpu), key=profile_order))
        layout = " + ".join(f"{count} x {name}" for name, count in number.items())
        gpus.setdefault(layout, []).append(str(gpu.index))
    return "; ".join(f"GPU {', '.join(indices)}: {layout}" for layout, indices in gpus.items())


def _empty(cut: Sequence[Gpu]) -> list[Gpu]:
    return [gpu for gpu in cut if not gpu.mig_devices]


def _called(gpu: Gpu) -> str:
    return f"GPU {gpu.index} ({gpu.uuid})"


def _listed(gpus: Sequence[Gpu]) -> str:
    return f"{', '.join(map(_called, gpus))} {'is' if len(gpus) == 1 else 'are'}"


def _warn_of_empty(cut: Sequence[Gpu]) -> tuple[str, ...]:
    empty = _empty(cut)
    if not empty:
        return ()
    return (f"{_listed(empty)} in MIG mode without MIG devices and cannot be asked for; create some or turn MIG off",)


def _warn_of_nameless(found: tuple[MigProfile, Device]) -> str:
    """Tells of a MIG device that is only a part of its GPU instance."""
    profile, device = found
    return (
        f"MIG device {device.index} ({device.uuid}, {profile.name}) is only a part of its GPU instance, which no "
        "resource name of MIG strategy mixed can tell, and is not offered; name a resource for it in resources.mig"
    )


def _warn_of_ignored(cut: Sequence[Gpu]) -> tuple[str, ...]:
    """Tells of GPUs in MIG mode that are served as if they were whole, as v0.20.0 does."""
    if not cut:
        return ()
    effect = "containers will not find a whole GPU there: set --mig-strategy to single or mixed"
    return (f"{_listed(cut)} in MIG mode, but offered as whole under MIG strategy none; {effect}",)
