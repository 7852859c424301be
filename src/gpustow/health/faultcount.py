"""Counting faults that make a device unfit only when there are several within a time.

One fault often sends several events; those of one kind that come within `SAME_FAULT_SECONDS` of its first are the same
fault. A rule's time is long enough for as many faults as it asks for.
"""

from collections import deque
from dataclasses import dataclass, field

from gpustow.config.faultrule import SAME_FAULT_SECONDS, FaultRule
from gpustow.health.event import EventKind

FaultKey = tuple[str, EventKind, int | None]
"""The UUID that is hit, the kind of event, and the XID."""


@dataclass(slots=True)
class FaultCount:
    """The times of the faults that still count, by what was hit and by which kind."""

    _times: dict[FaultKey, deque[float]] = field(default_factory=dict)

    def add(self, key: FaultKey, rule: FaultRule, now: float) -> int:
        """How many faults there are within the time of a rule that counts, with the event that has come now."""
        times = self._times.setdefault(key, deque())
        if not times or now - times[-1] >= SAME_FAULT_SECONDS:
            times.append(now)
        while now - times[0] > rule.seconds or len(times) > rule.faults:
            times.popleft()
        return len(times)

    def forget(self, uuid: str) -> None:
        """Starts over for what has this UUID."""
        self._times = {key: times for key, times in self._times.items() if key[0] != uuid}
