"""A whole daemon that listens, with an embedded kubelet, in this process; what it reads can be broken by a test."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from gpustow.config import load_config
from gpustow.errors import AdmissionError
from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import load_node_model
from gpustow.plugin import Supervisor
from gpustow.simulation.kubelet import Container, EmbeddedKubelet, Pod
from gpustow.telemetry.nvmlcounts import NvmlCounts
from tests.plugin.samples import SHORT
from tests.plugin.source import FakeSource
from tests.telemetry.client import fetch

_TIMING = replace(SHORT, usage_every=1000, usage_settles=1000)
"""What is in use is read when a test says so, and at no other time."""

Samples = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]
"""Values by the name of a sample and its labels, sorted."""


class Daemon:
    """`answer` is what is read of the node, or an error to raise; `text` is the configuration file.

    Flags that are None are not given.
    """

    def __init__(self, kubelet: EmbeddedKubelet, model: str, text: str, **flags: object) -> None:
        self.kubelet = kubelet
        self.text = text
        self.answer: Node | Exception = load_node_model(model).node
        self.source = FakeSource()
        self.nvml_counts = NvmlCounts()
        self.task: asyncio.Task[None] | None = None
        given = {
            "kubelet-socket": str(kubelet.registration_socket),
            "metrics-address": "127.0.0.1:0",
            "config-file": "/config/config.yaml",
            **{name.replace("_", "-"): value for name, value in flags.items()},
        }
        given = {name: value for name, value in given.items() if value is not None}
        self.supervisor = Supervisor(
            lambda: load_config(given, {}, lambda _path: self.text),
            lambda _config: self,
            make_source=self.source.make,
            timing=_TIMING,
            random=Random(2),
            nvml_counts=self.nvml_counts,
        )

    def read(self) -> Node:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    @property
    def port(self) -> int:
        telemetry = self.supervisor._telling.telemetry
        assert telemetry is not None
        return telemetry.ports[0]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                if self.task is not None and self.task.done():
                    self.task.result()
                await asyncio.sleep(0.01)

    async def listens(self) -> None:
        telling = self.supervisor._telling
        await self.until(lambda: telling.telemetry is not None and bool(telling.telemetry.ports))

    async def ready(self) -> None:
        await self.until(lambda: self.supervisor.not_ready is None)
        await self.listens()

    async def status(self) -> Any:
        return json.loads((await fetch(self.port, "/api/v1/node")).body)

    async def metrics(self) -> str:
        return (await fetch(self.port, "/metrics")).text

    async def admit(self, name: str, resource: str, count: int) -> tuple[str, ...]:
        await self.kubelet.wait_for(resource)  # until then kubelet takes it for no business of its own
        pod = await self.kubelet.admit(Pod(name, containers=(Container("main", {resource: count}),)))
        return pod.device_ids(resource)

    async def is_refused(self, name: str, resource: str, count: int) -> bool:
        try:
            await self.admit(name, resource, count)
        except AdmissionError:
            return True
        return False


@asynccontextmanager
async def daemon(
    directory: Path, model: str = "a100-4-mig-5", text: str = "version: v1\n", **flags: object
) -> AsyncIterator[Daemon]:
    async with EmbeddedKubelet(directory, random=Random(1)) as kubelet:
        running = Daemon(kubelet, model, text, **flags)
        task = running.task = asyncio.create_task(running.supervisor.run())
        try:
            yield running
        finally:
            running.supervisor.stop()
            await task


def samples(text: str) -> Samples:
    """What a scrape says."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]
