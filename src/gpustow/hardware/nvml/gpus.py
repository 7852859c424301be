"""Reading one GPU: what it is, where its device node and NUMA node are, whether MIG cuts it."""

from ctypes import byref
from pathlib import Path
from typing import Any

from gpustow.hardware.gpumodels import GPU_MODELS
from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.node import FabricIdentity, Gpu
from gpustow.hardware.nvml.asking import GpuQuestions
from gpustow.hardware.nvml.library import FUNCTION_NOT_FOUND, NOT_SUPPORTED
from gpustow.hardware.nvml.migreading import read_mig_devices, read_profiles
from gpustow.hardware.systemfiles import MigMinors, numa_node

DISPLAY_ADAPTERS = frozenset({"DGX Display", "NVIDIA DGX Display"})
"""Cards that NVML lists and that are there to drive a screen; they keep their index and are no GPU for us."""

_NOT_THERE = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND})
_ENABLED = 1
_FABRIC_COMPLETED = 3


def read_gpu(questions: GpuQuestions, handle: Any, root: Path, minors: MigMinors) -> Gpu | None:
    """The GPU with this handle; None if it is a display adapter. `root` has /sys, `minors` the MIG capabilities.

    Raises:
        LeftOut: it cannot be served.
    """
    ask, index = questions.ask, questions.index
    model = ask("model", "nvmlDeviceGetName", handle) or ""
    if model in DISPLAY_ADAPTERS:
        return None
    uuid = questions.need("UUID", "nvmlDeviceGetUUID", handle)
    minor = questions.need("minor number", "nvmlDeviceGetMinorNumber", handle)
    path = f"/dev/nvidia{minor}"
    mig_mode = _mig_mode(questions, handle, model)
    memory = ask("memory", "nvmlDeviceGetMemoryInfo", handle)
    memory_bytes = None if memory is None else int(memory.total)
    known = GPU_MODELS.get(model)
    profiles: tuple[MigProfile, ...] = ()
    mig_devices: tuple[MigDevice, ...] = ()
    if mig_mode is not None:
        profiles = read_profiles(questions, handle, memory_bytes, known)
    if mig_mode:
        candidates = profiles or (known.mig_profiles if known else ())
        mig_devices = read_mig_devices(questions, handle, (path, minor, memory_bytes), candidates, minors)
    pci = ask("PCI bus id", "nvmlDeviceGetPciInfo", handle)
    bus_id = "" if pci is None else str(pci.busId).upper()
    return Gpu(
        index=index,
        uuid=uuid,
        pci_bus_id=bus_id,
        minor=minor,
        model=model,
        memory_bytes=memory_bytes,
        compute_capability=ask("compute capability", "nvmlDeviceGetCudaComputeCapability", handle),
        numa_node=_numa_node(questions, root, bus_id),
        device_paths=(path,),
        memory_slices=_memory_slices(profiles, known.memory_slices if known else 8),
        mig_capable=mig_mode is not None,
        mig_enabled=bool(mig_mode),
        mig_profiles=profiles,
        mig_devices=mig_devices,
        fabric=_fabric(questions, handle),
    )


def _mig_mode(questions: GpuQuestions, handle: Any, model: str) -> bool | None:
    """Whether MIG is enabled; None where there is no MIG.

    A GPU of which this cannot be read is left out, unless its model is known to have no MIG: served whole while it is
    cut, it would fail every container that gets it.
    """
    known = GPU_MODELS.get(model)
    if known is not None and not known.mig_profiles:
        mode = questions.ask("MIG mode", "nvmlDeviceGetMigMode", handle, quiet=_NOT_THERE)
    else:
        mode = questions.need("MIG mode", "nvmlDeviceGetMigMode", handle, absent=_NOT_THERE)
    return None if mode is None else bool(mode[0] == _ENABLED)


def _memory_slices(profiles: tuple[MigProfile, ...], otherwise: int) -> int:
    ends = [max(profile.placements) + (profile.memory_slices or 0) for profile in profiles if profile.placements]
    return max(ends, default=otherwise)


def _numa_node(questions: GpuQuestions, root: Path, bus_id: str) -> int | None:
    if not bus_id:
        return None
    try:
        return numa_node(root, bus_id)
    except ValueError as error:
        questions.tell(f"NUMA node cannot be read: {error}")
        return None


def _fabric(questions: GpuQuestions, handle: Any) -> FabricIdentity | None:
    """The NVLink fabric that the GPU has joined; none without a cluster UUID, as inside a single machine."""
    info = questions.nvml.bindings.c_nvmlGpuFabricInfo_v2_t()
    answered = questions.ask("NVLink fabric", "nvmlDeviceGetGpuFabricInfoV", handle, byref(info), quiet=_NOT_THERE)
    cluster = bytes(info.clusterUuid)
    if answered is None or info.state != _FABRIC_COMPLETED or info.status != 0 or not any(cluster):
        return None
    text = cluster.hex()
    parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
    return FabricIdentity("-".join(parts), int(info.cliqueId))
