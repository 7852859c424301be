"""The daemon under measurement: a process of its own, with an embedded kubelet here to register with."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from gpustow.simulation.kubelet import EmbeddedKubelet

NODE_MODEL = "dgx-a100"
"""Eight GPUs."""

RESOURCE = "nvidia.com/gpu"

STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running daemon: its process, its socket, the milliseconds until it registered and until it was in use."""

    pid: int
    socket: Path
    devices: int
    registered_ms: float
    streaming_ms: float


@asynccontextmanager
async def running_daemon(
    replicas: int, policy: str = "packed", flags: Sequence[str] = ("--log-level=error",)
) -> AsyncIterator[Daemon]:
    """Starts the daemon with `replicas` a GPU, waits until kubelet has all devices, and ends it afterwards.

    A log with more than errors is thrown away.
    """
    devices = 8 * replicas
    with TemporaryDirectory(prefix="gpustow-bench-") as directory:
        config = Path(directory) / "config.yaml"
        config.write_text(_config(replicas, policy), encoding="utf-8")
        async with EmbeddedKubelet(Path(directory), random=Random(0)) as kubelet:  # noqa: S311 - to be repeated
            start = time.perf_counter()
            process = subprocess.Popen(  # noqa: ASYNC220 - starting it takes no time that matters
                [
                    Path(sys.executable).with_name("gpustow"),
                    "plugin",
                    f"--node-model={NODE_MODEL}",
                    f"--config-file={config}",
                    f"--kubelet-socket={kubelet.registration_socket}",
                    *flags,
                ],
                stderr=None if "--log-level=error" in flags else subprocess.DEVNULL,
            )
            try:
                while not kubelet.registrations:  # noqa: ASYNC110 - the list has no event, and its time is what counts
                    await asyncio.sleep(0.001)
                registered = time.perf_counter()
                await kubelet.wait_for(RESOURCE, at_least=devices)
                streaming = time.perf_counter()
                yield Daemon(
                    process.pid,
                    kubelet.plugin_directory / kubelet.registrations[0].endpoint,
                    devices,
                    (registered - start) * 1e3,
                    (streaming - start) * 1e3,
                )
            finally:
                process.terminate()
                process.wait(STOP_SECONDS)


def _config(replicas: int, policy: str) -> str:
    return f"""
version: v1
flags:
  plugin:
    sharedDevicesAllocationPolicy: {policy}
sharing:
  timeSlicing:
    resources:
      - name: {RESOURCE}
        replicas: {replicas}
"""
