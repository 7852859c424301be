"""Telemetry as the daemon has it: begun when a configuration first asks for it, and following each one after that.

Until then nothing of it is imported, and nothing listens. What is counted is counted from then on. Another address is
listened at as soon as a configuration names it; without one, listening ends.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from gpustow.health.observer import GuardedHealthObserver
from gpustow.plugin.observer import GuardedObserver
from gpustow.telemetry.facts import StatusSource

if TYPE_CHECKING:
    from gpustow.telemetry.nvmlcounts import NvmlCounts
    from gpustow.telemetry.telemetry import Telemetry

log = logging.getLogger(__name__)


class Telling:
    """Tells what `source` knows, and what the observers are told. `nvml` has counted calls into NVML, if there are any.

    `telemetry` is there once it has begun.
    """

    def __init__(
        self,
        source: StatusSource,
        plugins: GuardedObserver,
        health: GuardedHealthObserver,
        nvml: "NvmlCounts | None" = None,
    ) -> None:
        self.telemetry: Telemetry | None = None
        self._source = source
        self._plugins = plugins
        self._health = health
        self._nvml = nvml
        self._address = ""
        self._task: asyncio.Task[None] | None = None

    def follow(self, address: str, group: asyncio.TaskGroup) -> None:
        """Listens at this address from now on, in `group`; nowhere if it is empty."""
        if address == self._address:
            return
        self._address = address
        self.cancel()
        if address:
            self.telemetry = self.telemetry or self._begun()
            self._task = group.create_task(self._listen(self.telemetry, address), name="telemetry")

    def cancel(self) -> None:
        """Ends listening."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _begun(self) -> "Telemetry":
        from gpustow.telemetry.telemetry import Telemetry  # noqa: PLC0415 - most of its memory is what it imports

        telemetry = Telemetry(self._source, self._nvml)
        self._plugins.add(telemetry.plugins)
        self._health.add(telemetry.health)
        return telemetry

    async def _listen(self, telemetry: "Telemetry", address: str) -> None:
        try:
            await telemetry.listen(address)
        except Exception:  # whoever watches the daemon must not stop it
            log.exception("nothing is told at %s any more", address)
