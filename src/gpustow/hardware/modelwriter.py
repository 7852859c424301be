"""Writes a node as a node model file, so that a real machine can be simulated elsewhere.

What is written reads back as the same node. Only what does not follow from the GPU's model is written of MIG profiles
and sizes, so that the file stays readable. What could not be read is left out, and filled in again as for any file that
is silent about it; what went wrong stands as comments at the top.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from gpustow.hardware.gpumodels import GPU_MODELS, GpuModel
from gpustow.hardware.links import UNKNOWN_LINK, Link, Links
from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.miglayout import instance_minor
from gpustow.hardware.node import Gpu, Node
from gpustow.hardware.systemfiles import capability_path

_MIB = 1 << 20
_WIDTH = 120
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def write_node_model(node: Node) -> str:
    """The text of a node model file that describes this node."""
    document = {
        "name": node.name or "node",
        "platform": node.platform.value,
        "driverVersion": node.driver_version,
        "cudaVersion": node.cuda_version,
        "gpus": [dict(_gpu(gpu)) for gpu in node.gpus],
        "links": dict(_links(node.links, [gpu.index for gpu in node.gpus])),
    }
    given = {key: value for key, value in document.items() if value not in ("", {})}
    notes = "".join(f"# {' '.join(note.split())}\n" for note in node.notes)
    text = yaml.dump(given, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=_WIDTH, allow_unicode=True)
    return notes + text


def _gpu(gpu: Gpu) -> Iterator[tuple[str, Any]]:
    known = GPU_MODELS.get(gpu.model)
    yield "model", gpu.model or "unknown"
    yield "index", gpu.index
    yield "uuid", gpu.uuid
    if gpu.pci_bus_id:
        yield "pciBusId", gpu.pci_bus_id
    if gpu.minor != gpu.index:
        yield "minor", gpu.minor
    if gpu.numa_node is not None:
        yield "numaNode", gpu.numa_node
    if gpu.memory_bytes is not None:
        yield "memory", _amount(gpu.memory_bytes)
    if gpu.compute_capability is not None or known is None:
        yield "computeCapability", "{}.{}".format(*(gpu.compute_capability or (0, 0)))
    if gpu.memory_slices != (known.memory_slices if known else 8):
        yield "memorySlices", gpu.memory_slices
    profiles = _all_profiles(gpu, known)
    if profiles != (list(known.mig_profiles) if known else []):
        yield "migProfiles", [dict(_profile(profile)) for profile in profiles]
    if gpu.mig_enabled and profiles:
        yield "mig", {"devices": [dict(_device(gpu, device)) for device in gpu.mig_devices]}
    if gpu.fabric is not None:
        yield "fabric", {"clusterUuid": gpu.fabric.cluster_uuid, "clique": gpu.fabric.clique}


def _amount(size: int) -> str | int:
    return size if size % _MIB else f"{size // _MIB}MiB"


def _all_profiles(gpu: Gpu, known: GpuModel | None) -> list[MigProfile]:
    """The profiles of a GPU, and those that its devices have although they could not be read from it.

    Where none could be read, they are those of the model.
    """
    table = known.mig_profiles if known and gpu.mig_capable else ()
    listed = {profile.name: profile for profile in gpu.mig_profiles or table}
    needed = {device.profile.instance_name: device.profile for device in gpu.mig_devices}
    return [*listed.values(), *(profile for name, profile in needed.items() if name not in listed)]


def _profile(profile: MigProfile) -> Iterator[tuple[str, Any]]:
    facts: Mapping[str, object] = {
        "name": profile.instance_name,
        "memoryMiB": profile.memory_mib,
        "memorySlices": profile.memory_slices,
        "multiprocessors": profile.multiprocessors,
        "nvmlProfile": profile.nvml_profile,
        "profileId": profile.profile_id,
        "maxCount": profile.max_count,
    }
    yield from ((key, value) for key, value in facts.items() if value is not None)
    if profile.placements:
        yield "placements", list(profile.placements)


def _device(gpu: Gpu, device: MigDevice) -> Iterator[tuple[str, Any]]:
    yield "profile", device.profile.name
    if device.index != gpu.mig_devices.index(device):
        yield "index", device.index
    yield "uuid", device.uuid
    yield "gpuInstance", device.gpu_instance
    yield "computeInstance", device.compute_instance
    if device.start is not None:
        yield "start", device.start
    if device.memory_bytes != device.profile.memory_mib * _MIB:
        yield "memory", _amount(device.memory_bytes)
    minors = (
        instance_minor(gpu.minor, device.gpu_instance),
        instance_minor(gpu.minor, device.gpu_instance, device.compute_instance),
    )
    if device.device_paths != (*gpu.device_paths, *map(capability_path, minors)):
        yield "devicePaths", list(device.device_paths)


def _links(links: Links, indices: list[int]) -> Iterator[tuple[str, Any]]:
    """The matrices, a row of words for each GPU; nothing where nothing is known."""
    table = links.table()
    pairs = [[table.get((row, column), UNKNOWN_LINK) for column in indices] for row in indices]
    if any(link.pcie is not None for row in pairs for link in row):
        yield "pcie", [_row(number, row, _level) for number, row in enumerate(pairs)]
    if any(link.nvlinks for row in pairs for link in row):
        yield "nvlinks", [_row(number, row, _count) for number, row in enumerate(pairs)]


def _level(link: Link) -> str:
    return "?" if link.pcie is None else link.pcie.label


def _count(link: Link) -> str:
    return str(link.nvlinks)


def _row(number: int, row: list[Link], word: Callable[[Link], str]) -> str:
    return " ".join("X" if column == number else word(link) for column, link in enumerate(row))
