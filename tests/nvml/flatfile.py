"""The flat file that drives the fake library, made from a node model.

One fact a line; `G` is an NVML index, numbers are decimal unless said otherwise:

    driver TEXT | cuda NUMBER
    gpu G uuid|name|bus TEXT | gpu G pci HEX | gpu G minor|memory NUMBER | gpu G capability MAJOR MINOR
    gpu G mig -1|0|1                      -1: the GPU has no MIG
    gpu G lost 1 | gpu G events HEX       the event types that can be registered for
    gpu G recovery NUMBER | gpu G retired|sram 0|1 | gpu G remap CORRECTED UNCORRECTED PENDING FAILURE
                                          what it says of its health; without a number: not supported
    gpu G fabric STATE STATUS CLIQUE CLUSTER    the cluster's UUID as 32 hexadecimal digits
    gpu G profile NUMBER ID SLICES COUNT SM MIB WIDTH START,START,... NAME
    gpu G migdevice INDEX UUID INSTANCE COMPUTE PROFILE COMPUTE_SLICES START BYTES
    gpu G engines INDEX COPY DECODER ENCODER JPEG OFA       of a MIG device
    gpu G link NUMBER ACTIVE REMOTE_TYPE REMOTE_BUS | gpu G level OTHER LEVEL      -1: not supported
    fail CALL G FROM CODE                 from the FROMth call on; G -1: whatever the GPU; CALL *: any call
    hang CALL G FROM SECONDS
    garble CALL G FROM                    the call succeeds and its answer is nonsense; for calls that watch health
    event SERIAL G TYPE(HEX) DATA INSTANCE COMPUTE      4294967295: no instance
"""

from collections.abc import Iterator
from dataclasses import astuple

from gpustow.hardware.gpumodels import GPU_MODELS, PCI_VENDOR_NVIDIA
from gpustow.hardware.mig import MigProfile
from gpustow.hardware.node import Gpu
from gpustow.hardware.nodemodel import NodeModel

_DISPLAY = "NVIDIA DGX Display"
_SWITCH_BUS = "00000000:FE:00.0"
_TO_GPU, _TO_SWITCH = 0, 2
_ALL_EVENTS = 0xFFFF
_AMPERE = (8, 0)


def node_lines(model: NodeModel) -> list[str]:
    """What the fake library needs to tell the node of a model. Indices that the model leaves out are displays."""
    node = model.node
    lines = [f"driver {node.driver_version}", f"cuda {_cuda_number(node.cuda_version)}"]
    by_index = {gpu.index: gpu for gpu in node.gpus}
    for index in range(max(by_index, default=-1) + 1):
        gpu = by_index.get(index)
        lines += [f"gpu {index} name {_DISPLAY}"] if gpu is None else _gpu_lines(gpu)
    for position, gpu in enumerate(node.gpus):
        lines += _link_lines(model, position, gpu)
    return lines


def _cuda_number(version: str) -> int:
    major, _, minor = (version or "0.0").partition(".")
    return int(major) * 1000 + int(minor or 0) * 10


def _gpu_lines(gpu: Gpu) -> Iterator[str]:
    facts: dict[str, object] = {
        "uuid": gpu.uuid,
        "name": gpu.model,
        "bus": gpu.pci_bus_id,
        "minor": gpu.minor,
        "mig": int(gpu.mig_enabled) if gpu.mig_capable else -1,
        "events": f"{_ALL_EVENTS:x}",
    }
    known = GPU_MODELS.get(gpu.model)
    if known is not None and known.pci_device is not None:
        facts["pci"] = f"{known.pci_device << 16 | PCI_VENDOR_NVIDIA:x}"
    if gpu.memory_bytes is not None:
        facts["memory"] = gpu.memory_bytes
    if gpu.compute_capability is not None:
        facts["capability"] = "{} {}".format(*gpu.compute_capability)
    if gpu.fabric is not None:
        facts["fabric"] = f"3 0 {gpu.fabric.clique} {gpu.fabric.cluster_uuid.replace('-', '')}"
    for key, value in facts.items():
        yield f"gpu {gpu.index} {key} {value}"
    yield from _health_lines(gpu)
    for profile in gpu.mig_profiles:
        yield f"gpu {gpu.index} profile {_profile_facts(profile)}"
    for device in gpu.mig_devices:
        yield (
            f"gpu {gpu.index} migdevice {device.index} {device.uuid} {device.gpu_instance} {device.compute_instance} "
            f"{device.profile.nvml_profile} {device.profile.compute_slices} {device.start} {device.memory_bytes}"
        )
        if device.engines is not None:
            engines = " ".join(str(count) for count in astuple(device.engines))
            yield f"gpu {gpu.index} engines {device.index} {engines}"


def _health_lines(gpu: Gpu) -> Iterator[str]:
    """All is well. Ampere and newer remap rows, older ones retire pages."""
    yield f"gpu {gpu.index} recovery 0"
    if (gpu.compute_capability or (0, 0)) < _AMPERE:
        yield f"gpu {gpu.index} retired 0"
        return
    yield f"gpu {gpu.index} sram 0"
    yield f"gpu {gpu.index} remap 0 0 0 0"


def _profile_facts(profile: MigProfile) -> str:
    starts = ",".join(map(str, profile.placements))
    return (
        f"{profile.nvml_profile} {profile.profile_id} {profile.gpu_slices} {profile.max_count} "
        f"{profile.multiprocessors} {profile.memory_mib} {profile.memory_slices} {starts} {profile.name}"
    )


def _link_lines(model: NodeModel, position: int, gpu: Gpu) -> Iterator[str]:
    """NVLinks to other GPUs first, then those to switches, numbered from 0; and the PCIe level to each other GPU."""
    ends = [
        (_TO_GPU, other.pci_bus_id)
        for column, other in enumerate(model.node.gpus)
        for _ in range(model.fabric.nvlinks[position][column])
    ]
    ends += [(_TO_SWITCH, _SWITCH_BUS)] * model.fabric.switch_links[position]
    for number, (kind, bus) in enumerate(ends):
        yield f"gpu {gpu.index} link {number} 1 {kind} {bus}"
    for column, other in enumerate(model.node.gpus):
        level = model.fabric.pcie[position][column]
        yield f"gpu {gpu.index} level {other.index} {-1 if level is None else int(level)}"
