"""The daemon as a process of its own, with an embedded kubelet to register with."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil

from gpustow.simulation.kubelet import Container, EmbeddedKubelet, Pod
from tests.cli.commands import BIN, environment, no_driver

RESOURCE = "nvidia.com/gpu"
PATIENCE = 60
"""Seconds until a test gives up on a daemon, on a machine that has much else to do."""

FAULTY = """
from gpustow.cli import plugin, plugin_main

def load_badly(*_):
    raise ZeroDivisionError("in a place that nobody thought of")

plugin.load_config = load_badly
plugin_main()
"""


@dataclass(slots=True)
class Daemon:
    process: asyncio.subprocess.Process
    kubelet: EmbeddedKubelet
    log: Path

    def sockets(self) -> list[str]:
        return sorted(path.name for path in self.kubelet.plugin_directory.glob("*.sock"))

    async def has(self, devices: int) -> None:
        """Waits until kubelet can give so many devices."""
        await self.kubelet.wait_for(RESOURCE, at_least=devices, timeout=PATIENCE)

    async def logged(self, words: str, times: int = 1) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.log.read_text(encoding="utf-8").count(words) < times:  # noqa: ASYNC110 - a file sets no event
                await asyncio.sleep(0.02)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), PATIENCE)


@asynccontextmanager
async def daemon(
    tmp_path: Path, *words: str, program: tuple[str, ...] = ("gpustow", "plugin")
) -> AsyncIterator[Daemon]:
    log = tmp_path / "log"
    async with EmbeddedKubelet(tmp_path / "k", random=Random(1)) as kubelet:
        command = [str(BIN / program[0]), *program[1:]]
        with log.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                *command, f"--kubelet-socket={kubelet.registration_socket}", *words, stderr=stderr, env=environment()
            )
        try:
            yield Daemon(process, kubelet, log)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def test_the_daemon_serves_until_sigterm_and_leaves_nothing_of_its_own(tmp_path: Path) -> None:
    async with daemon(tmp_path, "--node-model=a100-4-mig-5", "--mig-strategy=single") as running:
        await running.has(20)
        admitted = await running.kubelet.admit(Pod("p", containers=(Container("main", {RESOURCE: 1}),)))
        [device] = admitted.device_ids(RESOURCE)
        assert admitted.container("main").envs == {"NVIDIA_VISIBLE_DEVICES": device}
        assert len(running.sockets()) == 2
        assert await running.stop() == 0
        assert running.sockets() == ["kubelet.sock"]


async def test_sighup_reads_configuration_and_node_again(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    text = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: %d}]}}"
    config.write_text(text % 2, encoding="utf-8")
    async with daemon(tmp_path, "--node-model=t4-4", f"--config-file={config}") as running:
        await running.has(8)
        config.write_text(text % 3, encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        await running.has(12)
        assert len(running.kubelet.registrations) == 1, "the resource stays registered"
        assert await running.stop() == 0


async def test_another_content_of_the_file_is_a_reload_without_a_signal(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    text = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: %d}]}}"
    config.write_text(text % 2, encoding="utf-8")
    async with daemon(tmp_path, "--node-model=t4-4", f"--config-file={config}") as running:
        await running.has(8)
        (tmp_path / "next").write_text(text % 3, encoding="utf-8")
        (tmp_path / "next").rename(config)
        await running.has(12)
        assert len(running.kubelet.registrations) == 1
        assert await running.stop() == 0


async def test_signals_from_the_moment_that_it_can_be_found_do_not_disturb_its_start_case_c15(tmp_path: Path) -> None:
    async with daemon(tmp_path, "--node-model=t4-4", program=("nvidia-device-plugin",)) as running:
        process = psutil.Process(running.process.pid)
        sent = 0
        while not running.kubelet.allocatable():
            if process.cmdline()[:1] == ["nvidia-device-plugin"]:
                running.process.send_signal(signal.SIGHUP)
                sent += 1
            await asyncio.sleep(0.02)
        await running.has(4)
        assert len(running.kubelet.registrations) == 1
        assert running.kubelet.allocatable() == {RESOURCE: 4}
        assert sent > 3
        assert await running.stop() == 0


async def test_a_fault_of_a_simulated_node_reaches_kubelet(tmp_path: Path) -> None:
    model = tmp_path / "node.yaml"
    model.write_text(
        "{name: n, gpus: [{model: Tesla T4, count: 4}], faults: [{fault: xid, after: 0, gpu: 2, code: 79}]}"
    )
    async with daemon(tmp_path, f"--node-model={model}") as running:
        await running.kubelet.wait_until(lambda: running.kubelet.allocatable() == {RESOURCE: 3}, timeout=PATIENCE)
        await running.logged("XID 79")
        assert running.kubelet.capacity() == {RESOURCE: 4}
        assert await running.stop() == 0


async def test_a_bad_reload_leaves_what_runs(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("version: v1", encoding="utf-8")
    async with daemon(tmp_path, "--node-model=t4-4", f"--config-file={config}") as running:
        await running.has(4)
        config.write_text("version: v2", encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        await running.logged("v2")
        assert running.kubelet.allocatable() == {RESOURCE: 4}
        assert await running.stop() == 0


async def test_an_interrupt_ends_it_as_well(tmp_path: Path) -> None:
    async with daemon(tmp_path, "--node-model=t4-4", program=("nvidia-device-plugin",)) as running:
        await running.has(4)
        assert await running.stop(signal.SIGINT) == 0


async def test_without_a_driver_it_waits_if_it_is_told_to(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    async with daemon(tmp_path, "--fail-on-init-error=false", *no_driver(empty)) as running:
        await running.logged("Looking again")
        assert running.process.returncode is None
        assert running.sockets() == ["kubelet.sock"]
        assert await running.stop() == 0


def test_a_fault_of_ours_ends_it_with_one_json_line_that_has_the_traceback(tmp_path: Path) -> None:
    (tmp_path / "gpustow_fault.py").write_text(FAULTY, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "gpustow_fault", "--log-format=json", "--node-model=t4-4"],
        capture_output=True,
        text=True,
        env=environment({"PYTHONPATH": str(tmp_path)}),
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 1
    simulated, told = map(json.loads, ended.stderr.splitlines())
    assert simulated["message"].startswith("the node is simulated")
    assert told["level"] == "critical"
    assert told["message"] == "a fault of ours ends it: ZeroDivisionError('in a place that nobody thought of')"
    assert told["traceback"].startswith("Traceback")


async def test_a_simulated_node_is_told_with_what_is_assumed_of_it(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}", encoding="utf-8")
    flags = (f"--config-file={config}", "--mps-root=/mps", "--gdrcopy-enabled")
    async with daemon(tmp_path, "--node-model=t4-4", *flags) as running:
        await running.has(8)
        await running.logged("the node is simulated, by node model t4-4: its GPUs are not there")
        await running.logged("a simulated node is taken to have GDRCopy's device, the MPS control daemons")
        assert await running.stop() == 0
