"""The pods that a test brings, and what they are given.

A pod has what the device manager looks at and no more: names, a uid, and per container the limits of extended
resources. Amounts come from limits, as for every extended resource (requests must equal them).

Limits: no CPU, memory or claims, no ephemeral containers (they get no devices), no pod overhead.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gpustow.errors import UsageError
from gpustow.injection import DeviceNode, Mount
from gpustow.simulation.kubelet.answer import Conflict, ContainerAnswer


@dataclass(frozen=True, slots=True)
class Container:
    """A container: how much of each extended resource it is limited to, in devices.

    `restartable` makes a sidecar of an init container (`restartPolicy: Always`); it means nothing on an app container.
    Raises UsageError for a negative amount.
    """

    name: str
    limits: Mapping[str, int] = field(default_factory=dict)
    restartable: bool = False

    def __post_init__(self) -> None:
        for resource, amount in self.limits.items():
            if amount < 0:
                raise UsageError(f"container {self.name!r}: the limit of {resource} is {amount}; it must be 0 or more")


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as the API server shows it to kubelet.

    `uid` is what kubelet knows a pod by; left empty, the embedded kubelet makes one up when it admits the pod.
    Raises UsageError if two containers have one name, or there is none.
    """

    name: str
    namespace: str = "default"
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    uid: str = ""

    def __post_init__(self) -> None:
        names = [container.name for container in self.in_order()]
        if not self.containers:
            raise UsageError(f"pod {self.key} has no containers; give it at least one")
        if len(set(names)) < len(names):
            raise UsageError(f"pod {self.key}: the names of its containers repeat: {', '.join(names)}")

    @property
    def key(self) -> str:
        """`namespace/name`, as logs and errors name a pod."""
        return f"{self.namespace}/{self.name}"

    def in_order(self) -> Iterator[Container]:
        """All containers in the order in which kubelet allocates for them: init containers, then app containers."""
        yield from self.init_containers
        yield from self.containers

    def lasting(self) -> tuple[str, ...]:
        """The containers that run once the pod is up: ordinary init containers have ended, sidecars have not."""
        sidecars = [container.name for container in self.init_containers if container.restartable]
        return (*sidecars, *(container.name for container in self.containers))

    def is_init(self, name: str) -> bool:
        """Whether the container of that name is an init container, sidecars included."""
        return any(container.name == name for container in self.init_containers)

    def is_sidecar(self, name: str) -> bool:
        """Whether the container of that name is a restartable init container."""
        return any(container.name == name and container.restartable for container in self.init_containers)


@dataclass(frozen=True, slots=True)
class AdmittedContainer:
    """What one container was given: the ids by resource, sorted, and what kubelet passes to the runtime.

    The latter is the merge of the plugins' answers. Where they clash, the first one that kubelet looks at wins, which
    may be another one at the next start; `conflicts` has what lost.
    """

    name: str
    device_ids: Mapping[str, tuple[str, ...]]
    edits: ContainerAnswer
    conflicts: tuple[Conflict, ...] = ()

    @property
    def envs(self) -> Mapping[str, str]:
        """The environment that the devices bring."""
        return self.edits.envs

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The bind mounts that the devices bring."""
        return self.edits.mounts

    @property
    def devices(self) -> tuple[DeviceNode, ...]:
        """The device nodes that the devices bring."""
        return self.edits.devices

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations for the runtime; they never reach the Pod object."""
        return self.edits.annotations

    @property
    def cdi_devices(self) -> tuple[str, ...]:
        """The CDI names for the runtime, each once."""
        return self.edits.cdi_devices


@dataclass(frozen=True, slots=True)
class AdmittedPod:
    """A pod that was admitted: the pod with its uid, and what each of its containers was given."""

    pod: Pod
    containers: tuple[AdmittedContainer, ...]
    init_containers: tuple[AdmittedContainer, ...] = ()

    def container(self, name: str) -> AdmittedContainer:
        """The container of that name, init containers included; KeyError if there is none."""
        for container in (*self.init_containers, *self.containers):
            if container.name == name:
                return container
        raise KeyError(name)

    def device_ids(self, resource: str) -> tuple[str, ...]:
        """The ids of a resource that the pod holds, sorted, each once."""
        held = {
            device
            for container in (*self.init_containers, *self.containers)
            for device in container.device_ids.get(resource, ())
        }
        return tuple(sorted(held))


def effective_limits(pod: Pod) -> dict[str, int]:
    """What the pod as a whole needs of each resource.

    The most of: all app containers and sidecars together; each ordinary init container with the sidecars before it.
    """
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod.init_containers:
        if container.restartable:
            sidecars.update(container.limits)
            peak |= sidecars
        else:
            peak |= sidecars + Counter(container.limits)
    together = sidecars + sum((Counter(container.limits) for container in pod.containers), Counter())
    peak |= together
    named = {resource for container in pod.in_order() for resource in container.limits}
    return {resource: peak[resource] for resource in sorted(named)}
