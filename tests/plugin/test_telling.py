import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gpustow.health.observer import GuardedHealthObserver
from gpustow.plugin.observer import GuardedObserver
from gpustow.plugin.telling import Telling
from gpustow.telemetry.facts import Check, Facts
from tests.kubelet.fakekubelet import until


class Source:
    def facts(self, now: float) -> Facts:
        return Facts(now, (Check("node"),))


@asynccontextmanager
async def telling() -> AsyncIterator[tuple[Telling, GuardedObserver, asyncio.TaskGroup]]:
    observer = GuardedObserver()
    told = Telling(Source(), observer, GuardedHealthObserver())
    async with asyncio.TaskGroup() as group:
        yield told, observer, group
        told.cancel()


async def test_without_an_address_nothing_begins() -> None:
    async with telling() as (told, observer, group):
        told.follow("", group)
        assert told.telemetry is None
        assert not observer.explains


async def test_another_address_is_followed_and_what_was_counted_stays() -> None:
    async with telling() as (told, observer, group):
        told.follow("127.0.0.1:0", group)
        telemetry = told.telemetry
        assert telemetry is not None
        assert observer.explains
        observer.allocated("nvidia.com/gpu", ("a",))
        await until(lambda: bool(telemetry.ports))
        before = telemetry.ports
        told.follow("127.0.0.1:0", group)
        await asyncio.sleep(0.05)
        assert telemetry.ports == before
        told.follow("localhost:0", group)
        await until(lambda: telemetry.ports not in {(), before})
        told.follow("", group)
        await until(lambda: not telemetry.ports)
        told.follow("127.0.0.1:0", group)
        await until(lambda: bool(telemetry.ports))
        assert told.telemetry is telemetry
        assert len(list(telemetry.plugins.counters.samples())) == 4


async def test_a_fault_while_listening_ends_listening_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("gpustow.telemetry.telemetry.Telemetry.listen", failing)
    with caplog.at_level(logging.ERROR):
        async with telling() as (told, _, group):
            told.follow("127.0.0.1:0", group)
            await until(lambda: "nothing is told at 127.0.0.1:0 any more" in caplog.text)


def test_nothing_of_it_is_imported_with_the_daemon() -> None:
    modules = "[name for name in sys.modules if name.partition('.')[0] in {'h11', 'prometheus_client'}]"
    program = f"import sys, gpustow.plugin, gpustow.cli; print({modules})"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "[]\n"
