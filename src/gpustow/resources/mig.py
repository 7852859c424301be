"""The devices that MIG devices are: their share of the card, and where on it they lie.

Compute instances of one GPU instance use the same memory slices. So that the shares of a card never exceed it, each
stands for the part of them that it has of the instance's GPU slices.
"""

from collections.abc import Sequence
from fractions import Fraction

from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.node import Gpu
from gpustow.resources.device import Device


def mig_devices(gpu: Gpu) -> tuple[Device, ...]:
    """The devices that the MIG devices of `gpu` are, by MIG index."""
    located = all(device.start is not None for device in gpu.mig_devices)
    return tuple(
        Device(
            id=device.uuid,
            uuid=device.uuid,
            gpu_index=gpu.index,
            index=f"{gpu.index}:{device.index}",
            share=_share(gpu, device),
            paths=device.device_paths,
            numa_node=gpu.numa_node,
            mig=device,
            edge=device.start if located and device.start is not None else device.index,
        )
        for device in sorted(gpu.mig_devices, key=lambda device: device.index)
    )


def profile_order(profile: MigProfile) -> tuple[int, int, int, str]:
    """Sorts profiles from small to large."""
    return profile.gpu_slices, profile.memory_mib, profile.compute_slices, profile.attribute


def alike(profiles: Sequence[MigProfile]) -> bool:
    """Whether MIG devices of these profiles may be one resource under `single`: all their attributes are equal."""
    return len({_attributes(profile) for profile in profiles}) <= 1


def _attributes(profile: MigProfile) -> tuple[int, int, int, int | None, str]:
    return (
        profile.gpu_slices,
        profile.compute_slices,
        profile.memory_mib,
        profile.multiprocessors,
        profile.attribute,
    )


def _share(gpu: Gpu, device: MigDevice) -> Fraction:
    profile = device.profile
    instance = Fraction(_slices(gpu, device), gpu.memory_slices)
    return min(instance, Fraction(1)) * Fraction(profile.compute_slices, profile.gpu_slices)


def _slices(gpu: Gpu, device: MigDevice) -> int:
    """The memory slices of the GPU instance; where NVML does not tell, those that its memory or name must take."""
    if device.profile.memory_slices is not None:
        return device.profile.memory_slices
    if device.memory_bytes and gpu.memory_bytes:
        return -(-device.memory_bytes * gpu.memory_slices // gpu.memory_bytes)
    return device.profile.gpu_slices
