"""One request and its response, over one connection, with h11 for the protocol and asyncio's streams for the bytes.

The connection is closed afterwards: clients come every few seconds at most, and a connection that nobody keeps is one
that nobody can hold on to. Requests have no bodies here; what is sent of one is thrown away.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import h11

from gpustow.telemetry.http.message import Request, Response

log = logging.getLogger(__name__)

_CHUNK = 4096

Answer = Callable[[Request], Response]
"""Answers a request, at once: it is called in the thread of the event loop."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may do.

    `request_seconds` and `request_bytes` are for the request to arrive, `response_seconds` for the response to be
    taken, `linger_seconds` and `linger_bytes` for what a client still sends then. `connections` may be open at once.
    """

    request_seconds: float = 5.0
    request_bytes: int = 8192
    response_seconds: float = 10.0
    linger_seconds: float = 1.0
    linger_bytes: int = 1 << 16
    connections: int = 32


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, limits: Limits) -> None:
    """Reads a request, answers it, and lets the client read the answer.

    Raises TimeoutError if the client is too slow, ConnectionError if it goes.
    """
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.request_bytes)
    try:
        async with asyncio.timeout(limits.request_seconds):
            request = await _read(reader, connection)
    except h11.RemoteProtocolError as error:
        status = error.error_status_hint
        response = Response.text(status, f"{HTTPStatus(status).phrase}: {error}")
        head_only = False
    else:
        if request is None:
            return
        response, head_only = _answered(answer, request), request.method == "HEAD"
    async with asyncio.timeout(limits.response_seconds):
        await _write(writer, connection, response, head_only=head_only)
    await _linger(reader, limits)


async def _read(reader: asyncio.StreamReader, connection: h11.Connection) -> Request | None:
    """The request; None if the client has gone without one. Raises h11.RemoteProtocolError."""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_CHUNK))
        elif isinstance(event, h11.Request):
            headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
            return Request(event.method.decode("ascii"), event.target.decode("ascii"), headers)
        else:
            return None


def _answered(answer: Answer, request: Request) -> Response:
    try:
        return answer(request)
    except Exception:  # whoever watches the daemon must not stop it
        log.exception("%s %s could not be answered", request.method, request.path)
        return Response.text(500, "a fault of ours; the log has it")


async def _write(
    writer: asyncio.StreamWriter, connection: h11.Connection, response: Response, *, head_only: bool
) -> None:
    headers = {
        "Content-Type": response.content_type,
        "Content-Length": str(len(response.body)),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Connection": "close",
        **response.headers,
    }
    head = h11.Response(status_code=response.status, headers=list(headers.items()))
    writer.write(connection.send(head) or b"")
    if not head_only:
        writer.write(response.body)
    await writer.drain()
    writer.write_eof()


async def _linger(reader: asyncio.StreamReader, limits: Limits) -> None:
    """Reads what the client still sends, for a while: closing before would take the answer from it."""
    left = limits.linger_bytes
    async with asyncio.timeout(limits.linger_seconds):
        while left > 0 and (data := await reader.read(_CHUNK)):
            left -= len(data)
