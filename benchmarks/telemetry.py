"""What telling costs: memory, time of decisions, and time of a scrape.

Each run has two daemons at the same time, one that listens and one that does not; their decisions are asked for in
turn, so that both meet the same machine. Both log at the usual level, which works out the reasons as telling does.
"""

import http.client
import socket
import time

import grpc
import psutil

from benchmarks.daemon import Daemon, running_daemon
from benchmarks.measurement import Measurement, measure
from benchmarks.wire import Client, preference
from gpustow.kubelet.protocol import services

REPLICAS = 100
MANY_REPLICAS = 1_000
"""A GPU, of which there are eight: the node whose scrape is measured."""

SIZE = 8
_SCRAPES = 5
_PATHS = ("/metrics", "/api/v1/node", "/readyz")


async def measure_telemetry(runs: int, repeat: int) -> list[Measurement]:
    """The rows: memory and decision time of both daemons and what is added, and the scrape of many replicas."""
    memory: list[tuple[float, float]] = []
    decisions: list[tuple[float, float]] = []
    for _ in range(runs):
        port = _free_port()
        async with (
            running_daemon(REPLICAS, flags=()) as silent,
            running_daemon(REPLICAS, flags=(f"--metrics-address=127.0.0.1:{port}",)) as telling,
        ):
            for _ in range(_SCRAPES):
                for path in _PATHS:
                    _get(port, path)
            decisions.append(_paired(silent, telling, repeat))
            memory.append((_resident(silent), _resident(telling)))
    rows = [*_compared("memory", "MiB", memory), *_compared("decision", "ms", decisions)]
    port = _free_port()
    async with running_daemon(
        MANY_REPLICAS, flags=(f"--metrics-address=127.0.0.1:{port}", "--log-level=error")
    ) as many:
        for name, path in (("scrape", "/metrics"), ("node", "/api/v1/node")):
            rows.append(measure(f"telemetry/{name}/{many.devices} devices", lambda: _get(port, path), repeat=repeat))  # noqa: B023 - called at once
    return rows


def _compared(name: str, unit: str, pairs: list[tuple[float, float]]) -> list[Measurement]:
    return [
        Measurement.of(f"telemetry/{name}/without", unit, [without for without, _ in pairs]),
        Measurement.of(f"telemetry/{name}/with", unit, [with_ for _, with_ in pairs]),
        Measurement.of(f"telemetry/{name}/added", unit, [with_ - without for without, with_ in pairs]),
    ]


def _paired(silent: Daemon, telling: Daemon, repeat: int) -> tuple[float, float]:
    """The medians of the milliseconds of a decision, over the wire."""
    with (
        grpc.insecure_channel(f"unix:{silent.socket}") as one,
        grpc.insecure_channel(f"unix:{telling.socket}") as other,
    ):
        clients = Client(one), Client(other)
        request = preference(clients[0].ids(), SIZE)
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(repeat):
            for which in (0, 1) if number % 2 else (1, 0):
                start = time.perf_counter_ns()
                clients[which].unary(services.GET_PREFERRED_ALLOCATION, request)
                times[which].append((time.perf_counter_ns() - start) / 1e6)
    return Measurement.of("without", "ms", times[0]).median, Measurement.of("with", "ms", times[1]).median


def _get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def _resident(daemon: Daemon) -> float:
    return float(psutil.Process(daemon.pid).memory_info().rss) / (1 << 20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
