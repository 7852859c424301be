"""The labels of one resource: product, count, replicas, memory, and what kind of GPU or MIG device it is.

The keys begin with the name that the resource has in v0.20.0, `nvidia.com/gpu` or `nvidia.com/mig-<profile>`, whatever
name the operator gave it: that is what workloads select nodes by. The count is that of GPUs or MIG devices, never
multiplied by replicas.

Limits: a resource has one number of replicas in its labels. Where GPUs have different ones it is the largest; v0.20.0
knows one number only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpustow.config import Config, ReplicatedResource
from gpustow.features.product import SHARED_SUFFIX, family, product
from gpustow.hardware.mig import MigDevice
from gpustow.hardware.node import Gpu
from gpustow.resources.device import Sharing

GPU_PREFIX = "nvidia.com/gpu"
"""Whole GPUs under every MIG strategy, and MIG devices under `single`."""

_MIB = 1 << 20

LabelMap = dict[str, str]


@dataclass(frozen=True, slots=True)
class ResourceSharing:
    """How a resource is shared: into how many replicas, in which way, and whether they keep the resource's name."""

    replicas: int
    strategy: Sharing
    renamed: bool = False

    @property
    def suffix(self) -> str:
        """The last part of the product; empty where the resource's name already tells."""
        return SHARED_SUFFIX if self.replicas > 1 and not self.renamed else ""


NOT_SHARED = ResourceSharing(1, Sharing.NONE)
IN_MIG_MODE = ResourceSharing(0, Sharing.NONE)
"""A whole GPU that is none, because it is cut: nothing of it can be asked for."""


def sharing_of(name: str, config: Config) -> ResourceSharing:
    """How `config` shares the resource with this name."""
    kind, section = (Sharing.MPS, config.mps) if config.mps is not None else (Sharing.TIME_SLICING, config.time_slicing)
    entries = [entry for entry in (section.resources if section else ()) if entry.name == name and entry.devices != ()]
    if not entries:
        return NOT_SHARED
    most = max(_whole(entries) or entries, key=lambda entry: entry.replicas)
    return ResourceSharing(most.replicas, kind, renamed=most.rename is not None)


def _whole(entries: Sequence[ReplicatedResource]) -> Sequence[ReplicatedResource]:
    """The entry that holds for the whole resource, if there is one: the last."""
    return [entry for entry in entries if entry.devices == "all"][-1:]


def gpu_labels(gpus: Sequence[Gpu], sharing: ResourceSharing) -> LabelMap:
    """The labels of whole GPUs of one model."""
    first = gpus[0]
    labels = _common(GPU_PREFIX, product(first.model, sharing.suffix), len(gpus), sharing)
    if first.memory_bytes:
        labels[f"{GPU_PREFIX}.memory"] = str(first.memory_bytes // _MIB)
    if first.compute_capability is not None and first.compute_capability[0] != 0:
        labels[f"{GPU_PREFIX}.family"] = family(first.compute_capability)
        labels[f"{GPU_PREFIX}.compute.major"], labels[f"{GPU_PREFIX}.compute.minor"] = map(
            str, first.compute_capability
        )
    return labels


def mig_labels(prefix: str, model: str, devices: Sequence[MigDevice], sharing: ResourceSharing) -> LabelMap:
    """The labels of MIG devices of one profile on GPUs of this model."""
    profile = devices[0].profile
    name = product(model, "MIG", profile.resource_suffix, sharing.suffix)
    facts: Mapping[str, int | None] = {
        "memory": profile.memory_mib,
        "multiprocessors": profile.multiprocessors,
        "slices.gi": profile.gpu_slices,
        "slices.ci": profile.compute_slices,
        **_engines(devices[0]),
    }
    told = {f"{prefix}.{key}": str(value) for key, value in facts.items() if value is not None}
    return {**_common(prefix, name, len(devices), sharing), **told}


def invalid_labels(model: str) -> LabelMap:
    """What v0.20.0 says of GPUs whose MIG devices do not go with the strategy `single`."""
    return {
        f"{GPU_PREFIX}.product": product(model, "MIG", "INVALID"),
        f"{GPU_PREFIX}.count": "0",
        f"{GPU_PREFIX}.replicas": "0",
        f"{GPU_PREFIX}.sharing-strategy": "",
        f"{GPU_PREFIX}.memory": "0",
    }


def _common(prefix: str, name: str, count: int, sharing: ResourceSharing) -> LabelMap:
    return {
        f"{prefix}.product": name,
        f"{prefix}.count": str(count),
        f"{prefix}.replicas": str(sharing.replicas),
        f"{prefix}.sharing-strategy": sharing.strategy.value,
    }


def _engines(device: MigDevice) -> Mapping[str, int | None]:
    engines = device.engines
    if engines is None:
        return {}
    return {
        "engines.copy": engines.copy,
        "engines.decoder": engines.decoder,
        "engines.encoder": engines.encoder,
        "engines.jpeg": engines.jpeg,
        "engines.ofa": engines.ofa,
    }
