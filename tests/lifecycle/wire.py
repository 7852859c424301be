"""gRPC without a network: servers and channels of grpc.aio as both ends use them, within one event loop.

Each message takes a moment that the test draws, so that calls, lists and the ends of streams meet in every order.
Sockets are true files with true listeners behind them, because both ends look at them; only what is said goes another
way. A process that is killed leaves its sockets, and its peers see their connections break.

A test holds what calls end in here against grpcio's own. Limits: unary calls and server streams, unix sockets, no
metadata, no flow control, no limit on the length of a message.
"""

import asyncio
import contextvars
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self
from unittest import mock
from urllib.parse import unquote

import grpc
from grpc.aio import AbortError

from tests.lifecycle.calls import Call, Channel, Ended, Lag

Identity = tuple[int, int]
"""Device and inode of a socket."""

BROKEN = Ended(grpc.StatusCode.UNAVAILABLE, "Stream removed (Socket closed)")
STOPPED = Ended(grpc.StatusCode.UNAVAILABLE, "Cancelling all calls")
NO_METHOD = Ended(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")


class Process:
    """Whose servers and calls they are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.servers: dict[Server, None] = {}
        self.channels: dict[Channel, None] = {}

    def kill(self) -> None:
        """Nothing of it goes on, and nothing is tidied up. The tasks that belong to it are the caller's to end."""
        self.alive = False
        for server in tuple(self.servers):
            server.break_off()
        for channel in tuple(self.channels):
            channel.break_off()


_process: contextvars.ContextVar[Process] = contextvars.ContextVar("process", default=Process("the test"))  # noqa: B039 - never changed, and what runs in no process belongs to it


@contextmanager
def running_as(process: Process) -> Iterator[None]:
    """What is started in here, with all that it starts, belongs to the process."""
    token = _process.set(process)
    try:
        yield
    finally:
        _process.reset(token)


class Wire:
    """All servers of a run. `lag` gives the seconds that a message takes.

    `graveyard` is a directory on the same file system as the sockets. It keeps every socket there ever was, so that no
    inode comes again: hours may pass here within the time in which files cannot be told apart by theirs.
    """

    def __init__(self, graveyard: Path, lag: Lag) -> None:
        self.lag = lag
        self.servers: dict[Identity, Server] = {}
        self.channels: dict[Channel, None] = {}
        self._graveyard = graveyard
        self._buried = 0

    @contextmanager
    def installed(self) -> Iterator[Self]:
        """Has everybody use this wire in place of grpcio's."""
        with (
            mock.patch.object(grpc.aio, "server", self.server),
            mock.patch.object(grpc.aio, "insecure_channel", self.channel),
        ):
            yield self

    def server(self, *, handlers: Sequence[grpc.GenericRpcHandler], options: Any = None) -> "Server":
        del options
        return Server(self, handlers)

    def channel(self, target: str, options: Any = None) -> "Channel":
        del options
        path = _path(target)
        return Channel(target, self.lag, lambda: self.find(path), self.channels, _process.get().channels)

    def bury(self, path: Path) -> None:
        """Keeps the inode of a socket."""
        self._buried += 1
        (self._graveyard / str(self._buried)).hardlink_to(path)

    def find(self, path: Path) -> "Server | None":
        """Who listens on a socket."""
        try:
            found = path.stat()
        except OSError:
            return None
        return self.servers.get((found.st_dev, found.st_ino))


def _path(target: str) -> Path:
    return Path(unquote(target.removeprefix("unix:")))


@dataclass(frozen=True, slots=True)
class _Details:
    """What handlers are asked for a method with."""

    method: str
    invocation_metadata: Sequence[Any] = ()


class Context:
    """What a handler may do beside answering."""

    async def abort(self, code: grpc.StatusCode, details: str = "") -> NoReturn:
        error = AbortError()
        error.ended = Ended(code, details)  # type: ignore[attr-defined] # for `Server._serve`
        raise error


class Server:
    """In place of grpc.aio.Server."""

    def __init__(self, wire: Wire, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._wire = wire
        self._handlers = handlers
        self._process = _process.get()
        self._process.servers[self] = None
        self._context = contextvars.copy_context()
        self._socket: socket.socket | None = None
        self._path = Path()
        self._identity: Identity | None = None
        self._calls: dict[Call, asyncio.Task[None]] = {}
        self.up = False

    def add_insecure_port(self, target: str) -> int:
        self._path = _path(target)
        listener = socket.socket(socket.AF_UNIX)
        try:
            if self._path.is_socket():
                self._path.unlink()
            listener.bind(os.fspath(self._path))
        except OSError as error:
            listener.close()
            raise RuntimeError(f"Failed to bind to address {target}") from error
        self._wire.bury(self._path)
        self._socket = listener
        return 1

    async def start(self) -> None:
        assert self._socket is not None
        self._socket.listen()
        found = self._path.stat()
        self._identity = (found.st_dev, found.st_ino)
        self._wire.servers[self._identity] = self
        self.up = True

    async def stop(self, grace: float | None) -> None:
        """As grpcio, deletes whatever is at its path, and gives calls under way so many seconds."""
        if not self._process.alive:
            return
        if self._socket is not None:
            self._path.unlink(missing_ok=True)
        self._close()
        if grace and self._calls:
            await asyncio.wait(self._calls.values(), timeout=grace)
        tasks = [*self._calls.values()]
        for call in tuple(self._calls):
            self._end(call, STOPPED)
        if tasks:
            await asyncio.wait(tasks)

    def break_off(self) -> None:
        """The process is dead: the file stays, with nobody behind it."""
        self._close()
        for call in tuple(self._calls):
            self._end(call, BROKEN)

    def _close(self) -> None:
        self.up = False
        self._process.servers.pop(self, None)
        if self._identity is not None:
            self._wire.servers.pop(self._identity, None)
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _end(self, call: Call, how: Ended) -> None:
        call.end(how)
        task = self._calls.pop(call, None)
        if task is not None:
            task.cancel()

    def begin(self, call: Call, method: str, request: bytes) -> None:
        """A call has arrived."""
        if not self.up:
            call.end(BROKEN)
            return
        serving = self._serve(call, method, request)
        task = self._calls[call] = asyncio.get_running_loop().create_task(serving, context=self._context)
        call.on_cancel = task.cancel  # type: ignore[assignment] # its answer is nobody's business

    async def _serve(self, call: Call, method: str, request: bytes) -> None:
        try:
            await self._handle(call, method, request)
        except AbortError as error:
            call.end(error.ended)  # type: ignore[attr-defined] # of our context
        except Exception as error:  # noqa: BLE001 - as grpcio does
            call.end(Ended(grpc.StatusCode.UNKNOWN, f"Unexpected {type(error)}: {error}"))
        else:
            call.end(None)
        finally:
            self._calls.pop(call, None)

    async def _handle(self, call: Call, method: str, request: bytes) -> None:
        found = (handler.service(_Details(method)) for handler in self._handlers)  # type: ignore[arg-type] # all of it that is used
        handler: Any = next((each for each in found if each is not None), None)
        if handler is None:
            call.end(NO_METHOD)
            return
        asked, context = handler.request_deserializer(request), Context()
        if handler.response_streaming:
            async for message in handler.unary_stream(asked, context):
                call.send(handler.response_serializer(message))
        else:
            call.send(handler.response_serializer(await handler.unary_unary(asked, context)))
