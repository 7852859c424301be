"""How long the daemon waits for what, in seconds, in one place; and how it waits ever longer for what keeps failing.

Tests and simulations pass shorter times; the proportions are what the behaviour rests on.
"""

from dataclasses import dataclass, field
from random import Random

from gpustow.health.monitor import MonitorTiming
from gpustow.kubelet.registration import REGISTER_SECONDS

_JITTER = 0.25
_CRASHES_AT_MOST = 5
_CRASHES_FORGOTTEN = 3600.0


@dataclass(frozen=True, slots=True)
class Timing:
    """`poll`: between two looks at the socket files, so at most this after a restart of kubelet is it noticed.

    `retry_first` to `retry_most`: before another try; the first also gives a kubelet that goes on time to notice that
    our old stream ended, since kubelet 1.36 and older mistake its end for that of the new one (kubernetes#135437).
    `stream_deadline`: from the registration to kubelet's stream. `alone_after`: from the end of another instance that
    served the same to the next registration; longer than it takes that one to change its socket. `stable_after`: from
    then on a stream counts as sound, and the next failure as the first. `register`: the deadline of Register.
    `look_again`: before the next look for devices on a node that has none, or whose driver cannot be read.
    `usage_every`: between two reads of what is in use; `usage_settles`: from the last Allocate, or from when a device
    left, to such a read; `kubelet_settles`: from the first registration with a kubelet until it knows all its pods;
    `admission`: how long after GetPreferredAllocation an Allocate is expected, and nothing is read. `reading`: how long
    a reading of the node may take. `look`: between two looks at the configuration file and at the device nodes.
    `monitor` is the time of the health monitor. `mps_again`: before an MPS control daemon that does not answer is asked
    again.
    """

    poll: float = 1.0
    retry_first: float = 1.0
    retry_most: float = 30.0
    stream_deadline: float = 10.0
    alone_after: float = 10.0
    stable_after: float = 60.0
    register: float = REGISTER_SECONDS
    look_again: float = 30.0
    usage_every: float = 30.0
    usage_settles: float = 2.0
    kubelet_settles: float = 30.0
    admission: float = 10.0
    mps_again: float = 5.0
    reading: float = 120.0
    look: float = 2.0
    monitor: MonitorTiming = field(default_factory=MonitorTiming)


class CrashBudget:
    """How often something may crash before it is given up: five times, as in v0.20.0.

    A crash that comes more than an hour after the one before counts as the first.
    """

    def __init__(self, start: float) -> None:
        self._last = start
        self._crashes = 0

    def spend(self, now: float) -> bool:
        """Counts a crash; whether that was within the budget. Times are seconds of a clock that only goes up."""
        self._crashes = 1 if now - self._last > _CRASHES_FORGOTTEN else self._crashes + 1
        self._last = now
        return self._crashes <= _CRASHES_AT_MOST


class Backoff:
    """Waiting times that double from `first` to `most`, each up to a quarter longer by chance and never shorter.

    The chance keeps the plugins of many resources and nodes from trying in step.
    """

    def __init__(self, first: float, most: float, random: Random) -> None:
        self._first = first
        self._most = most
        self._random = random
        self._next = first

    def next(self) -> float:
        """The time to wait now, in seconds."""
        wait = self._next
        self._next = min(2 * wait, self._most)
        return min(wait * (1 + _JITTER * self._random.random()), self._most)

    def reset(self) -> None:
        """Starts over: what failed works, or something else is there to try."""
        self._next = self._first
