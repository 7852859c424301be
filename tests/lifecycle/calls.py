"""The calls of the wire, and the channels that they are made on: the client's end.

A call ends as grpcio's would: with an AioRpcError that has code and details; with CancelledError, raised into a task
that nobody cancelled, where its channel was closed; with UsageError where it was closed before.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import grpc
from grpc.aio import AioRpcError, Metadata, UsageError

Lag = Callable[[], float]
"""Draws the seconds that a message takes."""

_IN_ORDER = 1e-6
"""Seconds between two messages of one call at the least: of two timers for the same time either may be the first."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call failed."""

    code: grpc.StatusCode
    details: str

    def error(self) -> AioRpcError:
        return AioRpcError(self.code, Metadata(), Metadata(), self.details)


DEADLINE = Ended(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")


class Call:
    """One call. `on_cancel` is set by the server, and called when the client has given it up."""

    def __init__(self, lag: Lag) -> None:
        self.on_cancel: Callable[[], None] | None = None
        self._lag = lag
        self._inbox: deque[bytes] = deque()
        self._over = False
        self._cancelled = False
        self._how: Ended | None = None
        self._last = 0.0
        self._waiter: asyncio.Future[None] | None = None

    def later(self, what: Callable[..., None], *arguments: Any) -> None:
        """Does something when a message that is sent now has arrived."""
        loop = asyncio.get_running_loop()
        self._last = max(loop.time() + self._lag(), self._last + _IN_ORDER)
        loop.call_at(self._last, what, *arguments)

    def send(self, message: bytes) -> None:
        """The server's next message."""
        self.later(self._take, message)

    def end(self, how: Ended | None) -> None:
        """The server's last word: how the call failed, or None if it did not."""
        self.later(self.finish, how)

    def _take(self, message: bytes) -> None:
        if not self._over:
            self._inbox.append(message)
            self._wake()

    def finish(self, how: Ended | None) -> None:
        """For the client it is over, now."""
        if not self._over:
            self._over, self._how = True, how
            self._wake()

    def cancel(self) -> None:
        """Its channel was closed."""
        if not self._over:
            self._over = self._cancelled = True
            self._inbox.clear()
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> bytes | None:
        """The next message; None after the last one."""
        while not self._inbox and not self._over:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._inbox:
            return self._inbox.popleft()
        if self._cancelled:
            raise asyncio.CancelledError
        if self._how is not None:
            raise self._how.error()
        return None

    def leave(self) -> None:
        """The client does not wait any more."""
        if self.on_cancel is not None:
            self.later(self.on_cancel)


class Listener(Protocol):
    """A server, for a channel."""

    up: bool

    def begin(self, call: Call, method: str, request: bytes) -> None:
        """A call has arrived."""
        ...


class Channel:
    """In place of grpc.aio.Channel. `find` gives whoever listens on its socket now; it is in `channels` while open."""

    def __init__(
        self, target: str, lag: Lag, find: Callable[[], Listener | None], *channels: "dict[Channel, None]"
    ) -> None:
        self._target = target
        self._lag = lag
        self._find = find
        self._channels = channels
        self._server: Listener | None = None
        self._calls: dict[Call, None] = {}
        self._closed = False
        for each in channels:
            each[self] = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self.break_off()

    def break_off(self) -> None:
        self._closed = True
        for each in self._channels:
            each.pop(self, None)
        for call in tuple(self._calls):
            call.cancel()

    async def channel_ready(self) -> None:
        """Waits until somebody listens."""
        await asyncio.sleep(self._lag())
        while self._listener() is None:  # noqa: ASYNC110 - as grpcio, which tries again and again
            await asyncio.sleep(0.1)

    def _listener(self) -> Listener | None:
        if self._server is None or not self._server.up:
            self._server = self._find()
        return self._server

    def unary_unary(self, method: str, serialize: Callable[[Any], bytes], deserialize: Callable[[bytes], Any]) -> Any:
        async def call(request: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - grpcio's signature
            with self._calling(method, serialize(request), timeout) as under_way:
                answer = await under_way.receive()
                assert answer is not None
                return deserialize(answer)

        return call

    def unary_stream(self, method: str, serialize: Callable[[Any], bytes], deserialize: Callable[[bytes], Any]) -> Any:
        async def call(request: Any) -> AsyncIterator[Any]:
            with self._calling(method, serialize(request), None) as under_way:
                while (message := await under_way.receive()) is not None:
                    yield deserialize(message)

        return call

    @contextmanager
    def _calling(self, method: str, request: bytes, limit: float | None) -> Iterator[Call]:
        if self._closed:
            raise UsageError("Channel is closed.")
        call = Call(self._lag)
        self._calls[call] = None
        deadline = None
        if limit is not None:
            deadline = asyncio.get_running_loop().call_later(limit, call.finish, DEADLINE)
        call.later(self._arrive, call, method, request)
        try:
            yield call
        finally:
            call.leave()
            self._calls.pop(call, None)
            if deadline is not None:
                deadline.cancel()

    def _arrive(self, call: Call, method: str, request: bytes) -> None:
        server = self._listener()
        if server is None:
            call.finish(Ended(grpc.StatusCode.UNAVAILABLE, f"failed to connect to all addresses: {self._target}"))
        elif call in self._calls:
            server.begin(call, method, request)
