"""Node models: simulated machines, from a file or shipped with the package.

Here it is decided what a node model file means: what is filled in where the file is silent, and what cannot be. A known
GPU model brings memory, compute capability and MIG profiles (`gpumodels`). UUIDs follow from the name of the node model
and the index of the GPU, so that a model has the same UUIDs on every machine and in every run. Bus ids count up from
01:00.0 past those that the file gives, a Tegra board's GPU has none; minor numbers are the indices, links are unknown
where the file names none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from uuid import uuid5

from pydantic import ValidationError

from gpustow.errors import NodeModelError, Problem
from gpustow.hardware.fabrics import Fabric
from gpustow.hardware.faults import Fault, GpuLost, MigReconfigured, SlowNvml, XidFault
from gpustow.hardware.gpumodels import GPU_MODELS, GpuModel
from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.miglayout import UUID_SPACE, Card, LayoutEntry, LayoutError, lay_out
from gpustow.hardware.modelfile import (
    GpuGroupSection,
    LostSection,
    MigChangeSection,
    MigDeviceSection,
    MigProfileSection,
    NodeModelFile,
    SlowSection,
    XidSection,
    problems_of,
)
from gpustow.hardware.modellinks import Spread, resolve_links
from gpustow.hardware.node import FabricIdentity, Gpu, Node, Platform
from gpustow.hardware.plaintext import parse_plain_yaml

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class NodeModel:
    """A simulated machine: the node as it starts, the wires behind its links, and what goes wrong when.

    `source` names the file, or says that the model is shipped; for messages.
    """

    source: str
    description: str
    node: Node
    fabric: Fabric
    faults: tuple[Fault, ...] = ()

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.name


def shipped_models() -> tuple[str, ...]:
    """The names of the node models that come with the package, sorted."""
    folder = resources.files(__package__) / "models"
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def load_node_model(name_or_path: str) -> NodeModel:
    """The node model that is shipped under this name, or else in the file with this path.

    Raises:
        NodeModelError: there is none, or it says something that cannot be; it names each path and value.
    """
    if name_or_path in shipped_models():
        text = (resources.files(__package__) / "models" / f"{name_or_path}.yaml").read_text(encoding="utf-8")
        return parse_node_model(text, f"{name_or_path} (shipped)")
    try:
        text = Path(name_or_path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        known = ", ".join(shipped_models())
        raise NodeModelError(
            name_or_path,
            [Problem("", f"it cannot be read: {reason}")],
            advice=f"Give the path of a file, or one of the shipped models: {known}.",
        ) from error
    return parse_node_model(text, name_or_path)


def parse_node_model(text: str, source: str) -> NodeModel:
    """The node model that the text of a file describes; `source` names it in messages. Raises as load_node_model."""
    try:
        document = parse_plain_yaml(text)
    except ValueError as error:
        raise NodeModelError(source, [Problem("", f"it is not YAML: {error}")]) from error
    try:
        file = NodeModelFile.model_validate(document)
    except ValidationError as error:
        raise NodeModelError(source, problems_of(error, document)) from error
    return _Resolver(file, source).model()


class _Resolver:
    """Fills in what a file leaves out and collects what cannot be."""

    def __init__(self, file: NodeModelFile, source: str) -> None:
        self._file = file
        self._source = source
        self._platform = Platform(file.platform)
        self._problems: list[Problem] = []
        self._cards: dict[int, Card] = {}
        self._buses = {bus for group in file.gpus for bus in group.pci_bus_id or ()}

    def model(self) -> NodeModel:
        gpus: list[Gpu] = []
        for number, group in enumerate(self._file.gpus):
            first = gpus[-1].index + 1 if gpus else 0
            gpus += self._group(f"gpus[{number}]", group, first)
        gpus.sort(key=lambda gpu: gpu.index)
        self._check_unique(gpus)
        fabric = resolve_links(self._file.links, len(gpus), self._refuse)
        faults = tuple(
            fault
            for number, section in enumerate(self._file.faults)
            if (fault := self._fault(f"faults[{number}]", section)) is not None
        )
        if self._problems:
            raise NodeModelError(self._source, self._problems)
        node = Node(
            name=self._file.name,
            platform=self._platform,
            gpus=tuple(gpus),
            links=fabric.links([gpu.index for gpu in gpus]),
            driver_version=self._file.driver_version,
            cuda_version=self._file.cuda_version,
        )
        return NodeModel(self._source, self._file.description, node, fabric, faults)

    def _refuse(self, path: str, message: str) -> None:
        self._problems.append(Problem(path, message))

    def _group(self, path: str, group: GpuGroupSection, first: int) -> list[Gpu]:
        known = self._known_model(path, group)
        each = Spread(group.count, path, self._refuse)
        indices = each.of(
            "index", group.index, [first + offset for offset in range(group.count)], distinct=group.count > 1
        )
        uuids = each.of("uuid", group.uuid, [self._gpu_uuid(index) for index in indices], distinct=group.count > 1)
        buses = each.of(
            "pciBusId", group.pci_bus_id, [self._bus_id(index) for index in indices], distinct=group.count > 1
        )
        minors = each.of("minor", group.minor, indices, distinct=group.count > 1)
        numa = each.of("numaNode", group.numa_node, [-1] * group.count)
        mig = each.of("mig", group.mig, [None] * group.count)
        profiles = known.mig_profiles
        if group.mig_profiles is not None:
            profiles = tuple(_profile(section) for section in group.mig_profiles)
        memory = group.memory
        if memory is None and known.memory_mib is not None:
            memory = known.memory_mib * _MIB
        gpus = []
        for offset, index in enumerate(indices):
            gpu = Gpu(
                index=index,
                uuid=uuids[offset],
                pci_bus_id=buses[offset],
                minor=minors[offset],
                model=group.model,
                memory_bytes=memory,
                compute_capability=group.compute_capability or known.compute_capability,
                numa_node=None if numa[offset] < 0 else numa[offset],
                device_paths=self._paths(minors[offset]),
                memory_slices=group.memory_slices or known.memory_slices,
                mig_capable=bool(profiles),
                mig_profiles=profiles,
                fabric=None if group.fabric is None else FabricIdentity(group.fabric.cluster_uuid, group.fabric.clique),
            )
            self._cards[index] = Card(gpu.uuid, gpu.minor, profiles, gpu.memory_slices, gpu.device_paths, gpu.model)
            section = mig[offset]
            if section is not None:
                where = f"{path}.mig" if group.mig is not None and len(group.mig) == 1 else f"{path}.mig[{offset}]"
                devices = self._devices(where, index, section.devices, enabled=section.enabled)
                gpu = replace(gpu, mig_enabled=section.enabled, mig_devices=devices)
            gpus.append(gpu)
        return gpus

    def _known_model(self, path: str, group: GpuGroupSection) -> GpuModel:
        known = GPU_MODELS.get(group.model)
        if known is None and group.compute_capability is None:
            near = get_close_matches(group.model, GPU_MODELS, 1)
            hint = f"did you mean {near[0]!r}? Otherwise" if near else "so"
            self._refuse(
                f"{path}.model", f"the model {group.model!r} is not known; {hint} computeCapability has to be given"
            )
        return known or GpuModel(group.model, None, (0, 0), None)

    def _gpu_uuid(self, index: int) -> str:
        return f"GPU-{uuid5(UUID_SPACE, f'{self._file.name}/{index}')}"

    def _bus_id(self, index: int) -> str:
        """A bus id that the file gives no other GPU; none for the GPU of a Tegra board, which is not on PCI."""
        if self._platform is Platform.TEGRA:
            return ""
        domain, bus = divmod(index + 1, 256)
        ids = (f"{domain:08X}:{bus:02X}:{device:02X}.0" for device in range(32))
        return next((bus_id for bus_id in ids if bus_id not in self._buses), "")

    def _paths(self, minor: int) -> tuple[str, ...]:
        return {
            Platform.NVML: (f"/dev/nvidia{minor}",),
            Platform.WSL: ("/dev/dxg",),
            Platform.TEGRA: (),
        }[self._platform]

    def _devices(
        self, path: str, gpu: int, sections: Sequence[MigDeviceSection], *, enabled: bool
    ) -> tuple[MigDevice, ...]:
        """The MIG devices that a layout makes of a GPU; () and a problem when it does not fit."""
        card = self._cards[gpu]
        if enabled and not card.profiles:
            self._refuse(path, f"GPU {gpu} has no MIG")
            return ()
        origins = [number for number, section in enumerate(sections) for _ in range(section.count)]
        entries = [
            LayoutEntry(
                section.profile,
                section.uuid,
                section.start,
                section.gpu_instance,
                section.compute_instance,
                section.index,
                section.memory,
                None if section.device_paths is None else tuple(section.device_paths),
            )
            for section in (sections[origin] for origin in origins)
        ]
        try:
            return lay_out(card, entries)
        except LayoutError as error:
            self._refuse(f"{path}.devices[{origins[error.entry]}]", str(error))
            return ()

    def _check_unique(self, gpus: Sequence[Gpu]) -> None:
        for what, key in _IDENTITIES:
            values = [key(gpu) for gpu in gpus if key(gpu) != ""]
            for value in sorted({value for value in values if values.count(value) > 1}):
                self._refuse("gpus", f"two GPUs have the {what} {value}")
        uuids = [device.uuid for gpu in gpus for device in gpu.mig_devices]
        for value in sorted({value for value in uuids if uuids.count(value) > 1}):
            self._refuse("gpus", f"two MIG devices have the UUID {value}")

    def _fault(self, path: str, section: XidSection | LostSection | SlowSection | MigChangeSection) -> Fault | None:
        if isinstance(section, SlowSection):
            return SlowNvml(section.after, section.delay, section.duration)
        if section.gpu not in self._cards:
            known = ", ".join(map(str, sorted(self._cards)))
            self._refuse(f"{path}.gpu", f"there is no GPU {section.gpu}; there are: {known}")
            return None
        if isinstance(section, LostSection):
            return GpuLost(section.after, section.gpu, section.duration)
        if isinstance(section, XidSection):
            return XidFault(section.after, section.gpu, section.code, section.gpu_instance, section.compute_instance)
        devices = self._devices(path, section.gpu, section.devices, enabled=section.enabled)
        return MigReconfigured(section.after, section.gpu, section.enabled, devices)


_IDENTITIES: tuple[tuple[str, Callable[[Gpu], int | str]], ...] = (
    ("index", lambda gpu: gpu.index),
    ("UUID", lambda gpu: gpu.uuid),
    ("PCI bus id", lambda gpu: gpu.pci_bus_id),
    ("minor number", lambda gpu: gpu.minor),
)


def _profile(section: MigProfileSection) -> MigProfile:
    slices, _, rest = section.name.partition("g.")
    memory, _, attribute = rest.partition("gb")
    return MigProfile(
        gpu_slices=int(slices),
        compute_slices=int(slices),
        memory_gb=int(memory),
        memory_mib=section.memory_mib,
        attribute=attribute,
        memory_slices=section.memory_slices,
        multiprocessors=section.multiprocessors,
        nvml_profile=section.nvml_profile,
        placements=tuple(section.placements),
        profile_id=section.profile_id,
        max_count=section.max_count,
    )
