"""What the health monitor finds reaches kubelet, and lasts through rescans and reloads."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gpustow.config import Config
from gpustow.config.health import HealthConfig, RecoveryConfig
from gpustow.config.xidswitches import read_switches
from gpustow.hardware.node import Platform
from gpustow.health.event import HealthSource
from gpustow.health.monitor import HealthMonitor
from tests.kubelet.fakekubelet import FakeKubelet, Plugin, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, MIG, SHORT, gpu, node
from tests.plugin.source import FakeSource, xid

QUICK = HealthConfig(check_interval=0.02, recovery=RecoveryConfig(hold_time=0.05), rescan_interval=None)
LASTING = HealthConfig(recovery=RecoveryConfig(enabled=False), rescan_interval=None)


def healthy(kubelet: FakeKubelet, resource: str = GPU) -> set[str]:
    plugins = kubelet.live(resource)
    return plugins[-1].healthy if plugins else set()


def lists(plugin: Plugin) -> list[dict[str, bool]]:
    return [{device.ID: device.health == "Healthy" for device in each} for each in plugin.lists]


async def test_a_gpu_with_an_xid_is_unhealthy_at_once_and_comes_back_on_proof_case_c57(tmp_path: Path) -> None:
    source = FakeSource()
    daemon = Daemon(tmp_path, health=QUICK, make_source=source.make)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: healthy(kubelet) == {"GPU-0", "GPU-1"} and source.watched)
        source.proofs["GPU-1"] = replace(source.proof("GPU-1"), row_remap_pending=True)
        source.events.put(xid(79 - 15, "GPU-1"))
        await until(lambda: healthy(kubelet) == {"GPU-0"})
        assert "unhealthy: GPU-1 (XID 64" in str(supervisor.not_ready)
        assert supervisor.states, "it is served all the same"
        del source.proofs["GPU-1"]
        await until(lambda: healthy(kubelet) == {"GPU-0", "GPU-1"} and supervisor.not_ready is None)
        assert lists(kubelet.plugins[0]) == [
            {"GPU-0": True, "GPU-1": True},
            {"GPU-0": True, "GPU-1": False},
            {"GPU-0": True, "GPU-1": True},
        ]
        assert len(kubelet.requests) == 1
    assert source.closed.wait(10)


async def test_all_replicas_of_a_gpu_are_unhealthy_case_c55(tmp_path: Path) -> None:
    source = FakeSource()
    config = tmp_path / "config.yaml"
    config.write_text("{version: v1, sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}}")
    daemon = Daemon(tmp_path, health=LASTING, make_source=source.make, config_file=str(config))
    async with FakeKubelet(tmp_path) as kubelet, daemon.running():
        await until(lambda: len(healthy(kubelet)) == 8 and source.watched)
        source.events.put(xid(79, "GPU-0"))
        await until(lambda: healthy(kubelet) == {f"GPU-1::{number}" for number in range(4)})


async def test_of_mig_devices_only_the_one_that_is_named_case_c55(tmp_path: Path) -> None:
    source = FakeSource()
    found = node(gpu(0), gpu(1, mig_devices=3))
    daemon = Daemon(tmp_path, found, health=LASTING, make_source=source.make, mig_strategy="mixed")
    async with FakeKubelet(tmp_path) as kubelet, daemon.running():
        await until(lambda: len(healthy(kubelet, MIG)) == 3 and source.watched)
        source.events.put(xid(62, "GPU-1", 8, 0))
        await until(lambda: healthy(kubelet, MIG) == {"MIG-1-0", "MIG-1-2"})
        source.events.put(xid(62, "GPU-1"))
        await until(lambda: healthy(kubelet, MIG) == set())
        assert healthy(kubelet) == {"GPU-0"}


async def test_what_is_unhealthy_stays_so_through_rescan_reload_and_kubelets_restart_case_c62(tmp_path: Path) -> None:
    source = FakeSource()
    daemon = Daemon(tmp_path, health=LASTING, make_source=source.make, held=[])
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and source.watched)
        source.events.put(xid(79, "GPU-0"))
        await until(lambda: healthy(kubelet) == {"GPU-1"})
        daemon.reader.answer = node(gpu(0), gpu(1), gpu(2))
        supervisor.rescan()
        await until(lambda: healthy(kubelet) == {"GPU-1", "GPU-2"})
        daemon.flags["mig_strategy"] = "mixed"
        supervisor.reload()
        await until(lambda: ("GPU-0", "GPU-1", "GPU-2") in source.watched)
        await kubelet.restart()
        await until(lambda: healthy(kubelet) == {"GPU-1", "GPU-2"})
        assert all(not each.get("GPU-0", False) for each in lists(kubelet.plugins[-1]))


async def test_only_gpus_that_are_ours_are_watched_case_c34(tmp_path: Path) -> None:
    source = FakeSource()
    daemon = Daemon(tmp_path, health=LASTING, make_source=source.make, exclude_gpus="0")
    async with FakeKubelet(tmp_path) as kubelet, daemon.running():
        await until(lambda: kubelet.live(GPU) and source.watched)
        assert source.watched == [("GPU-1",)]


async def test_a_monitor_that_cannot_watch_makes_everything_unhealthy_until_it_can_case_c58(tmp_path: Path) -> None:
    source = FakeSource()
    source.broken = True
    daemon = Daemon(tmp_path, health=QUICK, make_source=source.make)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and healthy(kubelet) == set())
        assert "health is not watched: " in str(supervisor.not_ready)
        assert "NVML is broken" in str(supervisor.not_ready)
        assert supervisor.states == {GPU: "streaming"}
        source.broken = False
        await until(lambda: healthy(kubelet) == {"GPU-0", "GPU-1"} and supervisor.not_ready is None)


async def test_a_source_that_cannot_be_made_is_tried_again_with_the_next_rescan_case_c58(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = FakeSource()
    broken = True

    def make(config: Config) -> HealthSource:
        if broken:
            raise OSError("no library")
        return source.make(config)

    daemon = Daemon(tmp_path, health=LASTING, make_source=make)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and healthy(kubelet) == set())
        assert "the monitor failed with OSError('no library')" in str(supervisor.not_ready)
        assert "the health monitor cannot start" in caplog.text
        broken = False
        supervisor.rescan()
        await until(lambda: healthy(kubelet) == {"GPU-0", "GPU-1"} and supervisor.not_ready is None)


async def test_a_monitor_that_crashes_is_begun_anew_and_what_was_known_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FakeSource()
    daemon = Daemon(tmp_path, health=LASTING, make_source=source.make)
    run = HealthMonitor.run
    crash = asyncio.Event()

    async def crashing(monitor: HealthMonitor) -> None:
        running = asyncio.create_task(run(monitor))
        try:
            await crash.wait()
        finally:
            running.cancel()
        raise ZeroDivisionError

    monkeypatch.setattr(HealthMonitor, "run", crashing)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and source.watched)
        source.events.put(xid(79, "GPU-0"))
        await until(lambda: healthy(kubelet) == {"GPU-1"})
        crash.set()
        await until(lambda: healthy(kubelet) == set())
        assert "the monitor failed with ZeroDivisionError()" in str(supervisor.not_ready)
        monkeypatch.setattr(HealthMonitor, "run", run)
        supervisor.rescan()
        await until(lambda: healthy(kubelet) == {"GPU-1"})
        assert "unhealthy: GPU-0 (XID 79" in str(supervisor.not_ready)
        assert len(kubelet.requests) == 1


async def test_where_health_checks_are_off_nothing_is_watched(tmp_path: Path) -> None:
    source = FakeSource()
    daemon = Daemon(tmp_path, make_source=source.make)
    switches, _ = read_switches({"DP_DISABLE_HEALTHCHECKS": "all"})
    off = replace(daemon.load(), config=replace(daemon.load().config, xid_switches=switches))
    daemon.supervisor._load_config = lambda: off
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and supervisor.not_ready is None)
        await asyncio.sleep(10 * SHORT.poll)
        assert source.watched == []


async def test_health_is_not_watched_where_devices_are_not_nvmls(tmp_path: Path) -> None:
    source = FakeSource()
    daemon = Daemon(tmp_path, replace(node(gpu(0)), platform=Platform.TEGRA), make_source=source.make)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and supervisor.not_ready is None)
        await asyncio.sleep(10 * SHORT.poll)
        assert source.watched == []


async def test_the_hold_of_an_unfit_gpu_is_counted_by_the_clock_of_the_daemon(tmp_path: Path) -> None:
    source, now = FakeSource(), 0.0
    held = replace(QUICK, recovery=RecoveryConfig(hold_time=3600.0))
    daemon = Daemon(tmp_path, health=held, make_source=source.make, clock=lambda: now + time.monotonic())
    async with FakeKubelet(tmp_path) as kubelet, daemon.running():
        await until(lambda: healthy(kubelet) == {"GPU-0", "GPU-1"} and source.watched)
        source.events.put(xid(62, "GPU-1"))
        await until(lambda: healthy(kubelet) == {"GPU-0"} and len(source.asked) > 1)
        now = 7200.0
        await until(lambda: healthy(kubelet) == {"GPU-0", "GPU-1"})
