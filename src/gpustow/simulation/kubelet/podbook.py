"""The pods of the node as the API server has them: they outlive kubelet.

A pod is active until it has ended or failed. An ended pod stays in the book until it is removed, as a Pod object does
until somebody deletes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from gpustow.errors import AdmissionError, UsageError
from gpustow.simulation.kubelet.pod import Pod, effective_limits
from gpustow.simulation.kubelet.status import ResourceStatus


class Phase(Enum):
    """A pod's phase; the values are those of the API."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class PodStatus:
    """A pod's status as the API server shows it.

    `allocated_resources` is `allocatedResourcesStatus` by container, as kubelet wrote it last.
    """

    phase: Phase = Phase.PENDING
    reason: str = ""
    message: str = ""
    allocated_resources: Mapping[str, tuple[ResourceStatus, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class PodRecord:
    """A pod, its effective limits, and its status."""

    pod: Pod
    limits: Mapping[str, int]
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def active(self) -> bool:
        """Whether the pod was admitted and has not ended."""
        return self.status.phase is Phase.RUNNING


class PodBook:
    """The pods by namespace and name."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], PodRecord] = {}

    def create(self, pod: Pod) -> None:
        """A pod that waits for its admission; UsageError if one of that name has not ended yet."""
        known = self._records.get((pod.namespace, pod.name))
        if known is not None and known.status.phase in {Phase.PENDING, Phase.RUNNING}:
            raise UsageError(
                f"pod {pod.key} is there already", advice="Remove it first, or give the new one its own name."
            )
        self._records[pod.namespace, pod.name] = PodRecord(pod, effective_limits(pod))

    def record(self, namespace: str, name: str) -> PodRecord:
        """The pod of that name; KeyError if there is none."""
        return self._records[namespace, name]

    def remove(self, namespace: str, name: str) -> Pod:
        """Deletes a pod; KeyError if there is none."""
        return self._records.pop((namespace, name)).pod

    def set_phase(self, pod: Pod, phase: Phase) -> None:
        """The pod has come into a phase."""
        self.record(pod.namespace, pod.name).status = PodStatus(phase)

    def fail(self, pod: Pod, error: AdmissionError) -> None:
        """The pod was refused."""
        message = f"Pod was rejected: {error.status_message}"
        self.record(pod.namespace, pod.name).status = PodStatus(Phase.FAILED, error.reason, message)

    def pods(self) -> list[Pod]:
        """The pods that kubelet has admitted at some time, ended ones included."""
        return [record.pod for record in self._records.values() if record.status.phase is not Phase.PENDING]

    def active(self) -> list[Pod]:
        """The pods that were admitted and have not ended."""
        return [record.pod for record in self._records.values() if record.active]

    def active_uids(self) -> list[str]:
        """Their uids."""
        return [pod.uid for pod in self.active()]

    def used(self, resource: str, but: Pod) -> int:
        """How much of a resource the active pods want, one pod left out."""
        records = self._records.values()
        return sum(record.limits.get(resource, 0) for record in records if record.active and record.pod.uid != but.uid)
