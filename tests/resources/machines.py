"""Nodes for the tests of this folder, made by hand or from node models."""

from functools import cache

from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.node import Gpu, Node, Platform
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.simulated import SimulatedReader

GIB = 1 << 30


@cache
def machine(name: str) -> Node:
    """The node of a shipped node model."""
    return SimulatedReader(load_node_model(name)).read()


def gpu(
    index: int,
    *,
    model: str = "Tesla T4",
    memory_bytes: int | None = 16 * GIB,
    compute_capability: tuple[int, int] | None = (7, 5),
    mig: tuple[MigDevice, ...] | None = None,
) -> Gpu:
    """A GPU; with `mig` in MIG mode."""
    return Gpu(
        index=index,
        uuid=f"GPU-{index}",
        pci_bus_id=f"00000000:{index + 1:02X}:00.0",
        minor=index,
        model=model,
        memory_bytes=memory_bytes,
        compute_capability=compute_capability,
        numa_node=None,
        device_paths=(f"/dev/nvidia{index}",),
        mig_capable=mig is not None,
        mig_enabled=mig is not None,
        mig_devices=mig or (),
    )


def mig_device(gpu_index: int, index: int, profile: MigProfile) -> MigDevice:
    """A MIG device with a profile."""
    return MigDevice(index, f"MIG-{gpu_index}-{index}", profile, index, 0, profile.memory_mib << 20, (), index)


def node(*gpus: Gpu, platform: Platform = Platform.NVML) -> Node:
    """A node with these GPUs."""
    return Node("node", platform, gpus)
