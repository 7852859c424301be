"""What the daemon costs the node: the time until it serves, its memory, and what it does when nothing happens."""

import asyncio
import time

import psutil

from benchmarks.daemon import running_daemon
from benchmarks.measurement import Measurement

REPLICAS = 100
"""A GPU, of which there are eight."""


async def measure_cost(starts: int, idle_seconds: float) -> list[Measurement]:
    """The rows: start to registered, start to in use, resident memory, CPU time when idle for so long."""
    registered, streaming, resident = [], [], []
    idle: list[float] = []
    for number in range(starts):
        async with running_daemon(REPLICAS) as daemon:
            registered.append(daemon.registered_ms)
            streaming.append(daemon.streaming_ms)
            process = psutil.Process(daemon.pid)
            resident.append(process.memory_info().rss / (1 << 20))
            if number == starts - 1:
                idle = [await _idle_cpu(process, idle_seconds)]
    devices = 8 * REPLICAS
    return [
        Measurement.of("start/registered", "ms", registered),
        Measurement.of(f"start/in use/{devices} devices", "ms", streaming),
        Measurement.of(f"memory/resident/{devices} devices", "MiB", resident),
        Measurement.of("cpu/idle", "ms per s", idle),
    ]


async def _idle_cpu(process: psutil.Process, seconds: float) -> float:
    """Milliseconds of CPU time a second that the process takes while nothing happens. The clock ticks every 10 ms."""
    start, before = time.perf_counter(), process.cpu_times()
    await asyncio.sleep(seconds)
    after, waited = process.cpu_times(), time.perf_counter() - start
    return max(0.0, after.user + after.system - before.user - before.system) / waited * 1e3
