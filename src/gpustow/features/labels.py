"""The labels of a node: all that follows from its hardware and the configuration.

What only the machine itself can tell, and no reading of the GPUs (its type, the class of its PCI devices, whether it is
a virtual machine's vGPU, the time), is not here.

Where v0.20.0 ends for the whole node, one label is left out and told: a driver version of another form, MPS on a node
with MIG. Of several models, where v0.20.0 takes any, the labels are about the one with most GPUs, then the first.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpustow.config import Config, MigStrategy
from gpustow.features.product import is_label_value
from gpustow.features.resourcelabels import (
    GPU_PREFIX,
    IN_MIG_MODE,
    NOT_SHARED,
    LabelMap,
    ResourceSharing,
    gpu_labels,
    invalid_labels,
    mig_labels,
    sharing_of,
)
from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.node import Gpu, Node, Platform
from gpustow.resources.naming import Naming
from gpustow.resources.selection import select_gpus

_UNKNOWN_DRIVER = "unknown.unknown.unknown"
_UNKNOWN_CUDA = "0.0"
_DRIVER = re.compile(r"([^.]*)\.([^.]*)(?:\.([^.]*))?")


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels by key, in the order in which they are best read; and why some are not there or not what they seem."""

    labels: Mapping[str, str]
    notes: tuple[str, ...] = ()


def node_labels(node: Node, config: Config) -> Labels:
    """The labels that `config` gives the node; none where it has no GPU of ours."""
    ours, _ = select_gpus(node, config)
    if not ours.gpus:
        return Labels({})
    maker = _Maker(config)
    labels = {
        **maker.versions(node),
        **maker.sharing_by_mps(ours.gpus),
        **maker.mig(ours.gpus),
        **maker.clique(ours.gpus),
    }
    notes = [*maker.notes, *_unfit(labels)]
    return Labels(labels, tuple(notes))


def _unfit(labels: Mapping[str, str]) -> Iterable[str]:
    return (
        f"Kubernetes does not take the label {key}={value}: longer than 63 characters, or its ends are not alphanumeric"
        for key, value in labels.items()
        if not is_label_value(value)
    )


class _Maker:
    """Makes groups of labels, and gathers what is to be told about them."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._naming = Naming.of(config)
        self.notes: list[str] = []

    def versions(self, node: Node) -> LabelMap:
        """Driver and CUDA version, each under the keys of today and under the older ones.

        v0.20.0 calls those of a Tegra board unknown, and cannot be without them elsewhere; there they have no labels.
        """
        return {**self._driver_version(node), **self._cuda_version(node)}

    def _driver_version(self, node: Node) -> LabelMap:
        driver = node.driver_version
        if not driver and node.platform is not Platform.TEGRA:
            return {}
        driver = driver or _UNKNOWN_DRIVER
        labels = {"nvidia.com/cuda.driver-version.full": driver}
        if match := _DRIVER.fullmatch(driver):
            parts = [part or "" for part in match.groups()]
            labels |= _numbered("cuda.driver", ("major", "minor", "rev"), parts)
            labels |= _numbered("cuda.driver-version", ("major", "minor", "revision"), parts)
        else:
            self.notes.append(f"the driver version {driver!r} does not match X.Y[.Z]: its parts have no labels")
        return labels

    def _cuda_version(self, node: Node) -> LabelMap:
        cuda = node.cuda_version
        if not cuda and node.platform is not Platform.TEGRA:
            return {}
        cuda = cuda or _UNKNOWN_CUDA
        labels = {"nvidia.com/cuda.runtime-version.full": cuda}
        numbers = [*cuda.split("."), ""][:2]
        labels |= _numbered("cuda.runtime", ("major", "minor"), numbers)
        labels |= _numbered("cuda.runtime-version", ("major", "minor"), numbers)
        return labels

    def sharing_by_mps(self, gpus: Sequence[Gpu]) -> LabelMap:
        """Whether the configuration asks for MPS, and no GPU is in MIG mode."""
        asked = self._config.mps is not None
        if asked and any(gpu.mig_enabled for gpu in gpus):
            self.notes.append("sharing using MPS is not supported for MIG devices: nvidia.com/mps.capable is false")
            asked = False
        return {"nvidia.com/mps.capable": _truth(asked)}

    def mig(self, gpus: Sequence[Gpu]) -> LabelMap:
        """What the MIG strategy makes of the GPUs."""
        strategy = self._config.mig_strategy
        labels = {"nvidia.com/mig.capable": _truth(any(gpu.mig_capable for gpu in gpus)), **self._whole_gpus(gpus)}
        if strategy is MigStrategy.NONE:
            return labels
        labels["nvidia.com/mig.strategy"] = strategy.value
        cut = [gpu for gpu in gpus if gpu.mig_enabled]
        if strategy is MigStrategy.MIXED:
            return labels | self._mixed(cut)
        return labels | self._single(gpus, cut)

    def clique(self, gpus: Sequence[Gpu]) -> LabelMap:
        """The NVLink fabric that all GPUs which have one are part of."""
        fabrics = {gpu.fabric for gpu in gpus if gpu.fabric is not None}
        if len(fabrics) > 1:
            self.notes.append("the GPUs are part of different NVLink fabrics: there is no label nvidia.com/gpu.clique")
        if len(fabrics) != 1:
            return {}
        (fabric,) = fabrics
        return {"nvidia.com/gpu.clique": f"{fabric.cluster_uuid}.{fabric.clique}"}

    def _whole_gpus(self, gpus: Sequence[Gpu]) -> LabelMap:
        models = list(dict.fromkeys(gpu.model for gpu in gpus))
        groups = [[gpu for gpu in gpus if gpu.model == model] for model in models]
        group = max(groups, key=lambda own: (not all(gpu.mig_enabled for gpu in own), len(own)))
        if len(groups) > 1:
            self.notes.append(
                f"the GPUs are of different models ({', '.join(models)}): the labels {GPU_PREFIX}.* are about those "
                f"that are {group[0].model}"
            )
        if all(gpu.mig_enabled for gpu in group):
            return gpu_labels(group, IN_MIG_MODE)
        whole_first = sorted(group, key=lambda gpu: gpu.mig_enabled)
        return gpu_labels(whole_first, sharing_of(self._naming.of_gpu(group[0].model), self._config))

    def _single(self, gpus: Sequence[Gpu], cut: Sequence[Gpu]) -> LabelMap:
        if not cut:
            return {}
        parts = [device for gpu in cut for device in gpu.mig_devices]
        profiles = {device.profile.name for device in parts}
        if not all(gpu.mig_devices for gpu in cut):
            return self._invalid(cut[0], "a GPU in MIG mode has no MIG devices")
        if len(cut) < len(gpus):
            return self._invalid(cut[0], "some GPUs are in MIG mode and others are not")
        if len(profiles) > 1:
            return self._invalid(cut[0], f"there are MIG devices of different profiles ({', '.join(sorted(profiles))})")
        return mig_labels(GPU_PREFIX, cut[0].model, parts, self._sharing_of(parts[0].profile))

    def _mixed(self, cut: Sequence[Gpu]) -> LabelMap:
        groups: dict[str, list[tuple[Gpu, MigDevice]]] = {}
        for gpu in cut:
            for device in gpu.mig_devices:
                groups.setdefault(f"nvidia.com/mig-{device.profile.resource_suffix}", []).append((gpu, device))
        labels: LabelMap = {}
        for prefix, group in sorted(groups.items()):
            parent, first = group[0]
            labels |= mig_labels(prefix, parent.model, [device for _, device in group], self._sharing_of(first.profile))
        return labels

    def _sharing_of(self, profile: MigProfile) -> ResourceSharing:
        name = self._naming.of_mig(profile)
        return NOT_SHARED if name is None else sharing_of(name, self._config)

    def _invalid(self, first: Gpu, why: str) -> LabelMap:
        self.notes.append(f"the MIG strategy single does not go with this node: {why}")
        return invalid_labels(first.model)


def _numbered(key: str, names: Sequence[str], values: Sequence[str]) -> LabelMap:
    return {f"nvidia.com/{key}.{name}": value for name, value in zip(names, values, strict=True)}


def _truth(value: bool) -> str:  # noqa: FBT001 - it is the value that is written
    return "true" if value else "false"
