"""A node as plain data, for JSON: the names of the value types, units in the names, enumerations as words."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gpustow.hardware.links import Links
from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.node import Gpu, Node


def node_data(node: Node) -> dict[str, Any]:
    """The node in numbers, text, lists and mappings. What is not known is None."""
    return {
        "name": node.name,
        "platform": node.platform.value,
        "driver_version": node.driver_version or None,
        "cuda_version": node.cuda_version or None,
        "gpus": [_gpu(gpu) for gpu in node.gpus],
        "links": _links(node.links),
        "notes": list(node.notes),
    }


def _gpu(gpu: Gpu) -> Mapping[str, Any]:
    fabric = gpu.fabric
    capability = gpu.compute_capability
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "model": gpu.model or None,
        "memory_bytes": gpu.memory_bytes,
        "compute_capability": None if capability is None else f"{capability[0]}.{capability[1]}",
        "pci_bus_id": gpu.pci_bus_id or None,
        "numa_node": gpu.numa_node,
        "minor": gpu.minor,
        "device_paths": list(gpu.device_paths),
        "fabric": None if fabric is None else {"cluster_uuid": fabric.cluster_uuid, "clique": fabric.clique},
        "mig": {
            "capable": gpu.mig_capable,
            "enabled": gpu.mig_enabled,
            "memory_slices": gpu.memory_slices if gpu.mig_capable else None,
            "profiles": [_profile(profile) for profile in gpu.mig_profiles],
            "devices": [_device(device) for device in gpu.mig_devices],
        },
    }


def _profile(profile: MigProfile) -> Mapping[str, Any]:
    return {
        "name": profile.name,
        "id": profile.profile_id,
        "gpu_slices": profile.gpu_slices,
        "memory_slices": profile.memory_slices,
        "memory_mib": profile.memory_mib,
        "multiprocessors": profile.multiprocessors,
        "max_count": profile.max_count,
        "placements": list(profile.placements),
    }


def _device(device: MigDevice) -> Mapping[str, Any]:
    return {
        "index": device.index,
        "uuid": device.uuid,
        "profile": device.profile.name,
        "gpu_instance": device.gpu_instance,
        "compute_instance": device.compute_instance,
        "start": device.start,
        "memory_slices": device.profile.memory_slices,
        "memory_bytes": device.memory_bytes,
        "engines": None if device.engines is None else asdict(device.engines),
        "device_paths": list(device.device_paths),
    }


def _links(links: Links) -> list[Mapping[str, Any]]:
    return [
        {
            "from": first,
            "to": second,
            "pcie": None if link.pcie is None else link.pcie.label,
            "nvlinks": link.nvlinks,
            "score": link.score,
        }
        for (first, second), link in links.readings
    ]
