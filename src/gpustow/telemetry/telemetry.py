"""Telling, as a whole: what is counted, what is shown, and the listener that shows it.

An address where nothing can listen is tried again: another daemon may be about to leave it, and serving GPUs does not
wait for that. Who asks for the probes notices by itself.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from gpustow.config.address import split_address
from gpustow.telemetry.counting import HealthCounts, PluginCounts
from gpustow.telemetry.decisions import Decisions
from gpustow.telemetry.endpoints import Endpoints
from gpustow.telemetry.exposition import Exposition
from gpustow.telemetry.facts import Facts, StatusSource
from gpustow.telemetry.http.exchange import Limits
from gpustow.telemetry.http.server import HttpServer
from gpustow.telemetry.nodestatus import NodeStatus
from gpustow.telemetry.nvmlcounts import NvmlCounts
from gpustow.telemetry.picture import node_status

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""Between two tries to listen."""


class Telemetry:
    """Tells what `source` knows and what the observers `plugins` and `health` were told; `nvml` counts calls.

    `clock` gives seconds since 1970. `ports` are where it listens now, none if it does not.
    """

    def __init__(
        self,
        source: StatusSource,
        nvml: NvmlCounts | None = None,
        *,
        clock: Callable[[], float] = time.time,
        limits: Limits | None = None,
        retry: float = RETRY_SECONDS,
    ) -> None:
        self.decisions = Decisions(clock=clock)
        self.plugins = PluginCounts(self.decisions)
        self.health = HealthCounts(clock)
        self.ports: tuple[int, ...] = ()
        self._source = source
        self._limits = limits
        self._retry = retry
        self._clock = clock
        exposition = Exposition(self._facts, self.plugins, self.health, nvml or NvmlCounts())
        self._endpoints = Endpoints(lambda: self._facts().checks, exposition, self.status)

    def status(self) -> NodeStatus:
        """The status of the node now."""
        return node_status(self._facts(), self.decisions)

    def _facts(self) -> Facts:
        return self._source.facts(self._clock())

    async def listen(self, address: str) -> None:
        """Answers at an address (`config.address`) until it is cancelled."""
        host, port = split_address(address)
        told = False
        while True:
            try:
                async with HttpServer(self._endpoints.answer, host, port, self._limits) as server:
                    self.ports = server.ports
                    log.info(
                        "metrics, probes and the status of the node are told at %s, port %d", address, self.ports[0]
                    )
                    await asyncio.Event().wait()
            except OSError as error:
                if not told:
                    log.error("nothing can listen at %s: %s; trying again", address, error)  # noqa: TRY400 - the text says it all
                told = True
            finally:
                self.ports = ()
            await asyncio.sleep(self._retry)
