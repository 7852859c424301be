"""A telemetry that listens in a thread, since the browser's pipe is read without an event loop."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from gpustow.cli.question import Question, Questioned
from gpustow.telemetry.decisions import DecisionStatus
from gpustow.telemetry.facts import Facts
from gpustow.telemetry.telemetry import Telemetry
from tests.telemetry.samples import NOW


class Source:
    """Knows what it is told to know."""

    def __init__(self, known: Facts) -> None:
        self.known = known

    def facts(self, now: float) -> Facts:
        return replace(self.known, at=now)


class Served:
    """`address` is where the page is; `source.known` is what it shows."""

    def __init__(self, known: Facts) -> None:
        self.source = Source(known)
        self.telemetry = Telemetry(self.source, clock=lambda: NOW)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.telemetry.ports[0]}/"

    def decide(self, size: int) -> DecisionStatus:
        """Has a request of the first resource decided, as a plugin would; what is told of it."""
        known = self.source.known
        assert known.node is not None
        first = known.served[0]
        resources = [each.resource for each in known.served]
        asked = Questioned(first.resource, resources, known.node.links, {None: first.policy})
        placement = asked.answer(Question(size, in_use=sorted(known.held.get(first.resource.name, ()))))
        return self.telemetry.decisions.add(first.resource.name, placement, placement.explanation(), 0.0002)


@contextmanager
def served(known: Facts, port: int = 0) -> Iterator[Served]:
    """Serves until the context ends."""
    serving, loop, started = Served(known), asyncio.new_event_loop(), threading.Event()
    stop: list[Callable[[], object]] = []

    async def serve() -> None:
        task = asyncio.create_task(serving.telemetry.listen(f"127.0.0.1:{port}"))
        stop.append(task.cancel)
        while not serving.telemetry.ports:  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0.01)
        started.set()
        await asyncio.wait([task])

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert started.wait(30)
    try:
        yield serving
    finally:
        loop.call_soon_threadsafe(stop[0])
        thread.join(30)
        loop.close()
