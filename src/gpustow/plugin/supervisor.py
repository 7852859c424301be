"""The life of the daemon: read configuration and node, have a plugin run for each resource, follow changes, stop.

What is new is built and checked beside what runs: a reload that fails in any way leaves the old running, and the daemon
not ready until a reload works, since what it does is not what it was told to. It is tried again with each rescan, for
what a configuration asks of the node may only be about to come. A reload that works touches only what it changes: a
resource that stays keeps its server and its registration (`fleet`). Reloads that are asked for while one is under way
become one more. One is asked for by whoever calls `reload`, and by another content of the configuration file.

The node is read again at intervals, when its device nodes change, and with each reload. What such a rescan finds is
served at once; a rescan that fails leaves what runs as it is, except for devices that it did not find. Neither it nor
a reload ever ends the daemon.

At the start it is different: without devices, with a driver that cannot be read, or where CDI specifications are asked
for and cannot be written, the daemon ends if the operator asked for that (failOnInitError). Else it stays, not ready,
and looks again from time to time.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING

from gpustow.config import Config, LoadedConfig
from gpustow.errors import (
    CdiDirectoryError,
    CdiSpecError,
    GpustowError,
    HardwareError,
    NoDevicesError,
)
from gpustow.hardware.node import NodeReader
from gpustow.health.observer import GuardedHealthObserver, HealthObserver
from gpustow.kubelet.socketfile import DEFAULT_DIRECTORY
from gpustow.plugin.blocking import in_thread
from gpustow.plugin.cdispecs import SpecKeeper, SpecMaker, no_specs
from gpustow.plugin.configchange import change_lines
from gpustow.plugin.healthwatch import HealthWatch, SourceMaker
from gpustow.plugin.hostreading import HostReader, simulated_host
from gpustow.plugin.knowledge import gathered, readiness
from gpustow.plugin.lookout import Lookout
from gpustow.plugin.nodechange import NodeChanges
from gpustow.plugin.observer import GuardedObserver, PluginObserver, PluginState
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.offer import KubeletPlace, Offer
from gpustow.plugin.outcomes import Outcomes
from gpustow.plugin.resource import MpsTrouble, Surroundings, no_mps_trouble
from gpustow.plugin.serving import Serving
from gpustow.plugin.startlog import config_lines
from gpustow.plugin.survey import Survey, Surveyor
from gpustow.plugin.telling import Telling
from gpustow.plugin.timing import Timing
from gpustow.telemetry.facts import Check, Facts

if TYPE_CHECKING:
    from gpustow.telemetry.nvmlcounts import NvmlCounts

log = logging.getLogger(__name__)


def no_traces(_config: Config) -> Hashable:
    """What a node shows from outside that shows nothing."""
    return None


class Supervisor:
    """The daemon. `run` it in a task; the other methods may be called at any time from the event loop's thread.

    `load_config` reads the configuration anew each time, `make_reader` gives the reader that it asks for, and
    `read_host` finds what the node has beside its GPUs (where it is not given, the node is a simulated one), and
    `make_specs` makes the CDI specifications (where it is not given, there are none); all may block and are called in a
    thread. `make_source` gives what tells of the health of GPUs; without it, none is watched. `traces` is what can be
    seen of the node without its driver (`lookout`): if it is another, the node is read. `mps_trouble` tells whether a
    resource has its MPS control daemon. `default_directory` is where the sockets lie if there is no kubelet to register
    with. `nvml_counts` has counted what the readers and the source called; it is told with the metrics.
    """

    def __init__(
        self,
        load_config: Callable[[], LoadedConfig],
        make_reader: Callable[[Config], NodeReader],
        *,
        read_host: HostReader = simulated_host,
        make_specs: SpecMaker = no_specs,
        make_source: SourceMaker | None = None,
        traces: Callable[[Config], Hashable] = no_traces,
        mps_trouble: MpsTrouble = no_mps_trouble,
        default_directory: Path = DEFAULT_DIRECTORY,
        timing: Timing | None = None,
        random: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        observer: PluginObserver | None = None,
        health_observer: HealthObserver | None = None,
        nvml_counts: "NvmlCounts | None" = None,
    ) -> None:
        self._load_config = load_config
        self._timing = timing or Timing()
        self._clock = clock
        self._specs = SpecKeeper(make_specs, clock)
        self._surveyor = Surveyor(make_reader, read_host, self._specs, self._timing.reading, self.rescan)
        self._observer = GuardedObserver(*([observer] if observer is not None else []))
        usage = NodeUsage(self._timing, clock)
        surroundings = Surroundings(self._timing, random or SystemRandom(), clock, self._observer, usage, mps_trouble)
        self._serving = Serving(surroundings, default_directory)
        listeners = GuardedHealthObserver(*([health_observer] if health_observer is not None else []))
        self._health = HealthWatch(make_source, self.mark, self._timing.monitor, clock=clock, observer=listeners)
        self._telling = Telling(self, self._observer, listeners, nvml_counts)
        self._lookout = Lookout(traces)
        self._config = Config()
        self._loaded: LoadedConfig | None = None
        self._survey: Survey | None = None
        self._surveyed_at = clock()
        self._changes = NodeChanges()
        self._outcomes = Outcomes(self._observer, self._timing.look_again)
        self._reload_asked = False
        self._rescan_asked = False
        self._news = asyncio.Event()
        self._stop_asked = asyncio.Event()

    def reload(self) -> None:
        """Reads configuration and node again, soon."""
        self._reload_asked = True
        self._news.set()

    def rescan(self) -> None:
        """Reads the node again, soon."""
        self._rescan_asked = True
        self._news.set()

    def mark(self, sick: Callable[[str], str | None]) -> None:
        """From now on `sick` says by UUID why a GPU or MIG device is unfit, or None; kubelet is told at once.

        To be called again when the answers are others.
        """
        self._serving.mark(sick)
        self._news.set()

    def stop(self) -> None:
        """Ends `run`: streams and servers are ended, our sockets removed."""
        self._stop_asked.set()

    @property
    def states(self) -> Mapping[str, PluginState]:
        """Where the plugin of each resource is."""
        return self._serving.fleet.states

    @property
    def not_ready(self) -> str | None:
        """Why the node's devices are not in use as they should be; None if they are."""
        return "; ".join(check.reason for check in self._checks if not check.passed) or None

    @property
    def _checks(self) -> tuple[Check, ...]:
        return readiness(self._outcomes.trouble, self._outcomes.refusal, self._health, self._serving)

    def facts(self, now: float) -> Facts:
        """What is known at the time `now`; so the daemon is the StatusSource of its telemetry."""
        node = None if self._survey is None else self._survey.node
        return gathered(
            self._checks,
            self._loaded,
            node,
            serving=self._serving,
            health=self._health,
            now=now,
            clock=self._clock,
        )

    async def run(self) -> None:
        """Serves until `stop`, then returns.

        Raises at the start ConfigError or KubeletDirectoryError, and with failOnInitError HardwareError,
        NoDevicesError, CdiDirectoryError or CdiSpecError; later ApiVersionRefused, or KubeletDirectoryError if the
        directory was deleted under us.
        """
        try:
            async with asyncio.TaskGroup() as group:
                usage = self._serving.usage.watch(self._serving.list_held, self._news.set)
                tasks = [
                    group.create_task(self._live(group), name="supervisor"),
                    group.create_task(usage, name="what is in use"),
                ]
                await self._stop_asked.wait()
                log.info("stopping")
                for task in tasks:
                    task.cancel()
                self._serving.fleet.cancel()
                self._health.cancel()
                self._telling.cancel()
        except BaseExceptionGroup as errors:
            for other in errors.exceptions[1:]:
                log.exception("another failure in the same moment", exc_info=other)
            raise errors.exceptions[0] from None
        finally:
            self._serving.clear()
            self._outcomes.end()

    async def _live(self, group: asyncio.TaskGroup) -> None:
        loaded = await self._load()
        self._follow(loaded, group)
        self._serving.go_to(self._serving.checked_place(loaded.config))
        self._look_out()
        await self._first_survey(group)
        while True:
            await self._wait_for_news()
            if self._reload_asked:
                self._reload_asked = self._rescan_asked = False
                await self._reload(group, asked=True)
            elif self._rescan_asked or self._is_due():
                self._rescan_asked = False
                await (self._rescan(group) if self._outcomes.refusal is None else self._reload(group, asked=False))
            self._serving.roster.settle()
            await self._serving.apply(self._serving.place, group)
            await self._specs.tidy(self._serving.usage)

    def _follow(self, loaded: LoadedConfig, group: asyncio.TaskGroup) -> None:
        """This configuration is in force from now on."""
        before, self._loaded, self._config = self._loaded, loaded, loaded.config
        for line in config_lines(loaded) if before is None else change_lines(before, loaded):
            log.info("%s", line)
        for warning in loaded.warnings:
            if before is None or warning not in before.warnings:
                log.warning("%s", warning)
        self._lookout.follow(loaded)
        self._telling.follow(loaded.config.metrics_address, group)

    async def _wait_for_news(self) -> None:
        """Waits until there is something to do; meanwhile looks at what shows that something has changed."""
        while not self._news.is_set() and not self._is_due():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timing.look):
                    await self._news.wait()
            self._look_out()
        self._news.clear()

    def _look_out(self) -> None:
        try:
            self._notice()
        except Exception:  # what is noticed sooner is worth less than the daemon
            log.exception("the files that show a change cannot be looked at")

    def _notice(self) -> None:
        if news := self._lookout.sees_another_file():
            log.info("%s", news)
            self.reload()
        if self._lookout.sees_another_node(self._config):
            log.info("the device nodes have changed: the node is read again")
            self.rescan()

    def _is_due(self) -> bool:
        """Whether the node is to be read again because time has passed; what has failed is tried again sooner."""
        interval = self._config.health.rescan_interval
        if not self._outcomes.well:
            interval = min(interval or self._timing.look_again, self._timing.look_again)
        return interval is not None and self._clock() - self._surveyed_at >= interval

    async def _load(self) -> LoadedConfig:
        return await in_thread(self._load_config, name="read configuration")

    async def _read_node(self, config: Config) -> Survey:
        try:
            return await self._surveyor.survey(config, self._survey)
        finally:
            self._surveyed_at = self._clock()

    async def _first_survey(self, group: asyncio.TaskGroup) -> None:
        """Reads the node for the first time; what it finds may end the daemon."""
        try:
            survey = await self._read_node(self._config)
            survey.accepted()
        except (HardwareError, NoDevicesError, CdiDirectoryError, CdiSpecError) as error:
            if self._config.fail_on_init_error:
                raise
            self._surveyed(str(error))
        except GpustowError:
            raise
        except Exception as error:
            if self._config.fail_on_init_error:
                raise
            log.exception("reading the node failed")
            self._surveyed(f"reading the node failed: {error!r}")
        else:
            await self._adopt(survey, self._serving.place, group)

    async def _rescan(self, group: asyncio.TaskGroup) -> None:
        """Reads the node again, and serves what it has now."""
        try:
            survey = await self._read_node(self._config)
        except HardwareError as error:
            self._surveyed(self._going_on("the node cannot be read", error))
        except Exception as error:
            log.exception("reading the node failed")
            self._surveyed(self._going_on("reading the node failed", repr(error)))
        else:
            await self._adopt(survey, self._serving.place, group)

    async def _reload(self, group: asyncio.TaskGroup, *, asked: bool) -> None:
        """Goes over to a new configuration and reading, or stays with the old configuration and reads the node.

        What somebody `asked` for is answered in the log; that a try of our own was in vain again is not told.
        """
        if asked:
            log.info("reloading")
        try:
            loaded = await self._load()
            place = self._serving.checked_place(loaded.config)
            survey = await self._read_node(loaded.config) if self._serving.roster.served else None
            if survey is not None:
                survey.accepted()
        except GpustowError as error:
            self._lookout.refused()
            self._outcomes.refuse(f"the reload is refused, and what ran before goes on: {error}", asked=asked)
        except Exception as error:  # noqa: BLE001 - a bad reload of any kind must not end the daemon, and is logged
            self._lookout.refused()
            self._outcomes.refuse(f"the reload failed, and what ran before goes on: {error!r}", error, asked=asked)
        else:
            was_refused = self._outcomes.accept()
            self._follow(loaded, group)
            self._serving.fleet.forget_ended()
            if survey is None:
                self._serving.go_to(place)
                await self._rescan(group)
            else:
                await self._adopt(survey, place, group)
            if was_refused:
                self._outcomes.tell_readiness(self.not_ready)
            return
        await self._rescan(group)

    async def _adopt(self, survey: Survey, place: KubeletPlace, group: asyncio.TaskGroup) -> None:
        """Serves at `place` what a survey found."""
        known, self._survey = self._survey, survey
        self._serving.roster.see(survey.node)
        for line in self._changes.look(survey.node):
            log.info("%s", line)
        try:
            offer = survey.accepted()
            trouble = None
        except NoDevicesError as error:
            offer = Offer((), survey.node.notes)
            trouble = str(error)
        except GpustowError as error:
            self._surveyed(self._going_on("the node has changed", error))
            self._health.follow(survey, group)
            return
        if survey is not known:
            self._outcomes.offered(offer)
            self._serving.roster.take(offer)
        self._surveyed(trouble)
        await self._serving.apply(place, group)
        if survey.files is not None:
            self._specs.serving(survey.files)
        self._health.follow(survey, group)

    def _surveyed(self, trouble: str | None) -> None:
        self._outcomes.surveyed(trouble, serving=bool(self._serving.roster.served))

    def _going_on(self, what: str, reason: object) -> str:
        """What is said of a failure after which what is served stays; if nothing is served, the reason alone."""
        return f"{what}, and what was found before goes on: {reason}" if self._serving.roster.served else str(reason)

    async def read_usage(self) -> None:
        """Reads from kubelet what is in use, now; the daemon does so by itself in quiet moments."""
        await self._serving.usage.read(self._serving.list_held)
        self._news.set()
