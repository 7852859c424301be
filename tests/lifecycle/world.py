"""A node that lives: kubelet, the daemon, its cards, pods; what can happen to them, and what must be true throughout.

Every deed says how long its effects may take to be seen; once that time has passed without another, all is quiet, and
what kubelet has must be what the plain model says. Some things must be true at any time.

Times are the daemon's own: production's polls, waits and deadlines.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gpustow.health.event import HealthEvent
from gpustow.simulation.kubelet import EmbeddedKubelet
from tests.lifecycle.expectation import Expectation, Expected, Ids
from tests.lifecycle.health import Health, Verdict
from tests.lifecycle.machine import Machine
from tests.lifecycle.pods import NotYet, Pods, Violation
from tests.lifecycle.settings import SETTINGS, HealthTimes, Setting
from tests.plugin.samples import our_sockets


@dataclass(frozen=True, slots=True)
class Pace:
    """How long, in seconds, effects may take to be seen.

    `notice`: of a fault. `reload`: of SIGHUP. `look`: of a change of a file or of device nodes, which is seen by two
    looks that find the same. `register`: of a start of kubelet or the daemon, or the loss of a socket; `refuse`: how
    long after that an admission may fail. Where `patience` is given, the machine is slow and shared: it is looked again
    and again for that much longer, and what is as expected sooner is taken for quiet.
    """

    notice: float = 2.0
    reload: float = 3.0
    look: float = 7.0
    register: float = 7.0
    refuse: float = 2.0
    patience: float = 0.0


_LOOK_AGAIN = 0.05

_TASKS = 8
"""The walk, kubelet, and of the daemon: itself, supervisor, usage, health monitor and a call of its source."""

_TASKS_OF_A_RESOURCE = 3
"""The plugin, its stream, and kubelet's watch of that."""


class Daemon(Protocol):
    """A daemon of ours, in this process or another."""

    @property
    def tells(self) -> bool:
        """Whether it can be asked whether it is ready."""
        ...

    @property
    def ended(self) -> object:
        """Why the last one ended by itself, if it did."""
        ...

    @property
    def up(self) -> bool: ...
    @property
    def not_ready(self) -> str | None:
        """Why it is not ready; None if it is."""
        ...

    @property
    def resources(self) -> frozenset[str]:
        """What it has plugins for."""
        ...

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def kill(self) -> None: ...
    def sighup(self) -> None: ...
    def happens(self, event: HealthEvent) -> bool:
        """Something happens to a card; whether the daemon is told."""
        ...

    def source_changes(self) -> None:
        """Health cannot be watched from now on, or can be again."""
        ...


@dataclass
class World:
    """All that there is. `bury` is called with each socket that a killed kubelet leaves; `due` is when all is quiet,
    and `loaded_by` when the daemon has read the file as it is.
    """

    kubelet: EmbeddedKubelet
    daemon: Daemon
    machine: Machine
    file: Path
    clock: Callable[[], float]
    bury: Callable[[Path], None]
    times: HealthTimes = field(default_factory=HealthTimes)
    pace: Pace = field(default_factory=Pace)
    kubelet_up: bool = False
    file_is: Setting = SETTINGS[0]
    due: float = 0.0
    loaded_by: float = 0.0
    faults_of_ours: list[str] = field(default_factory=list)
    admissions: dict["asyncio.Task[str]", None] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    repair_since: dict[int, float] = field(default_factory=dict)
    _writes: int = 0

    def __post_init__(self) -> None:
        self.health = Health(self.machine, self.times, self.pace.notice, self.clock)
        self.expectation = Expectation(self.machine, self.health, self.clock, self.file_is)
        self.pods = Pods(self.kubelet, self.expectation, self.clock, self.is_quiet)

    def is_quiet(self) -> bool:
        return self.clock() >= self.due

    def takes(self, seconds: float) -> None:
        """What has just been done may take so long to be seen."""
        self.due = max(self.due, self.clock() + seconds)

    def falls_ill(self, seconds: float) -> None:
        """Devices have vanished or fallen ill, which may take so long to be seen; meanwhile pods may get them."""
        self.pods.may_fail(seconds)
        self.takes(seconds)

    def comes_or_goes(self) -> None:
        """Kubelet or the daemon: admissions may fail for that."""
        self.pods.may_fail(self.pace.refuse)
        self.expectation.disturbed()
        self.takes(self.pace.register)

    def write(self, setting: Setting) -> None:
        """Another configuration file in place of the last."""
        self._writes += 1
        new = self.file.with_suffix(".new")
        new.write_text(f"# {self._writes}\n{setting.text(self.times)}", encoding="utf-8")
        new.replace(self.file)
        self.file_is = setting
        self.loaded_by = self.clock() + self.pace.look
        if not setting.bad:
            before = self.expectation.setting.exclude
            self.expectation.configure(setting, self.loaded_by)
            for card in self.machine.cards:
                if card.index in before - setting.exclude:
                    self.health.well_again(card)

    async def settle(self) -> None:
        """Waits until all is quiet; then everything must be as expected. Raises Violation."""
        if self.admissions:
            await asyncio.wait(self.admissions)
        if self.pace.patience:
            await self._wait_for_quiet()
        else:
            await asyncio.sleep(max(0.0, self.due - self.clock()))
        self.look()
        self.check_quiet()

    async def _wait_for_quiet(self) -> None:
        while self.clock() < self.due + self.pace.patience:
            try:
                self.look()
                self.check_quiet()
            except NotYet:
                await asyncio.sleep(_LOOK_AGAIN)
            else:
                break
        self.due = min(self.due, self.clock())

    def look(self) -> None:
        """What must be true at any time, and what is worth remembering of what is seen. Raises Violation."""
        for task in [task for task in self.admissions if task.done()]:
            del self.admissions[task]
            self.results.append(task.result())
        if self.faults_of_ours:
            raise Violation(f"the daemon logs a fault of its own: {self.faults_of_ours[0]}")
        if self.daemon.ended is not None:
            raise Violation(f"the daemon has ended: {self.daemon.ended}")
        self.pods.check_holdings()
        if self.kubelet_up and self.daemon.up:
            self.expectation.saw(self.listed_by_this_daemon(), quiet=False)
            for resource, ids in self.healthy().items():
                self._check_none_unfit(resource, ids)

    def _check_none_unfit(self, resource: str, ids: frozenset[str]) -> None:
        for id_ in ids:
            uuid = id_.partition("::")[0]
            card = self.expectation.owner(uuid)
            if self.health.surely_unfit_since(uuid, card) < self.clock():
                raise Violation(f"{id_} of {resource} is healthy for kubelet, and should have been unfit for long")

    def healthy(self) -> Ids:
        return {name: frozenset(ids) for name, ids in self.kubelet.manager.state.table.healthy.items()}

    def listed(self) -> Ids:
        unhealthy = self.kubelet.manager.state.table.unhealthy
        return {name: ids | unhealthy.get(name, set()) for name, ids in self.healthy().items()}

    def listed_by_this_daemon(self) -> Ids:
        return {name: ids for name, ids in self.listed().items() if not self._is_left_over(name)}

    def check_quiet(self) -> None:
        """What must be true now that all is quiet. Raises NotYet."""
        if not self.daemon.up:
            if self.kubelet_up and any(self.kubelet.allocatable().values()):
                raise NotYet(f"without the daemon allocatable is {self.kubelet.allocatable()}")
            return
        if not self.kubelet_up:
            self.expectation.disturbed()
        expected = self.expectation.expected(self.pods.held())
        if self.kubelet_up:
            self._check_lists(expected)
            self.expectation.saw(self.listed_by_this_daemon(), quiet=True)
            expected = self.expectation.expected(self.pods.held())
            self._check_sockets(expected)
            self._check_tasks()
        self._check_ready(expected)

    def _check_lists(self, expected: dict[str, Expected]) -> None:
        healthy, listed = self.healthy(), self.listed()
        for resource, want in expected.items():
            ids = healthy.get(resource, frozenset())
            if not want.healthy.allow(ids):
                raise NotYet(f"healthy of {resource}: {_differences(ids, want.healthy.must, want.healthy.may)}")
            ids = listed.get(resource, frozenset())
            if self._is_left_over(resource) and not want.listed.must:
                continue
            if not want.listed.allow(ids):
                raise NotYet(f"listed of {resource}: {_differences(ids, want.listed.must, want.listed.may)}")
        for resource in healthy.keys() - expected.keys():
            if healthy[resource]:
                raise NotYet(f"{resource} has {sorted(healthy[resource])}, and is not to be there")
        capacity, allocatable = self.kubelet.capacity(), self.kubelet.allocatable()
        for resource in expected:
            numbers = capacity.get(resource, 0), allocatable.get(resource, 0)
            if numbers != (len(listed.get(resource, ())), len(healthy.get(resource, ()))):
                raise NotYet(f"{resource} counts {numbers}")

    def _is_left_over(self, resource: str) -> bool:
        """Whether nobody speaks for the resource, and what kubelet has of it is from a daemon that has ended."""
        plugin = self.kubelet.manager.state.plugins.get(resource)
        return plugin is None or plugin.stopped_at is not None

    def _check_sockets(self, expected: dict[str, Expected]) -> None:
        least = sum(bool(want.listed.must) for want in expected.values())
        most = sum(bool(want.listed.must | want.listed.may) for want in expected.values())
        sockets = our_sockets(self.kubelet.plugin_directory)
        if not least <= len(sockets) <= most or len(sockets) != len(self.daemon.resources):
            raise NotYet(f"there are the sockets {sockets} for {sorted(self.daemon.resources)}")

    def _check_tasks(self) -> None:
        """Where the daemon is in this process: neither it nor kubelet gathers tasks."""
        tasks = [task.get_name() for task in asyncio.all_tasks()]
        if self.daemon.tells and len(tasks) > _TASKS + _TASKS_OF_A_RESOURCE * len(self.daemon.resources):
            raise NotYet(f"there are {len(tasks)} tasks: {sorted(tasks)}")

    def _check_ready(self, expected: dict[str, Expected]) -> None:
        """Ready if all is well, and else it says why not."""
        if not self.daemon.tells:
            return
        reason = self.daemon.not_ready
        must, may = self._troubles(expected)
        for word in must:
            if word not in (reason or ""):
                raise NotYet(f"it should say {word!r}, and says {reason!r}")
        if reason is not None and not must and not may:
            raise NotYet(f"all is well, and it says {reason!r}")

    def _troubles(self, expected: dict[str, Expected]) -> tuple[list[str], bool]:
        """Words of the reasons that there are not to be ready; and whether there may be others."""
        must = []
        may = False
        if self.file_is.bad:
            must.append("refused")
        is_there = any(want.listed.must for want in expected.values())
        if not is_there:
            if any(want.listed.may for want in expected.values()):
                may = True
            else:
                must.append("no devices")
        elif not self.kubelet_up:
            must.append("kubelet")
        verdict = self.health.monitor()
        if verdict is Verdict.UNFIT and is_there:
            must.append("health is not watched")
        may = may or verdict is not Verdict.FIT
        offered = self.expectation.offered()
        for resource, want in expected.items():
            may = may or bool(want.listed.may)
            for id_ in want.listed.must:
                uuid = id_.partition("::")[0]
                card = self.expectation.owner(uuid)
                if not card.here:
                    must.append("unhealthy")
                elif id_ in offered.get(resource, {}):
                    verdict = self.health.verdict(uuid, card)
                    may = may or verdict is Verdict.EITHER
                    must += ["unhealthy"] * (verdict is Verdict.UNFIT)
                else:
                    may = True  # it left, and the card may be ill
        return must, may


def _differences(ids: frozenset[str], must: frozenset[str], may: frozenset[str]) -> str:
    missing, surplus = sorted(must - ids), sorted(ids - must - may)
    return f"missing {missing}, beyond that {surplus}; there are {len(ids)}"


class FaultLog(logging.Handler):
    """Keeps what a daemon logs of its own faults: whatever has a traceback."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__()
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._faults.append(logging.Formatter().format(record))


@contextmanager
def watching_logs(faults: list[str]) -> Iterator[None]:
    """Keeps the faults that are logged, and what a loop is told of exceptions that nobody handled."""

    def unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        faults.append(f"{context.get('message')}: {context.get('exception')!r}")

    logger, handler = logging.getLogger("gpustow"), FaultLog(faults)
    logger.addHandler(handler)
    asyncio.get_running_loop().set_exception_handler(unhandled)
    try:
        yield
    finally:
        asyncio.get_running_loop().set_exception_handler(None)
        logger.removeHandler(handler)
