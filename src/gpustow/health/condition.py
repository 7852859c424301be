"""Whether one GPU or MIG device is fit: a state machine of values, with time passed in.

    healthy --fault--> unhealthy --well--> recovering --well, and quiet for the hold time--> healthy
                           ^                    |
                           +--- fault, or not well ---+

Well is only what proves it: see `wording.lacks`. What was lost (its bus is gone, XID 79) is not asked before it has
been found again in a reading of the node. What becomes unfit again and again is held for longer.

Limits: what happened before this process started is not known, except for what a GPU says of itself.
"""

from dataclasses import dataclass, replace
from enum import Enum

from gpustow.config.faultrule import written_seconds
from gpustow.config.health import RecoveryConfig
from gpustow.health.event import EventKind, HealthEvent, RecoveryProof
from gpustow.health.target import Scope, Target
from gpustow.health.wording import lacks, reason_of
from gpustow.health.xids import FALLEN_OFF_THE_BUS

_NO_RECOVERY = RecoveryConfig(enabled=False)


class Fitness(Enum):
    """Only what is healthy is given to pods."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    RECOVERING = "recovering"
    """It is well, and held for some time to see whether it stays so."""


@dataclass(frozen=True, slots=True)
class Condition:
    """How a target is. Times are those of the clock that was passed in.

    While it is not healthy: `event` is what made it so, `since` when, `lacking` what keeps it from being well, and
    `hold_until` the earliest end of its hold. `falls` are the times at which it has become unfit lately.
    """

    target: Target
    fitness: Fitness = Fitness.HEALTHY
    event: HealthEvent | None = None
    since: float = 0.0
    lacking: str = ""
    hold_until: float | None = None
    lost: bool = False
    falls: tuple[float, ...] = ()

    @property
    def fit(self) -> bool:
        """Whether it may be given to pods."""
        return self.fitness is Fitness.HEALTHY

    @property
    def reason(self) -> str:
        """Why it is not healthy; empty if it is."""
        return "" if self.event is None else reason_of(self.event)


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of fitness at the time `at`. `event` is the fault that it is about, now or before.

    `unfit_seconds` is how long the target has not been healthy.
    """

    target: Target
    before: Fitness
    after: Fitness
    at: float
    event: HealthEvent | None
    unfit_seconds: float
    sentence: str


def struck(condition: Condition, event: HealthEvent, now: float, recovery: RecoveryConfig) -> Condition:
    """The condition after a fault that makes it unfit.

    The first fault stays the reason, because the following ones are often its echo, unless the GPU is lost.
    """
    lost = event.kind is EventKind.LOST or event.xid == FALLEN_OFF_THE_BUS
    falls = condition.falls
    if condition.fit:
        falls = (*(at for at in falls if now - at < recovery.flap_window), now)
    keeps_reason = condition.fitness is Fitness.UNHEALTHY and not (lost and not condition.lost)
    return replace(
        condition,
        fitness=Fitness.UNHEALTHY,
        event=condition.event if keeps_reason else event,
        since=now if condition.fit else condition.since,
        lacking="",
        hold_until=None,
        lost=condition.lost or lost,
        falls=falls,
    )


def proven(condition: Condition, proof: RecoveryProof, now: float, recovery: RecoveryConfig) -> Condition:
    """The condition after its GPU was asked whether it is well."""
    if condition.fit or not recovery.enabled or condition.lost:
        return condition
    lacking = lacks(proof, unknown_is_proof=recovery.unknown_is_proof)
    if lacking:
        return replace(condition, fitness=Fitness.UNHEALTHY, lacking=lacking, hold_until=None)
    until = now + hold_time(condition, recovery) if condition.hold_until is None else condition.hold_until
    if now < until:
        return replace(condition, fitness=Fitness.RECOVERING, lacking="", hold_until=until)
    return Condition(condition.target, falls=condition.falls)


def found_again(condition: Condition) -> Condition:
    """The condition of a lost GPU that a reading of the node has found; it is still to prove that it is well."""
    return replace(condition, lost=False)


def hold_time(condition: Condition, recovery: RecoveryConfig) -> float:
    """How long, in seconds, it has to be well and quiet."""
    if len(condition.falls) >= recovery.flap_count:
        return max(recovery.hold_time, recovery.flap_hold_time)
    return recovery.hold_time


def transition(
    before: Condition, after: Condition, now: float, recovery: RecoveryConfig = _NO_RECOVERY
) -> Transition | None:
    """The change from one condition to the next; None if the fitness is the same.

    `recovery` has the rule that is told of what becomes unfit again and again; without recovery none is.
    """
    if before.fitness is after.fitness:
        return None
    unfit = 0.0 if before.fit else now - before.since
    return Transition(
        target=after.target,
        before=before.fitness,
        after=after.fitness,
        at=now,
        event=after.event or before.event,
        unfit_seconds=unfit,
        sentence=_sentence(before, after, now, unfit, recovery),
    )


def _sentence(before: Condition, after: Condition, now: float, unfit: float, recovery: RecoveryConfig) -> str:
    name = str(after.target)
    everything = "; no device is healthy until it works" if after.target.scope is Scope.MONITOR else ""
    match after.fitness:
        case Fitness.UNHEALTHY if before.fit:
            return f"{name} is unhealthy: {after.reason}{_flaps(len(after.falls), recovery)}{everything}"
        case Fitness.UNHEALTHY:
            return f"{name} is unhealthy again while it was held: {after.lacking or after.reason}{everything}"
        case Fitness.RECOVERING:
            hold = _time((after.hold_until or now) - now)
            return f"{name} is well again, and healthy if it stays so for {hold}"
        case _:
            return f"{name} is healthy again after {_time(unfit)}; it was unhealthy because of: {before.reason}"


def _flaps(falls: int, recovery: RecoveryConfig) -> str:
    """How often it has become unfit lately, and what that costs it; empty the first time."""
    if falls < 2:
        return ""
    often = f"; {_ordinal(falls)} time within {_time(recovery.flap_window)}"
    if not recovery.enabled or recovery.flap_hold_time <= recovery.hold_time:
        return often
    quiet = f"it has to be well and quiet for {_time(recovery.flap_hold_time)} before it is healthy again"
    return f"{often}, so {quiet}" if falls >= recovery.flap_count else f"{often}; at {recovery.flap_count} {quiet}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _time(seconds: float) -> str:
    return written_seconds(round(seconds, 0 if seconds >= 10 else 1))
