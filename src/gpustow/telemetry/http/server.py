"""The server: its connections, and that there are never too many.

When all connections are taken, the oldest one is cut for the new one, so that clients that hold on to connections keep
nobody out: a probe that is not answered would end the daemon.
"""

import asyncio
import logging
from contextlib import suppress
from types import TracebackType
from typing import Self

from gpustow.telemetry.http.exchange import Answer, Limits, exchange

log = logging.getLogger(__name__)


class HttpServer:
    """Listens at `host` (None: all addresses) and `port` (0: any) and answers, as an async context manager.

    Entering raises OSError if nothing can listen there. Leaving cuts all connections.
    """

    def __init__(self, answer: Answer, host: str | None, port: int, limits: Limits | None = None) -> None:
        self._answer = answer
        self._host = host
        self._port = port
        self._limits = limits or Limits()
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def ports(self) -> tuple[int, ...]:
        """Where it listens, one port for each kind of address."""
        sockets = () if self._server is None else self._server.sockets
        return tuple(socket.getsockname()[1] for socket in sockets)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._connected, self._host, self._port, limit=self._limits.request_bytes
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self._limits.connections:
            self._cut_oldest()
        task = asyncio.create_task(self._serve(reader, writer), name="http connection")
        self._connections[task] = writer
        task.add_done_callback(self._ended)

    def _cut_oldest(self) -> None:
        oldest = next(iter(self._connections))
        writer = self._connections.pop(oldest)
        writer.transport.abort()
        oldest.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(TimeoutError, ConnectionError):
                await exchange(reader, writer, self._answer, self._limits)
        except Exception:  # one connection is worth less than the daemon
            log.exception("a connection failed")
        finally:
            writer.transport.abort()
