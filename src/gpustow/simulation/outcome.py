"""What came of a workload under one policy: the values that reports and pictures are made from.

Three words are defined here and nowhere else. A GPU is *wholly free* when it has something to give and no pod that is
still on the node holds any device of it, of any resource; that is the number that tells how well a policy stowed. A GPU
is *unusable* when it has nothing to give: no resource has a healthy device of it, and no pod holds one. A *slot*
is a device as the picture shows it: where it lies, and which pod holds it.

Limits: it is the state at the end of the workload. A device that a released pod held is free here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from gpustow.hardware.node import Gpu, Node
from gpustow.placement.fragmentation import fragmentation, slices_of
from gpustow.resources.device import Device, Resource


class Phase(Enum):
    """Where a pod stands when the workload has ended."""

    RUNNING = "running"
    RELEASED = "released"
    REFUSED = "refused"
    UNSCHEDULABLE = "unschedulable"


@dataclass(frozen=True, slots=True)
class ContainerOutcome:
    """What one container was given: ids by resource, and what the plugin put into it.

    That is its environment, annotations, and the names of CDI devices that kubelet passes on to the runtime.
    """

    name: str
    device_ids: Mapping[str, tuple[str, ...]]
    envs: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """What kubelet said when it did not admit a pod, or why a scheduler would not have sent it here."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodOutcome:
    """What became of one pod.

    `refusals` are all that it met with, in their order: a pod may come again, so that one that runs at the end may have
    been refused before. Where the phase is refused or unschedulable, the last of them is how it stands.
    """

    namespace: str
    name: str
    phase: Phase
    containers: tuple[ContainerOutcome, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def key(self) -> str:
        """Namespace and name, as `ml/train-0`."""
        return f"{self.namespace}/{self.name}"

    @property
    def turned_away(self) -> bool:
        """Whether it stands refused or unschedulable."""
        return self.phase in {Phase.REFUSED, Phase.UNSCHEDULABLE}

    @property
    def device_ids(self) -> tuple[str, ...]:
        """All ids that the pod was given, each once, in the order of its containers."""
        ids = (id_ for container in self.containers for held in container.device_ids.values() for id_ in held)
        return tuple(dict.fromkeys(ids))


@dataclass(frozen=True, slots=True)
class Advertised:
    """What kubelet counts of one resource: all devices, and those of them that are healthy."""

    capacity: int
    allocatable: int


@dataclass(frozen=True, slots=True)
class Slot:
    """One device and the pod that holds it, by namespace and name; None is free."""

    resource: str
    device: Device
    holder: str | None

    @property
    def healthy(self) -> bool:
        """Whether the device is."""
        return self.device.healthy


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a workload under one policy."""

    policy: str
    node: Node
    resources: tuple[Resource, ...]
    advertised: Mapping[str, Advertised]
    pods: tuple[PodOutcome, ...]
    warnings: tuple[str, ...] = ()

    @property
    def whole_gpus_only(self) -> bool:
        """Whether nothing is shared or cut, so that `aligned` places every pod under any policy."""
        return bool(self.resources) and all(resource.whole_gpus for resource in self.resources)

    def holders(self) -> dict[str, str]:
        """Which pod holds which device at the end, by device id."""
        return {id_: pod.key for pod in self.pods if pod.phase is Phase.RUNNING for id_ in pod.device_ids}

    def slots(self, gpu: Gpu) -> tuple[Slot, ...]:
        """The devices that lie on a GPU, resource by resource, each with its holder."""
        holders = self.holders()
        return tuple(
            Slot(resource.name, device, holders.get(device.id))
            for resource in self.resources
            for device in resource.devices
            if device.gpu_index == gpu.index
        )

    def wholly_free_gpus(self) -> tuple[int, ...]:
        """The indices of the GPUs that have something to give and of which nothing is in use."""
        return tuple(gpu.index for gpu in self.node.gpus if _usable(slots := self.slots(gpu)) and not _used(slots))

    def unusable_gpus(self) -> tuple[int, ...]:
        """The indices of the GPUs that have nothing to give, such as one in MIG mode without MIG devices."""
        return tuple(gpu.index for gpu in self.node.gpus if not _usable(self.slots(gpu)))

    def mig_fragmentation(self) -> dict[int, int]:
        """For each GPU cut for MIG, in memory slices, what is free and cannot become a MIG device; 0 is none.

        A GPU is left out where it is not known where its MIG devices in use lie.
        """
        holders = self.holders()
        held = [device for resource in self.resources for device in resource.devices if device.id in holders]
        measured: dict[int, int] = {}
        for gpu in self.node.gpus:
            parts = [device.mig for device in held if device.gpu_index == gpu.index and device.mig is not None]
            taken = [slices_of(part) for part in parts]
            if gpu.mig_enabled and gpu.mig_profiles and None not in taken:
                free = set(range(gpu.memory_slices)).difference(*(slices for slices in taken if slices is not None))
                measured[gpu.index] = fragmentation(gpu.mig_profiles, gpu.memory_slices, free)
        return measured

    def refused(self) -> tuple[PodOutcome, ...]:
        """The pods that did not get onto the node, be it once and not in the end."""
        return tuple(pod for pod in self.pods if pod.refusals)


def _used(slots: Sequence[Slot]) -> bool:
    return any(slot.holder is not None for slot in slots)


def _usable(slots: Sequence[Slot]) -> bool:
    return _used(slots) or any(slot.device.healthy for slot in slots)


def comparison(outcomes: Sequence[Outcome]) -> str:
    """One sentence that says how many GPUs each policy leaves wholly free."""
    first, *others = [(outcome.policy, len(outcome.wholly_free_gpus())) for outcome in outcomes]
    noun = "GPU" if first[1] == 1 else "GPUs"
    parts = [f"{first[0]} leaves {first[1]} {noun} wholly free", *(f"{name} leaves {free}" for name, free in others)]
    return f"{', '.join(parts)}."
