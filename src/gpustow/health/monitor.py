"""Watching health: runs a source in its thread, lets policy and conditions judge, and tells what has changed.

A source that fails is started anew: at once the first time, since a driver may well lose its event set, then after ever
longer times. If it fails twice without having worked in between, or does not come back from a call, nothing is watched,
and every device is unhealthy until it works again (k8s-device-plugin#1640). A source that has nothing to tell is fine.

A source is never called while a call of it has not returned; so a driver that hangs costs one thread, not more and
more. Everything but the calls happens in the event loop.

Limits: the watchdog's time is the loop's, not the clock's that was passed in, since it is about a real thread.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from gpustow.config import Config
from gpustow.config.xidswitches import DISABLE
from gpustow.hardware.node import Node
from gpustow.health.condition import Fitness, Transition
from gpustow.health.event import EventKind, HealthEvent, HealthSource, RecoveryProof
from gpustow.health.nodehealth import Conditions, NodeHealth, Taken
from gpustow.health.observer import GuardedHealthObserver, HealthObserver, SilentHealthObserver
from gpustow.health.policy import HealthPolicy
from gpustow.health.sourcethread import SourceThread

log = logging.getLogger(__name__)

_T = TypeVar("_T")

_HAPPENS = frozenset({EventKind.XID, EventKind.ECC_SINGLE, EventKind.ECC_DOUBLE})
"""What may change what a GPU says of itself."""

_NOT_WATCHED = frozenset({EventKind.UNWATCHED, EventKind.LOST})
_CANNOT_BE_WATCHED = RecoveryProof(readable=False, uuid_matches=False, detail="it cannot be watched")


@dataclass(frozen=True, slots=True)
class MonitorTiming:
    """Seconds. `wait`: the longest that one call waits for events, and so until a new node is watched.

    `patience`: how much longer than it should take a call may take before the source counts as hanging; registering
    many GPUs of a slow driver is within it. `retry_first` to `retry_most`: before a source that failed again is tried
    again, twice as long each time.
    """

    wait: float = 2.0
    patience: float = 30.0
    retry_first: float = 1.0
    retry_most: float = 30.0


class _SourceFailed(Exception):  # noqa: N818 - names what happened
    """The source does not work; the text says why."""


class HealthMonitor:
    """Watches the GPUs of a node. `run` it in a task; the rest is for the event loop's thread.

    `on_change` is called with the conditions whenever they differ from those before. `settled` is set once it is known
    how the node is: its GPUs are watched and, if the policy wants to know of it, asked; or they cannot be.
    """

    def __init__(
        self,
        source: HealthSource,
        config: Config,
        on_change: Callable[[Conditions], None],
        *,
        observer: HealthObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        timing: MonitorTiming | None = None,
    ) -> None:
        self.settled = asyncio.Event()
        self._source = source
        self._on_change = on_change
        self._observer = GuardedHealthObserver(observer or SilentHealthObserver())
        self._clock = clock
        self._sleep = sleep
        self._timing = timing or MonitorTiming()
        self._thread = SourceThread("gpustow-health")
        self._health = NodeHealth(HealthPolicy.of(config), config.health.recovery)
        self._check_interval = config.health.check_interval
        self._conditions = Conditions()
        self._node: Node | None = None
        self._watch_anew = False
        self._has_node = asyncio.Event()
        self._unwatched: set[str] = set()
        self._failures = 0
        self._lacking: dict[str, str] = {}

    @property
    def conditions(self) -> Conditions:
        """How everything is."""
        return self._conditions

    def update(self, node: Node) -> None:
        """The node as it was read again, with the GPUs that are ours alone. They are watched soon."""
        before, self._node = self._node, node
        lost = any(condition.lost for condition in self._conditions.known)
        self._health.update(node)
        same = before is not None and {gpu.uuid for gpu in before.gpus} == {gpu.uuid for gpu in node.gpus}
        if not same or lost or self._unwatched:
            self._watch_anew = True
        self._publish()
        self._has_node.set()

    def reconfigure(self, config: Config) -> None:
        """Another configuration from now on. What is unfit stays so until it proves that it is well."""
        self._health.policy = HealthPolicy.of(config)
        self._health.recovery = config.health.recovery
        self._check_interval = config.health.check_interval

    async def run(self) -> None:
        """Watches until it is cancelled; the source is closed then, as soon as it returns.

        Returns at once, and leaves everything healthy, if health checks are switched off.
        """
        if self._health.policy.off:
            log.warning("health checks are off: %s=all", DISABLE)
            self.settled.set()
            return
        try:
            await self._has_node.wait()
            while True:
                try:
                    await self._watch_and_wait()
                except _SourceFailed as failure:
                    self._fail(str(failure))
                await self._sleep(self._delay())
        finally:
            self._thread.end(self._source.close)

    async def _watch_and_wait(self) -> None:
        """Raises _SourceFailed when the source does not work any more."""
        await self._watch()
        check_at = self._clock() + (0.0 if self._health.policy.asks else self._check_interval)
        while True:
            if self._watch_anew:
                await self._watch()
            now = self._clock()
            if now >= check_at:
                check_at = now + self._check_interval
                await self._check()
            self.settled.set()
            wait = self._timing.wait
            await self._judge(await self._call(self._source.wait, wait, expected=wait))
            self._failures = 0
            self._observer.waited()
            self._tell_transitions([self._health.monitor_works(self._clock())])

    async def _watch(self) -> None:
        self._watch_anew = False
        events = await self._call(self._source.watch, self._node)
        self._unwatched = {event.gpu_uuid for event in events if event.kind in _NOT_WATCHED and event.gpu_uuid}
        await self._judge(events)

    async def _check(self) -> None:
        """Asks GPUs: the unfit ones whether they are well, and all of them for what the policy wants to know."""
        if self._unwatched:
            await self._watch()
        to_prove = self._health.to_ask
        gpus = () if self._node is None else self._node.gpus
        for uuid in [gpu.uuid for gpu in gpus] if self._health.policy.asks else to_prove:
            if uuid in self._unwatched:
                proof = _CANNOT_BE_WATCHED
            else:
                proof = await self._ask(uuid)
            if uuid in to_prove:
                self._tell_transitions(self._health.prove(uuid, proof, self._clock()))
                self._tell_lacking(uuid)

    async def _ask(self, uuid: str) -> RecoveryProof:
        proof = await self._call(self._source.proof, uuid)
        if self._health.policy.asks:
            for taken in self._health.ask(uuid, proof, self._clock()):
                self._tell(taken)
        return proof

    async def _judge(self, events: Sequence[HealthEvent]) -> None:
        """Raises _SourceFailed if that is among the events, after all others were judged."""
        for event in events:
            if event.kind is not EventKind.SOURCE_FAILED:
                self._tell(self._health.take(event, self._clock()))
        if self._health.policy.asks and self._node is not None:
            named = {event.gpu_uuid for event in events if event.kind in _HAPPENS}
            for gpu in self._node.gpus:
                if gpu.uuid in named or None in named:
                    await self._ask(gpu.uuid)
        failed = next((event for event in events if event.kind is EventKind.SOURCE_FAILED), None)
        if failed is not None:
            raise _SourceFailed(failed.detail or "it says so")

    async def _call(self, function: Callable[..., _T], *arguments: Any, expected: float = 0.0) -> _T:
        """Calls the source. Raises _SourceFailed if it raises, or has not come back in time: once it has come back."""
        outcome = self._thread.call(function, *arguments)
        try:
            await self._come_back(outcome, function.__name__, expected + self._timing.patience)
        finally:
            outcome.cancel()
        try:
            return outcome.result()
        except Exception as error:
            raise _SourceFailed(f"its {function.__name__} failed: {error!r}") from error

    async def _come_back(self, outcome: "asyncio.Future[Any]", name: str, limit: float) -> None:
        """Waits for the outcome. Raises _SourceFailed if that took longer than `limit` seconds."""
        since = self._clock()
        done, _ = await asyncio.wait({outcome}, timeout=limit)
        if done:
            return
        self._failures += 1  # what hangs cannot be started anew, so it counts for two
        self._fail(f"its {name} does not come back")
        await asyncio.wait({outcome})
        outcome.exception()
        raise _SourceFailed(f"its {name} came back after {self._clock() - since:.0f} s")

    def _fail(self, reason: str) -> None:
        self._failures += 1
        log.warning("the source of health does not work: %s", reason)
        self._observer.source_failed(reason)
        if self._failures > 1:
            event = HealthEvent(EventKind.SOURCE_FAILED, detail=reason)
            self._tell_transitions([self._health.monitor_failed(event, self._clock())])
            self.settled.set()

    def _delay(self) -> float:
        """Seconds before the source is tried again."""
        if self._failures < 2:
            return 0.0
        return min(self._timing.retry_first * 2.0 ** min(self._failures - 2, 30), self._timing.retry_most)

    def _tell(self, taken: Taken) -> None:
        self._observer.event(taken)
        log.log(logging.DEBUG if taken.again else self._level(taken), "%s", taken.sentence)
        self._tell_transitions(taken.transitions)

    def _level(self, taken: Taken) -> int:
        """A warning, unless a transition warns of the same, or all that is hit was unfit before."""
        fit = any(self._conditions.reason(target.uuid) is None for target in taken.targets)
        return logging.WARNING if taken.rule.faults and fit and not taken.transitions else logging.INFO

    def _tell_transitions(self, transitions: Iterable[Transition | None]) -> None:
        for transition in transitions:
            if transition is not None:
                self._observer.transition(transition)
                unhealthy = transition.after is Fitness.UNHEALTHY
                log.log(logging.WARNING if unhealthy else logging.INFO, "%s", transition.sentence)
        self._publish()

    def _tell_lacking(self, gpu_uuid: str) -> None:
        """Says once why what is unfit on a GPU does not recover."""
        for condition in self._conditions.known:
            uuid = condition.target.uuid
            if condition.target.gpu_uuid != gpu_uuid or self._lacking.get(uuid, "") == condition.lacking:
                continue
            self._lacking[uuid] = condition.lacking
            if condition.lacking:
                log.info("%s stays unhealthy: %s", condition.target, condition.lacking)

    def _publish(self) -> None:
        conditions = self._health.conditions
        if conditions != self._conditions:
            self._conditions = conditions
            self._on_change(conditions)
