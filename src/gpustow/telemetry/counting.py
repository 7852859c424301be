"""What the observers of plugins and of health count. Told in the thread of the event loop."""

import time
from collections.abc import Callable, Iterator, Sequence

from gpustow.errors import AllocationRefused, InfeasibleRequest
from gpustow.health.condition import Transition
from gpustow.health.event import EventKind, HealthEvent
from gpustow.health.nodehealth import Taken
from gpustow.placement import Placement
from gpustow.placement.explain import Explanation
from gpustow.telemetry import catalogue as known
from gpustow.telemetry.decisions import Decisions
from gpustow.telemetry.metric import Counters, Distribution, Labels, Sample

REGISTERED = "registered"
"""The state of a plugin that kubelet has just taken."""

_CAUSES = ("infeasible", "fault", "hurried", "inexact")
_REASONS = ("refused", "fault")
RELOAD_RESULTS = ("ok", "refused")


class PluginCounts:
    """Is told what plugins do (a PluginObserver of `plugin`), counts it, and keeps the recent decisions."""

    explains = True

    def __init__(self, decisions: Decisions) -> None:
        self.counters = Counters()
        self.decision_seconds: dict[Labels, Distribution] = {}
        self._decisions = decisions
        for result in RELOAD_RESULTS:
            self.counters.begin(known.RELOADS, result)

    def moved(self, resource: str, state: str, reason: str) -> None:  # noqa: ARG002 - as the observer has it
        """The plugin is in another state."""
        self._begin(resource)
        self.counters.add(known.STATE_CHANGES, resource, str(state))
        if state == REGISTERED:
            self.counters.add(known.REGISTRATIONS, resource)

    def list_sent(self, resource: str, size: int) -> None:
        """Kubelet was sent the list, of so many bytes."""
        self.counters.add(known.LIST_SENDS, resource)
        self.counters.add(known.LIST_BYTES, resource, by=size)

    def preferred(self, resource: str, placement: Placement, seconds: float) -> None:
        """Devices were preferred."""
        labels = (resource, placement.policy.name.value)
        seen = self.decision_seconds.get(labels)
        if seen is None:
            seen = self.decision_seconds[labels] = Distribution.of(known.DECISION_SECONDS)
        seen.observe(seconds)
        if placement.hurried:
            self.counters.add(known.FALLBACKS, resource, "hurried")
        elif not placement.exact:
            self.counters.add(known.FALLBACKS, resource, "inexact")

    def explained(self, resource: str, placement: Placement, explanation: Explanation, seconds: float) -> None:
        """Why they were preferred is known."""
        decision = self._decisions.add(resource, placement, explanation, seconds)
        self.counters.add(known.PLACEMENTS, resource, decision.policy, decision.decided_by)

    def preference_failed(self, resource: str, error: Exception) -> None:
        """Nothing was preferred."""
        cause = "infeasible" if isinstance(error, InfeasibleRequest) else "fault"
        self.counters.add(known.FALLBACKS, resource, cause)

    def allocated(self, resource: str, ids: Sequence[str]) -> None:
        """A container was given devices."""
        self.counters.add(known.ALLOCATIONS, resource)
        self.counters.add(known.ALLOCATED_DEVICES, resource, by=len(ids))

    def allocation_failed(self, resource: str, error: Exception) -> None:
        """A container was given nothing, and its pod has failed."""
        reason = "refused" if isinstance(error, AllocationRefused) else "fault"
        self.counters.add(known.ALLOCATION_ERRORS, resource, reason)

    def reloaded(self, refusal: str | None) -> None:
        """The configuration was read again, and refused if there is a reason."""
        self.counters.add(known.RELOADS, "ok" if refusal is None else "refused")

    def surveyed(self, trouble: str | None) -> None:
        """The node was read, and there is something wrong if there is a reason."""
        self.counters.add(known.NODE_READINGS, "ok" if trouble is None else "trouble")

    def _begin(self, resource: str) -> None:
        for metric in (known.REGISTRATIONS, known.LIST_SENDS, known.LIST_BYTES):
            self.counters.begin(metric, resource)
        for metric in (known.ALLOCATIONS, known.ALLOCATED_DEVICES):
            self.counters.begin(metric, resource)
        for cause in _CAUSES:
            self.counters.begin(known.FALLBACKS, resource, cause)
        for reason in _REASONS:
            self.counters.begin(known.ALLOCATION_ERRORS, resource, reason)


class HealthCounts:
    """Is told what happens to health (a HealthObserver), and counts it. `clock` gives seconds since 1970."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.counters = Counters()
        self.last_wait: float | None = None
        self._clock = clock
        self.counters.begin(known.SOURCE_FAILURES)

    def event(self, taken: Taken) -> None:
        """Something happened."""
        if taken.again:
            return
        event = taken.event
        uuid = event.gpu_uuid or ""
        self.counters.add(known.HEALTH_EVENTS, uuid, event.kind.value)
        if event.kind is EventKind.XID:
            self.counters.add(known.XIDS, uuid, str(event.xid))

    def transition(self, transition: Transition) -> None:
        """A GPU, a MIG device or the monitor is another than before."""
        self.counters.add(
            known.TRANSITIONS,
            transition.target.gpu_uuid,
            transition.target.scope.name.lower(),
            transition.after.value,
            _cause(transition.event),
        )

    def source_failed(self, reason: str) -> None:  # noqa: ARG002 - as the observer has it
        """The source does not work."""
        self.counters.add(known.SOURCE_FAILURES)

    def waited(self) -> None:
        """The source works."""
        self.last_wait = self._clock()

    def samples(self) -> Iterator[Sample]:
        """All that was counted, and the time of the last wait."""
        yield from self.counters.samples()
        if self.last_wait is not None:
            yield Sample(known.LAST_WAIT, (), self.last_wait)


def _cause(event: HealthEvent | None) -> str:
    if event is None:
        return ""
    return f"xid {event.xid}" if event.kind is EventKind.XID else event.kind.value
