"""A node for the tests of this folder: two whole GPUs and one with MIG devices; and what happens to them."""

from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.node import Gpu, Node, Platform
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof

_PROFILE = MigProfile(1, 1, 5, 4864)


def mig_device(gpu: int, index: int, gpu_instance: int, compute_instance: int = 0) -> MigDevice:
    """A MIG device in this GPU instance."""
    return MigDevice(index, f"MIG-{gpu}-{index}", _PROFILE, gpu_instance, compute_instance, 4864 << 20, ())


def gpu(index: int, *mig: MigDevice) -> Gpu:
    """A GPU; with MIG devices in MIG mode."""
    return Gpu(
        index=index,
        uuid=f"GPU-{index}",
        pci_bus_id=f"00000000:{index + 1:02X}:00.0",
        minor=index,
        model="NVIDIA A100-SXM4-40GB",
        memory_bytes=40 << 30,
        compute_capability=(8, 0),
        numa_node=None,
        device_paths=(f"/dev/nvidia{index}",),
        mig_enabled=bool(mig),
        mig_devices=mig,
    )


def node(*gpus: Gpu) -> Node:
    """A node with these GPUs."""
    return Node("node", Platform.NVML, gpus)


# GPU 2: instance 3 with one compute instance, instance 5 with two.
MIG_GPU = gpu(2, mig_device(2, 0, 3), mig_device(2, 1, 5, 0), mig_device(2, 2, 5, 1))
NODE = node(gpu(0), gpu(1), MIG_GPU)
MIG_UUIDS = frozenset({"MIG-2-0", "MIG-2-1", "MIG-2-2"})
EVERYTHING = frozenset({"GPU-0", "GPU-1", "GPU-2"}) | MIG_UUIDS

WELL = RecoveryProof(True, True, RecoveryAction.NONE, row_remap_pending=False, row_remap_failure=False)
"""A GPU of Ampere or newer that has nothing to complain of."""
SILENT = RecoveryProof(True, True)
"""A GPU that can be read, and cannot tell anything of itself."""
UNREADABLE = RecoveryProof(False, False, detail="Unknown Error")


def xid(
    code: int, gpu_uuid: str | None = "GPU-0", gpu_instance: int | None = None, compute_instance: int | None = None
) -> HealthEvent:
    """An XID."""
    return HealthEvent(EventKind.XID, gpu_uuid, gpu_instance, compute_instance, xid=code)
