"""The daemon as a process of its own, on a simulated node, where a scenario is about the process."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.commands import BIN, environment

PATIENCE = 60
"""Seconds until a test gives up on a process, on a machine that has much else to do."""


@dataclass(frozen=True, slots=True)
class PluginProcess:
    """A daemon that runs, and its log."""

    process: asyncio.subprocess.Process
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    async def logged(self, words: str, *, times: int = 1) -> None:
        """Waits until the log has the words so many times."""
        async with asyncio.timeout(PATIENCE):
            while self.log.read_text(encoding="utf-8").count(words) < times:  # noqa: ASYNC110 - a file sets no event
                await asyncio.sleep(0.02)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends the signal; the exit code that it brings."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), PATIENCE)


@asynccontextmanager
async def plugin_process(directory: Path, *words: str) -> AsyncIterator[PluginProcess]:
    """`gpustow plugin` on a node with eight GPUs, for the kubelet of a directory."""
    log = directory / "log"
    flags = [f"--kubelet-socket={directory / 'kubelet.sock'}", "--node-model=dgx-a100", *words]
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            str(BIN / "gpustow"), "plugin", *flags, stderr=stderr, env=environment()
        )
    try:
        yield PluginProcess(process, log)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
