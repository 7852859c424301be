"""The pods of the node as the API server has them: they outlive kubelet.

A pod is active from the moment in which kubelet takes it up for admission until it has ended or failed. An ended pod
stays in the book until it is removed, as a Pod object does until somebody deletes it, or there are too many of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from gpustow.errors import AdmissionError, UsageError
from gpustow.simulation.kubelet.pod import Pod, effective_limits
from gpustow.simulation.kubelet.status import ResourceStatus

ENDED_KEPT = 12_500
"""Ended pods that are kept: the default of kube-controller-manager's --terminated-pod-gc-threshold."""


class Phase(Enum):
    """A pod's phase; the values are those of the API."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"

    @property
    def ended(self) -> bool:
        """Whether nothing of the pod runs, or ever will."""
        return self in {Phase.SUCCEEDED, Phase.FAILED}


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


@dataclass(frozen=True, slots=True)
class Readmission:
    """How a pod fared when kubelet started again; `refusal` is None if it was admitted."""

    pod: Pod
    refusal: AdmissionError | None = None


class PodBook:
    """The pods by namespace and name."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], PodRecord] = {}
        self._active: dict[str, PodRecord] = {}
        self._ended: dict[tuple[str, str], None] = {}

    def create(self, pod: Pod) -> None:
        """Kubelet takes up a pod for admission; UsageError if one of that name has not ended yet."""
        known = self._records.get((pod.namespace, pod.name))
        if known is not None and not known.status.phase.ended:
            advice = "Remove it first, or give the new one its own name."
            raise UsageError(f"pod {pod.key} is there already", advice=advice)
        if known is not None:
            self.remove(pod.namespace, pod.name)
        record = PodRecord(pod, effective_limits(pod))
        self._records[pod.namespace, pod.name] = self._active[pod.uid] = record

    def record(self, namespace: str, name: str) -> PodRecord:
        """The pod of that name; KeyError if there is none."""
        return self._records[namespace, name]

    def has(self, pod: Pod) -> bool:
        """Whether that very pod is there."""
        record = self._records.get((pod.namespace, pod.name))
        return record is not None and record.pod.uid == pod.uid

    def remove(self, namespace: str, name: str) -> Pod:
        """Deletes a pod; KeyError if there is none."""
        pod = self._records.pop((namespace, name)).pod
        self._active.pop(pod.uid, None)
        self._ended.pop((namespace, name), None)
        return pod

    def run(self, pod: Pod) -> None:
        """The pod was admitted."""
        self.record(pod.namespace, pod.name).status = PodStatus(Phase.RUNNING)

    def end(self, pod: Pod, status: PodStatus) -> None:
        """The pod has ended with this status; of too many ended pods the oldest are deleted."""
        self.record(pod.namespace, pod.name).status = status
        self._active.pop(pod.uid, None)
        self._ended[pod.namespace, pod.name] = None
        while len(self._ended) > ENDED_KEPT:
            oldest = next(iter(self._ended))
            self.remove(*oldest)

    def pods(self) -> list[Pod]:
        """All pods, ended ones included, in the order of their creation."""
        return [record.pod for record in self._records.values()]

    def active(self) -> list[Pod]:
        """The pods that have not ended, in the order of their creation."""
        return [record.pod for record in self._active.values()]

    def active_uids(self) -> list[str]:
        """Their uids."""
        return [*self._active]

    def used(self, resource: str, but: Pod) -> int:
        """How much of a resource the active pods want, one pod left out."""
        records = self._active.items()
        return sum(record.limits.get(resource, 0) for uid, record in records if uid != but.uid)


def refused(error: AdmissionError) -> PodStatus:
    """The status of a pod that was not admitted."""
    return PodStatus(Phase.FAILED, error.reason, f"Pod was rejected: {error.status_message}")
