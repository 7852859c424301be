import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from gpustow.plugin.signals import STOP_SIGNALS, run_with_signals
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, our_sockets

DAEMON = """
import asyncio, sys
from pathlib import Path
from gpustow.plugin import Supervisor
from gpustow.plugin.signals import run_with_signals
from tests.plugin.samples import Reader, gpu, loaded, node

directory = Path(sys.argv[1])

def load():
    with (directory / "loads").open("a") as loads:
        loads.write("x")
    return loaded(kubelet_socket=str(directory / "kubelet.sock"))

asyncio.run(run_with_signals(Supervisor(load, Reader(node(gpu(0), gpu(1))).make)))
"""


async def start(directory: Path) -> Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-c", DAEMON, str(directory))


@pytest.mark.parametrize("number", STOP_SIGNALS)
async def test_a_stop_signal_ends_the_process_well_and_removes_only_its_own_socket(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "kubelet_internal_checkpoint").write_text("{}")
    async with FakeKubelet(tmp_path) as kubelet:
        daemon = await start(tmp_path)
        await until(lambda: kubelet.live(GPU), seconds=30)
        daemon.send_signal(number)
        assert await daemon.wait() == 0
        assert our_sockets(tmp_path) == []
        await until(lambda: kubelet.plugins[0].ended)
        assert (tmp_path / "kubelet_internal_checkpoint").read_text() == "{}"
        assert kubelet.socket.is_socket()


async def test_sighup_reads_the_configuration_again(tmp_path: Path) -> None:
    async with FakeKubelet(tmp_path) as kubelet:
        daemon = await start(tmp_path)
        await until(lambda: kubelet.live(GPU), seconds=30)
        daemon.send_signal(signal.SIGHUP)
        await until(lambda: (tmp_path / "loads").read_text() == "xx")
        daemon.send_signal(signal.SIGTERM)
        assert await daemon.wait() == 0
        assert len(kubelet.requests) == 1


async def test_the_signals_are_given_back_when_it_ends(tmp_path: Path) -> None:
    numbers = (signal.SIGHUP, *STOP_SIGNALS)
    before = [signal.getsignal(number) for number in numbers]
    try:
        daemon = Daemon(tmp_path)
        running = asyncio.create_task(run_with_signals(daemon.supervisor))
        await until(lambda: daemon.supervisor.states)
        os.kill(os.getpid(), signal.SIGTERM)
        await running
        assert [signal.getsignal(number) for number in numbers] == before
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
