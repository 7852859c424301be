"""The health monitor as the daemon has it: begun once something is served, and kept through rescans and reloads.

Registration does not wait for it. A device of which nothing is known yet counts as healthy, as for v0.20.0; a monitor
that cannot start tells so, and makes every device unhealthy (k8s-device-plugin#1640).

A monitor that crashes, which is a fault of ours, leaves nothing watched: every device is unhealthy until another one
has begun, with the next rescan. What the one before knew against a device stays, since nobody has proved the contrary.

Limits: the source is made for the configuration at the start; another driver root needs a restart of the daemon.
Health is watched where devices are GPUs that NVML knows, so not on WSL and Tegra.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from gpustow.config import Config
from gpustow.hardware.node import Platform
from gpustow.health.condition import Condition
from gpustow.health.event import HealthSource
from gpustow.health.monitor import HealthMonitor, MonitorTiming
from gpustow.health.nodehealth import Conditions
from gpustow.health.observer import HealthObserver
from gpustow.plugin.survey import Survey
from gpustow.resources.selection import select_gpus

log = logging.getLogger(__name__)

SourceMaker = Callable[[Config], HealthSource]
"""Makes what tells of the health of the GPUs."""

Reasons = Callable[[str], str | None]
"""Why the GPU or MIG device with a UUID is unfit; None if it is fit."""


class HealthWatch:
    """Runs a monitor over sources of `make_source`; without one, nothing is watched. `on_change` gets the reasons."""

    def __init__(
        self,
        make_source: SourceMaker | None,
        on_change: Callable[[Reasons], None],
        timing: MonitorTiming,
        *,
        clock: Callable[[], float] = time.monotonic,
        observer: HealthObserver | None = None,
    ) -> None:
        self._make_source = make_source
        self._on_change = on_change
        self._timing = timing
        self._clock = clock
        self._observer = observer
        self._monitor: HealthMonitor | None = None
        self._task: asyncio.Task[None] | None = None
        self._conditions = Conditions()
        self._before: dict[str, str] = {}
        self._crash: str | None = None

    @property
    def complaint(self) -> str | None:
        """Why health is not watched as it should be; None if it is, or need not be."""
        if self._crash is not None:
            return self._crash
        monitor = self._conditions.monitor
        return None if monitor.fit else f"health is not watched: {monitor.reason}"

    def follow(self, survey: Survey, group: asyncio.TaskGroup) -> None:
        """Watches from now on what a survey found, as its configuration says. The first time, begins in `group`."""
        if self._make_source is None or survey.node.platform is not Platform.NVML:
            return
        if self._monitor is None:
            self._monitor = self._begin(self._make_source, survey.config, group)
        else:
            self._monitor.reconfigure(survey.config)
        if self._monitor is not None:
            ours, _ = select_gpus(survey.node, survey.config)
            self._monitor.update(ours)

    def cancel(self) -> None:
        """Ends watching."""
        if self._task is not None:
            self._task.cancel()

    def reason(self, uuid: str) -> str | None:
        """Why a GPU or MIG device is unfit; None if nothing is known against it."""
        return self._crash or self._before.get(uuid) or self._conditions.reason(uuid)

    def condition(self, uuid: str, card: str) -> Condition | None:
        """The condition that makes a GPU or MIG device on a card unfit; None if it is fit, or that is not known."""
        reason = self.reason(uuid)
        about = (card, uuid, "")
        conditions = (*self._conditions.known, self._conditions.monitor)
        unfit = (each for each in conditions if not each.fit and each.target.uuid in about and each.reason == reason)
        return min(unfit, key=lambda each: about.index(each.target.uuid), default=None)

    def _begin(self, make_source: SourceMaker, config: Config, group: asyncio.TaskGroup) -> HealthMonitor | None:
        try:
            monitor = HealthMonitor(
                make_source(config),
                config,
                self._changed,
                observer=self._observer,
                clock=self._clock,
                timing=self._timing,
            )
        except Exception as error:  # it is told, and tried again
            log.exception("the health monitor cannot start")
            self._crashed(error)
            return None
        self._task = group.create_task(self._run(monitor), name="health")
        self._crash = None
        self._changed(Conditions())
        return monitor

    async def _run(self, monitor: HealthMonitor) -> None:
        try:
            await monitor.run()
        except Exception as error:  # it must not take down what is served
            log.exception("the health monitor crashed")
            self._monitor = None
            self._before |= self._conditions.unfit
            self._crashed(error)

    def _changed(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._on_change(self.reason)

    def _crashed(self, error: Exception) -> None:
        self._crash = f"health is not watched: the monitor failed with {error!r}"
        self._on_change(self.reason)
