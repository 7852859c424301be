"""What tells the daemon of the health of a machine's cards, in a time that is not real.

It is a HealthSource whose `wait` answers later, for a thread that is none: `LoopThread` stands in for the monitor's.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from gpustow.hardware.node import Node
from gpustow.health.event import EventKind, HealthEvent, RecoveryProof
from tests.lifecycle.machine import Machine, Place
from tests.plugin.source import BROKEN, WELL

_SOON = 0.01
"""Seconds before a source that is broken says so."""


class Events:
    """A source; `tell` has something happen."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._watched: frozenset[str] = frozenset()
        self._waiting: deque[HealthEvent] = deque()
        self._news = asyncio.Event()

    def tell(self, event: HealthEvent) -> bool:
        """Something happens; whether anybody watches for it."""
        if self._machine.broken or not (event.gpu_uuid in self._watched or (event.gpu_uuid is None and self._watched)):
            return False
        self._waiting.append(event)
        self._news.set()
        return True

    def wake(self) -> None:
        """Whatever it waits for, it looks again."""
        self._news.set()

    def watch(self, node: Node) -> tuple[HealthEvent, ...]:
        if self._machine.broken:
            return (BROKEN,)
        self._watched = frozenset(gpu.uuid for gpu in node.gpus)
        lost = [card.uuid for card in self._machine.cards if card.place is Place.LOST]
        return tuple(HealthEvent(EventKind.LOST, uuid) for uuid in lost if uuid in self._watched)

    def wait(self, seconds: float) -> Any:
        """The events, later; `Any`, because a HealthSource gives them at once."""
        return self._wait(seconds)

    async def _wait(self, seconds: float) -> tuple[HealthEvent, ...]:
        if not self._machine.broken and not self._waiting:
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                pass
        self._news.clear()
        if self._machine.broken:
            await asyncio.sleep(_SOON)
            self._watched = frozenset()
            self._waiting.clear()
            return (BROKEN,)
        came = tuple(self._waiting)
        self._waiting.clear()
        return came

    def proof(self, gpu_uuid: str) -> RecoveryProof:
        card = next((card for card in self._machine.cards if card.uuid == gpu_uuid), None)
        if card is None or not card.here:
            return RecoveryProof(readable=False, uuid_matches=False)
        return RecoveryProof(
            readable=True,
            uuid_matches=True,
            recovery_action=WELL.recovery_action,
            row_remap_pending=card.repair,
            row_remap_failure=False,
            retired_pages_pending=False,
            sram_threshold_exceeded=False,
        )

    def close(self) -> None:
        self._watched = frozenset()


class LoopThread:
    """In place of a SourceThread: calls in the event loop, which may take their time there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def call(self, function: Callable[..., Any], *arguments: Any) -> "asyncio.Task[Any]":
        return asyncio.get_running_loop().create_task(_called(function, *arguments), name=self._name)

    def end(self, last: Callable[[], None]) -> None:
        last()


async def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    await asyncio.sleep(0)
    result = function(*arguments)
    return await result if asyncio.iscoroutine(result) else result
