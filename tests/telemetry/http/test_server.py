import asyncio
import logging
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.telemetry.http.exchange import Limits
from gpustow.telemetry.http.message import Request, Response
from gpustow.telemetry.http.server import HttpServer
from tests.telemetry.client import fetch, parsed, sent

SHORT = Limits(request_seconds=0.1, response_seconds=0.1, linger_seconds=0.05)


def echo(request: Request) -> Response:
    if request.path == "/fault":
        raise RuntimeError("oops")
    if request.path == "/large":
        return Response(200, b"x" * (1 << 25))
    return Response.text(200, f"{request.method} {request.path}")


def serving(limits: Limits = Limits()) -> HttpServer:  # noqa: B008 - frozen
    return HttpServer(echo, "127.0.0.1", 0, limits)


async def test_a_request_is_answered_and_the_connection_closed() -> None:
    async with serving() as server:
        answer = await fetch(server.ports[0], "/x?verbose")
    assert (answer.status, answer.text) == (200, "GET /x\n")
    assert answer.headers["connection"] == "close"
    assert answer.headers["content-length"] == "7"
    assert answer.headers["cache-control"] == "no-store"


async def test_head_is_the_same_without_the_body() -> None:
    async with serving() as server:
        answer = await fetch(server.ports[0], "/x", "HEAD")
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "8")


async def test_the_body_of_a_request_is_thrown_away_and_the_answer_still_arrives() -> None:
    async with serving() as server:
        data = b"POST /x HTTP/1.1\r\nHost: n\r\nContent-Length: 30000\r\n\r\n" + b"y" * 30000
        answer = parsed(await sent(server.ports[0], data))
    assert answer.text == "POST /x\n"


async def test_a_request_in_pieces_is_one_request() -> None:
    async with serving() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.ports[0])
        for piece in (b"GET /x HT", b"TP/1.1\r\nHo", b"st: n\r\n", b"\r\n"):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        assert parsed(await reader.read()).text == "GET /x\n"
        writer.close()


async def test_what_is_not_http_is_refused() -> None:
    async with serving() as server:
        answer = parsed(await sent(server.ports[0], b"\x16\x03\x01 hello\r\n\r\n"))
    assert answer.status == 400


async def test_a_huge_request_is_cut() -> None:
    async with serving() as server:
        answer = parsed(await sent(server.ports[0], b"GET /" + b"a" * 20000))
    assert answer.status == 431


async def test_a_slow_request_is_cut_without_an_answer() -> None:
    async with serving(SHORT) as server:
        assert await sent(server.ports[0], b"GET /x HTTP/1.1\r\n") == b""
        assert (await fetch(server.ports[0], "/x")).status == 200


async def test_a_client_that_does_not_take_its_answer_is_cut() -> None:
    async with serving(SHORT) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.ports[0], limit=1024)
        writer.write(b"GET /large HTTP/1.1\r\nHost: n\r\n\r\n")
        await asyncio.sleep(0.3)
        assert not server._connections
        got = 0
        try:
            while data := await reader.read(1 << 20):
                got += len(data)
        except ConnectionError:
            pass
        assert got < 1 << 25
        writer.close()


async def test_a_client_that_says_nothing_and_goes_costs_nothing() -> None:
    async with serving() as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.ports[0])
        writer.close()
        await writer.wait_closed()
        assert (await fetch(server.ports[0], "/x")).status == 200


async def test_connections_are_bounded_and_the_oldest_makes_room() -> None:
    async with serving(replace(Limits(), connections=3)) as server:
        idle = [await asyncio.open_connection("127.0.0.1", server.ports[0]) for _ in range(5)]
        assert (await fetch(server.ports[0], "/x")).status == 200
        assert len(server._connections) <= 3
        cut = await asyncio.wait_for(asyncio.gather(*(_ended(reader) for reader, _ in idle[:3])), 10)
        assert cut == [b"", b"", b""]
        for _, writer in idle:
            writer.close()


async def _ended(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def test_leaving_cuts_what_is_open() -> None:
    async with serving() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.ports[0])
        await fetch(server.ports[0], "/x")
    assert await _ended(reader) == b""
    writer.close()


async def test_a_fault_of_ours_is_an_answer_and_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as server:
        answer = await fetch(server.ports[0], "/fault")
    assert answer.status == 500
    assert "GET /fault could not be answered" in caplog.text


async def test_an_address_that_is_taken_cannot_be_entered() -> None:
    async with serving() as server:
        with pytest.raises(OSError, match="in use"):
            await HttpServer(echo, "127.0.0.1", server.ports[0]).__aenter__()
    assert HttpServer(echo, "127.0.0.1", 0).ports == ()


async def test_a_connection_that_fails_in_another_way_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_arguments: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr("gpustow.telemetry.http.server.exchange", failing)
    with caplog.at_level(logging.ERROR):
        async with serving() as server:
            assert await sent(server.ports[0], b"GET / HTTP/1.1\r\n\r\n") == b""
    assert "a connection failed" in caplog.text


@given(st.binary(max_size=400))
def test_whatever_is_sent_the_server_lives_and_answers_nothing_but_http(data: bytes) -> None:
    async def run() -> None:
        async with serving(replace(SHORT, request_seconds=0.02)) as server:
            answer = await sent(server.ports[0], data)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 ")
            assert (await fetch(server.ports[0], "/x")).status == 200

    asyncio.run(run())
