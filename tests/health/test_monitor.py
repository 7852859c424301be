"""Watching health: a source in its thread, with time in hand."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from gpustow.config import load_config
from gpustow.hardware.node import Node
from gpustow.health.condition import Fitness, Transition
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof
from gpustow.health.monitor import HealthMonitor, MonitorTiming
from gpustow.health.nodehealth import Conditions, Taken
from tests.health.machines import EVERYTHING, MIG_UUIDS, NODE, UNREADABLE, WELL, gpu, node, xid

TIMING = MonitorTiming(wait=0.01, patience=5.0, retry_first=1.0, retry_most=4.0)
FAILED = HealthEvent(EventKind.SOURCE_FAILED, detail="no driver")
UNWATCHED = HealthEvent(EventKind.UNWATCHED, "GPU-1", detail="Unknown Error")

Answer = Sequence[HealthEvent] | Exception


class Source:
    """A source that tells what the test puts into it, and notes what it is asked."""

    def __init__(self) -> None:
        self.events: SimpleQueue[Answer] = SimpleQueue()
        self.at_watch: list[Answer] = []
        self.proofs: dict[str, RecoveryProof] = {}
        self.watched: list[Node] = []
        self.asked: list[str] = []
        self.closed = threading.Event()
        self.free = threading.Event()
        self.free.set()
        self.inside = 0

    def tell(self, *events: HealthEvent) -> None:
        self.events.put(events)

    def watch(self, machine: Node) -> tuple[HealthEvent, ...]:
        self.watched.append(machine)
        return self._answer(self.at_watch.pop(0) if self.at_watch else ())

    def wait(self, seconds: float) -> tuple[HealthEvent, ...]:
        try:
            return self._answer(self.events.get(timeout=seconds))
        except Empty:
            return self._answer(())

    def proof(self, gpu_uuid: str) -> RecoveryProof:
        self.asked.append(gpu_uuid)
        return self.proofs.get(gpu_uuid, WELL)

    def close(self) -> None:
        self.closed.set()

    def _answer(self, answer: Answer) -> tuple[HealthEvent, ...]:
        self.inside += 1
        assert self.inside == 1, "one call at a time"
        self.free.wait(20)
        self.inside -= 1
        if isinstance(answer, Exception):
            raise answer
        return tuple(answer)


class Watched:
    """A monitor at work, its clock, and what it has told."""

    def __init__(self, text: str, timing: MonitorTiming, environ: dict[str, str] | None = None) -> None:
        self.now = 0.0
        self.source = Source()
        self.changes: list[Conditions] = []
        self.events: list[Taken] = []
        self.moves: list[Transition] = []
        self.failures: list[str] = []
        self.waits = 0
        self.slept: list[float] = []
        self.monitor = HealthMonitor(
            self.source,
            config(text, environ),
            self.changes.append,
            observer=self,
            clock=lambda: self.now,
            sleep=self._sleep,
            timing=timing,
        )

    def event(self, taken: Taken) -> None:
        self.events.append(taken)

    def transition(self, transition: Transition) -> None:
        self.moves.append(transition)

    def source_failed(self, reason: str) -> None:
        self.failures.append(reason)

    def waited(self) -> None:
        self.waits += 1

    @property
    def unfit(self) -> set[str]:
        return set(self.monitor.conditions.unfit)

    async def until(self, what: Callable[[], object]) -> None:
        """Waits until it is so."""
        async with asyncio.timeout(20):
            while not what():  # noqa: ASYNC110 - it looks at what threads do
                await asyncio.sleep(0.002)

    async def rounds(self, number: int = 2) -> None:
        """Waits until the source has waited so many times more: whatever was to be done is done then."""
        target = self.waits + number
        await self.until(lambda: self.waits >= target)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def config(text: str, environ: dict[str, str] | None = None) -> Any:
    return load_config({"config-file": "f", "mig-strategy": "mixed"}, environ or {}, lambda _: f"health: {text}").config


@asynccontextmanager
async def watching(
    text: str = "{}", timing: MonitorTiming = TIMING, machine: Node | None = NODE, at_watch: Sequence[Answer] = ()
) -> AsyncIterator[Watched]:
    watched = Watched(text, timing)
    watched.source.at_watch += at_watch
    if machine is not None:
        watched.monitor.update(machine)
    task = asyncio.create_task(watched.monitor.run())
    try:
        yield watched
        assert not task.done(), "the monitor goes on whatever happens"
    finally:
        watched.source.free.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_happens_to_a_gpu_is_told_with_the_conditions() -> None:
    async with watching() as watched:
        await watched.monitor.settled.wait()
        assert watched.source.watched == [NODE]
        assert watched.changes == []
        watched.source.tell(xid(79, "GPU-2"))
        await watched.until(lambda: watched.changes)
        assert watched.unfit == {"GPU-2", *MIG_UUIDS}
        assert watched.changes == [watched.monitor.conditions]
        assert [taken.event for taken in watched.events] == [xid(79, "GPU-2")]
        assert [change.after for change in watched.moves] == [Fitness.UNHEALTHY]


async def test_each_event_and_each_transition_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="gpustow.health")
    async with watching("{xids: {94: 3 in 1h}}") as watched:
        watched.source.tell(xid(31), xid(94), xid(48), xid(79, "GPU-9"))
        await watched.until(lambda: len(watched.events) == 4)
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in told] == ["INFO", "WARNING", "INFO", "WARNING", "INFO"]
    for (_, text), start, end in zip(
        told,
        ["GPU 0 (GPU-0): XID 31: MMU", "GPU 0 (GPU-0): XID 94", "GPU 0 (GPU-0): XID 48", "GPU 0 (GPU-0) is", "GPU-9"],
        ["It is ignored", "It counts: 1 of 3 in 1h", "It is fatal", "XID catalogue", "nothing that is served here"],
        strict=True,
    ):
        assert text.startswith(start)
        assert text.endswith(end)


async def test_a_lost_gpu_is_warned_of_once_whatever_tells_of_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="gpustow.health")
    async with watching() as watched:
        watched.source.tell(xid(79), HealthEvent(EventKind.LOST, "GPU-0"), xid(48), xid(79, "GPU-2", 3))
        await watched.until(lambda: len(watched.events) == 4)
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [text.partition(" is unhealthy")[0] for text in warned] == ["GPU 0 (GPU-0)", "MIG device 2:0 (MIG-2-0)"]
    assert sum(record.levelno == logging.INFO for record in caplog.records) == 4


async def test_case_c85_a_source_that_has_nothing_to_tell_is_fine() -> None:
    async with watching() as watched:
        await watched.rounds(10)
        assert watched.changes == []
        assert watched.failures == []
        assert watched.source.asked == []


async def test_case_c58_a_monitor_that_cannot_start_makes_everything_unhealthy() -> None:
    async with watching(at_watch=[[FAILED]] * 20) as watched:
        await watched.monitor.settled.wait()
        assert watched.unfit == EVERYTHING
        assert watched.monitor.conditions.reason("GPU-0") == "GPUs cannot be watched (no driver)"
        assert watched.failures[:2] == ["no driver", "no driver"]
        await watched.until(lambda: len(watched.slept) >= 6)
        assert watched.slept[:6] == [0.0, 1.0, 2.0, 4.0, 4.0, 4.0]


async def test_case_c58_a_monitor_that_works_again_makes_everything_healthy_after_the_hold() -> None:
    async with watching(at_watch=[[FAILED], ValueError("bad")]) as watched:
        await watched.until(lambda: watched.waits)
        assert watched.failures == ["no driver", "its watch failed: ValueError('bad')"]
        assert watched.unfit == EVERYTHING
        watched.now += 59
        await watched.rounds()
        assert watched.unfit == EVERYTHING
        watched.now += 1
        await watched.until(lambda: not watched.unfit)
        assert [change.after for change in watched.moves] == [
            Fitness.UNHEALTHY,
            Fitness.RECOVERING,
            Fitness.HEALTHY,
        ]


async def test_case_c60_one_failure_is_told_and_the_source_started_anew() -> None:
    async with watching() as watched:
        for answer in ([FAILED], OSError("broken")):
            watched.source.events.put(answer)
            await watched.rounds(1)
        assert watched.failures == ["no driver", "its wait failed: OSError('broken')"]
        assert len(watched.source.watched) == 3
        assert watched.changes == []
        assert watched.slept == [0.0, 0.0]


async def test_case_c60_two_failures_in_a_row_make_everything_unhealthy() -> None:
    async with watching() as watched:
        await watched.rounds(1)
        watched.source.events.put([FAILED])
        watched.source.events.put([FAILED])
        await watched.until(lambda: watched.unfit)
        assert watched.unfit == EVERYTHING


async def test_what_else_was_told_with_a_failure_counts() -> None:
    async with watching() as watched:
        watched.source.tell(FAILED, xid(48, "GPU-0"), HealthEvent(EventKind.SOURCE_FAILED))
        await watched.until(lambda: watched.failures)
        assert watched.unfit == {"GPU-0"}


async def test_a_source_that_hangs_makes_everything_unhealthy_and_is_not_called_meanwhile() -> None:
    async with watching(timing=MonitorTiming(wait=0.01, patience=0.05)) as watched:
        await watched.rounds(1)
        watched.source.free.clear()
        await watched.until(lambda: watched.unfit)
        assert watched.unfit == EVERYTHING
        assert watched.failures == ["its wait does not come back"]
        watched.monitor.update(node(gpu(0)))
        assert watched.unfit == {"GPU-0"}, "the loop goes on"
        await asyncio.sleep(0.03)
        assert len(watched.source.watched) == 1
        watched.source.free.set()
        await watched.until(lambda: len(watched.source.watched) == 2)
        assert watched.failures[1].startswith("its wait came back after")
        await watched.rounds(1)
        watched.now += 100
        await watched.until(lambda: not watched.unfit)


async def test_a_source_that_hangs_and_then_raises_is_survived() -> None:
    async with watching(timing=MonitorTiming(wait=0.01, patience=0.05)) as watched:
        await watched.rounds(1)
        watched.source.free.clear()
        watched.source.events.put(OSError("late"))
        await watched.until(lambda: watched.failures)
        watched.source.free.set()
        await watched.rounds(1)


async def test_case_c57_unfit_gpus_are_asked_until_they_are_healthy() -> None:
    async with watching() as watched:
        watched.source.tell(xid(48, "GPU-0"), xid(48, "GPU-2", 3, 0), HealthEvent(EventKind.LOST, "GPU-1"))
        await watched.until(lambda: len(watched.moves) == 3)
        assert watched.source.asked == []
        watched.now = 30.0
        await watched.until(lambda: len(watched.moves) == 5)
        watched.now = 60.0
        await watched.rounds()
        assert watched.unfit == {"GPU-0", "GPU-1", "MIG-2-0"}
        watched.now = 90.0
        await watched.until(lambda: watched.unfit == {"GPU-1"})
        assert watched.source.asked == ["GPU-0", "GPU-2"] * 3


async def test_case_c57_a_lost_gpu_is_watched_and_asked_once_it_is_found_again() -> None:
    async with watching("{recovery: {holdTime: 0s}}") as watched:
        watched.source.tell(xid(79, "GPU-1"))
        await watched.until(lambda: watched.unfit)
        watched.now = 1000.0
        await watched.rounds()
        assert watched.unfit == {"GPU-1"}
        watched.monitor.update(NODE)
        await watched.until(lambda: len(watched.source.watched) == 2)
        watched.now = 1030.0
        await watched.until(lambda: not watched.unfit)


async def test_why_a_device_does_not_recover_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="gpustow.health")
    async with watching() as watched:
        watched.source.proofs["GPU-0"] = UNREADABLE
        watched.source.tell(xid(48, "GPU-0"), xid(48, "GPU-1"))
        await watched.until(lambda: watched.unfit)
        for number in range(1, 4):
            watched.now += 30.0
            await watched.until(lambda: watched.source.asked.count("GPU-0") == number)  # noqa: B023 - awaited at once
            await watched.rounds()
    told = [record.getMessage() for record in caplog.records if "stays unhealthy" in record.getMessage()]
    assert told == ["GPU 0 (GPU-0) stays unhealthy: it cannot be read: Unknown Error"]


async def test_a_gpu_that_cannot_be_watched_is_unhealthy_and_tried_again() -> None:
    async with watching("{recovery: {holdTime: 0s}}", at_watch=[[UNWATCHED], [UNWATCHED]]) as watched:
        await watched.monitor.settled.wait()
        assert watched.unfit == {"GPU-1"}
        watched.now = 30.0
        await watched.until(lambda: len(watched.source.watched) == 2)
        await watched.rounds()
        assert watched.unfit == {"GPU-1"}
        assert watched.source.asked == [], "what cannot be watched proves nothing"
        watched.now = 60.0
        await watched.until(lambda: not watched.unfit)
        assert watched.source.asked == ["GPU-1"]


async def test_a_gpu_that_reports_no_events_stays_healthy(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="gpustow.health")
    async with watching(at_watch=[[HealthEvent(EventKind.UNSUPPORTED, "GPU-0")]]) as watched:
        await watched.monitor.settled.wait()
        assert watched.unfit == set()
    assert "GPU 0 (GPU-0): the GPU reports no events, so it is not watched" in caplog.text


async def test_the_catalogue_asks_at_the_start_after_each_xid_and_from_time_to_time() -> None:
    reset = RecoveryProof(True, True, RecoveryAction.GPU_RESET, row_remap_pending=False)
    gpus = ["GPU-0", "GPU-1", "GPU-2"]
    watched: Watched
    async with watching("{xidPolicy: catalogue}", machine=None) as watched:
        watched.source.proofs["GPU-1"] = reset
        watched.monitor.update(NODE)
        await watched.monitor.settled.wait()
        assert watched.source.asked == gpus
        assert watched.unfit == {"GPU-1"}, "what a GPU says at the start counts (k8s-device-plugin#267)"
        watched.source.proofs["GPU-2"] = reset
        watched.source.tell(xid(154, "GPU-2"), xid(154, "GPU-2"))
        await watched.until(lambda: "GPU-2" in watched.unfit)
        assert watched.source.asked == [*gpus, "GPU-2"]
        watched.source.tell(xid(154, None))
        await watched.rounds()
        assert watched.source.asked == [*gpus, "GPU-2", *gpus]
        watched.source.proofs["GPU-0"] = reset
        watched.now = 30.0
        await watched.until(lambda: "GPU-0" in watched.unfit)


async def test_the_catalogue_does_not_ask_what_cannot_be_watched() -> None:
    async with watching("{xidPolicy: catalogue}", at_watch=[[UNWATCHED]] * 9) as watched:
        await watched.monitor.settled.wait()
        assert watched.unfit == {"GPU-1"}
        assert watched.source.asked == ["GPU-0", "GPU-2"]


async def test_a_node_with_other_gpus_is_watched_anew_and_one_with_the_same_is_not() -> None:
    async with watching() as watched:
        await watched.rounds()
        watched.monitor.update(NODE)
        await watched.rounds()
        assert watched.source.watched == [NODE]
        smaller = node(gpu(0))
        watched.monitor.update(smaller)
        await watched.until(lambda: watched.source.watched == [NODE, smaller])


async def test_nothing_is_watched_before_there_is_a_node() -> None:
    async with watching(machine=None) as watched:
        await asyncio.sleep(0.01)
        assert not watched.monitor.settled.is_set()
        assert watched.source.watched == []
        watched.monitor.update(NODE)
        await watched.monitor.settled.wait()


async def test_another_configuration_holds_from_now_on() -> None:
    async with watching() as watched:
        watched.source.tell(xid(94, "GPU-0"))
        await watched.until(lambda: watched.unfit)
        watched.monitor.reconfigure(config("{xids: {94: ignore}, checkInterval: 1s, recovery: {holdTime: 0s}}"))
        watched.source.tell(xid(94, "GPU-1"))
        await watched.until(lambda: len(watched.events) == 2)
        assert watched.unfit == {"GPU-0"}
        watched.now = 30.0
        await watched.until(lambda: not watched.unfit)


async def test_with_health_checks_off_nothing_is_watched(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched("{}", TIMING, {"DP_DISABLE_HEALTHCHECKS": "all"})
    watched.monitor.update(NODE)
    await watched.monitor.run()
    assert watched.monitor.settled.is_set()
    assert watched.source.watched == []
    assert watched.unfit == set()
    assert "health checks are off: DP_DISABLE_HEALTHCHECKS=all" in caplog.text


async def test_at_the_end_the_source_is_closed_as_soon_as_it_returns() -> None:
    async with watching() as watched:
        await watched.rounds()
        watched.source.free.clear()
    await watched.until(watched.source.closed.is_set)
