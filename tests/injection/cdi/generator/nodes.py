"""Nodes for tests of the generator."""

from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.node import Gpu, Node, Platform

GPU_0 = "GPU-aaaaaaaa-0000-4000-8000-000000000001"
GPU_1 = "GPU-aaaaaaaa-0000-4000-8000-000000000009"
MIG_10 = "MIG-bbbbbbbb-0000-4000-8000-000000000002"
VERSION = "999.1"
CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm")
GLIBC = "/usr/lib/x86_64-linux-gnu"


def gpu(index: int, uuid: str, bus_id: str = "", *, model: str = "NVIDIA A100", mig: tuple[MigDevice, ...] = ()) -> Gpu:
    """A GPU; in MIG mode if it has MIG devices."""
    return Gpu(
        index=index,
        uuid=uuid,
        pci_bus_id=bus_id,
        minor=index,
        model=model,
        memory_bytes=None,
        compute_capability=(8, 0),
        numa_node=None,
        device_paths=(f"/dev/nvidia{index}",),
        mig_capable=bool(mig),
        mig_enabled=bool(mig),
        mig_devices=mig,
    )


def mig_device(uuid: str, attribute: str = "", *, parent: int = 1) -> MigDevice:
    """The MIG device 0 of a GPU: GPU instance 2, compute instance 0."""
    return MigDevice(
        index=0,
        uuid=uuid,
        profile=MigProfile(1, 1, 5, 4864, attribute),
        gpu_instance=2,
        compute_instance=0,
        memory_bytes=4864 << 20,
        device_paths=(
            f"/dev/nvidia{parent}",
            "/dev/nvidia-caps/nvidia-cap21",
            "/dev/nvidia-caps/nvidia-cap22",
        ),
    )


def node(*gpus: Gpu, platform: Platform = Platform.NVML, driver: str = VERSION, cuda: str = "") -> Node:
    """A node with these GPUs."""
    return Node("node", platform, gpus, driver_version=driver, cuda_version=cuda)
