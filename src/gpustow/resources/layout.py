"""Which devices become which resource, by the MIG strategy: the rules and refusals of v0.20.0.

strategy  GPU without MIG   GPU in MIG mode               MIG devices
none      nvidia.com/gpu    nvidia.com/gpu, as if whole   not looked at
single    nvidia.com/gpu    -                             nvidia.com/gpu
mixed     nvidia.com/gpu    -                             nvidia.com/mig-<profile>

`single` promises that all devices of the node are alike, so it refuses a GPU in MIG mode that is empty, MIG devices
that differ, and plain GPUs beside MIG devices, in this order. Under `mixed` an empty GPU is a warning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpustow.config import MigStrategy
from gpustow.errors import HardwareError
from gpustow.hardware.mig import MigProfile
from gpustow.hardware.node import Gpu, Node, Platform
from gpustow.resources.device import Device
from gpustow.resources.gpu import GPU_RESOURCE, gpu_device, platform_devices
from gpustow.resources.mig import alike, mig_devices, mig_resource_name, profile_order

_UNIFORM_ADVICE = "Give all GPUs of the node the same MIG layout, or set --mig-strategy=mixed."


@dataclass(frozen=True, slots=True)
class Layout:
    """Devices, not yet shared, by the name of their resource: whole GPUs first, then MIG profiles, small to large."""

    devices: Mapping[str, tuple[Device, ...]]
    warnings: tuple[str, ...] = ()


def lay_out(node: Node, strategy: MigStrategy) -> Layout:
    """The resources of `node`, each with one device or more.

    Raises HardwareError if the node's MIG devices do not go with `strategy`.
    """
    if node.platform is not Platform.NVML:
        return Layout(_named(platform_devices(node)))
    gpus = sorted(node.gpus, key=lambda gpu: gpu.index)
    cut = [gpu for gpu in gpus if gpu.mig_enabled]
    if not cut or strategy is MigStrategy.NONE:
        return Layout(_named([gpu_device(gpu) for gpu in gpus]), _warn_of_ignored(cut))
    plain = [gpu for gpu in gpus if not gpu.mig_enabled]
    return _single(plain, cut) if strategy is MigStrategy.SINGLE else _mixed(plain, cut)


def _named(devices: Sequence[Device]) -> dict[str, tuple[Device, ...]]:
    return {GPU_RESOURCE: tuple(devices)} if devices else {}


def _single(plain: Sequence[Gpu], cut: Sequence[Gpu]) -> Layout:
    if empty := _empty(cut):
        raise HardwareError(
            f"MIG strategy single: {_listed(empty)} in MIG mode without MIG devices",
            advice="Create MIG devices there, turn its MIG mode off, or set --mig-strategy=mixed.",
        )
    if not alike([profile for gpu in cut for profile in _profiles(gpu)]):
        layouts = "; ".join(f"{_called(gpu)} has {_profile_names(gpu)}" for gpu in cut)
        raise HardwareError(f"MIG strategy single: the MIG devices differ: {layouts}", advice=_UNIFORM_ADVICE)
    if plain:
        raise HardwareError(
            f"MIG strategy single: {_listed(plain)} not in MIG mode, but {_listed(cut)}", advice=_UNIFORM_ADVICE
        )
    return Layout(_named([device for gpu in cut for device in mig_devices(gpu)]))


def _mixed(plain: Sequence[Gpu], cut: Sequence[Gpu]) -> Layout:
    by_profile: dict[str, list[Device]] = {}
    with_profile = _with_profile(cut)
    for profile, device in sorted(with_profile, key=lambda pair: profile_order(pair[0])):
        if profile.compute_slices == profile.gpu_slices:
            by_profile.setdefault(mig_resource_name(profile), []).append(device)
    devices = _named([gpu_device(gpu) for gpu in plain]) | {name: _in_order(own) for name, own in by_profile.items()}
    return Layout(devices, (*_warn_of_empty(cut), *_warn_of_parts(with_profile)))


def _in_order(devices: Sequence[Device]) -> tuple[Device, ...]:
    return tuple(sorted(devices, key=lambda device: (device.gpu_index, device.edge, device.uuid)))


def _with_profile(cut: Sequence[Gpu]) -> list[tuple[MigProfile, Device]]:
    return [(device.mig.profile, device) for gpu in cut for device in mig_devices(gpu) if device.mig is not None]


def _profiles(gpu: Gpu) -> list[MigProfile]:
    return [device.profile for device in gpu.mig_devices]


def _profile_names(gpu: Gpu) -> str:
    return " + ".join(sorted(profile.name for profile in _profiles(gpu)))


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


def _warn_of_parts(devices: Sequence[tuple[MigProfile, Device]]) -> tuple[str, ...]:
    """Tells of MIG devices that are only a part of their GPU instance."""
    return tuple(
        f"MIG device {device.index} ({device.uuid}, {profile.name}) is only a part of its GPU instance, which no "
        "resource name of MIG strategy mixed can tell, and is not offered"
        for profile, device in devices
        if profile.compute_slices != profile.gpu_slices
    )


def _warn_of_ignored(cut: Sequence[Gpu]) -> tuple[str, ...]:
    """Tells of GPUs in MIG mode that are served as if they were whole, as v0.20.0 does."""
    if not cut:
        return ()
    effect = "containers will not find a whole GPU there: set --mig-strategy to single or mixed"
    return (f"{_listed(cut)} in MIG mode, but offered as whole under MIG strategy none; {effect}",)
