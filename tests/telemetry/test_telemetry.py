import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gpustow.telemetry.http.message import Request, Response
from gpustow.telemetry.http.server import HttpServer
from gpustow.telemetry.telemetry import Telemetry
from tests.telemetry.client import fetch
from tests.telemetry.samples import facts
from tests.telemetry.test_exposition import Source


@asynccontextmanager
async def listening(telemetry: Telemetry, address: str) -> AsyncIterator[int]:
    task = asyncio.create_task(telemetry.listen(address))
    try:
        while not telemetry.ports:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.005)
        yield telemetry.ports[0]
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_what_is_known_is_told_at_the_address() -> None:
    telemetry = Telemetry(Source(facts("t4-4")))
    async with listening(telemetry, "127.0.0.1:0") as port:
        assert (await fetch(port, "/readyz")).text == "ok\n"
        assert "gpustow_devices{" in (await fetch(port, "/metrics")).text
    assert telemetry.ports == ()


async def test_an_address_that_is_taken_is_told_once_and_tried_until_it_is_free(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def other(_request: Request) -> Response:
        return Response.text(200, "other")

    telemetry = Telemetry(Source(facts("t4-4")), retry=0.005)
    with caplog.at_level(logging.INFO):
        async with HttpServer(other, "127.0.0.1", 0) as taken:
            address = f"127.0.0.1:{taken.ports[0]}"
            task = asyncio.create_task(telemetry.listen(address))
            while "nothing can listen at" not in caplog.text:  # noqa: ASYNC110 - a log sets no event
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            assert not telemetry.ports
        while not telemetry.ports:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.005)
        assert (await fetch(telemetry.ports[0], "/livez")).text == "ok\n"
        task.cancel()
        await asyncio.wait([task])
    assert caplog.text.count("nothing can listen at") == 1
    assert f"told at {address}" in caplog.text
