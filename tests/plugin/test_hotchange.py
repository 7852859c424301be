"""The node changes under a running daemon: it is read again, and kubelet is told, without a new registration."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gpustow.config.health import HealthConfig
from gpustow.errors import ConfigError, HardwareError, Problem
from gpustow.hardware.node import Node
from gpustow.plugin.observer import PluginState
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, MIG, SHORT, gpu, node, our_sockets

SELDOM = HealthConfig(rescan_interval=None)
OFTEN = HealthConfig(rescan_interval=0.02)


async def some_polls() -> None:
    await asyncio.sleep(10 * SHORT.poll)


def listed(kubelet: FakeKubelet, resource: str = GPU) -> dict[str, bool]:
    """The list of the live plugin of a resource: which devices are healthy."""
    plugins = kubelet.live(resource)
    return {device.ID: device.health == "Healthy" for device in plugins[-1].lists[-1]} if plugins else {}


def both(*, mig_devices: int = 2) -> Node:
    return node(gpu(0), gpu(1, mig_devices=mig_devices))


async def test_the_node_is_read_again_at_intervals(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, node(gpu(0)), health=OFTEN)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running():
        await until(lambda: listed(kubelet) == {"GPU-0": True})
        daemon.reader.answer = node(gpu(0), gpu(1))
        await until(lambda: listed(kubelet) == {"GPU-0": True, "GPU-1": True})
        assert len(kubelet.requests) == 1
        reads = daemon.reader.reads
        await until(lambda: daemon.reader.reads > reads + 3)
        assert [len(each.lists) for each in kubelet.plugins] == [2], "what has not changed is not sent"


async def test_the_node_is_read_again_when_its_device_nodes_change(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, node(gpu(0)), health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running():
        await until(lambda: listed(kubelet))
        await some_polls()
        assert daemon.reader.reads == 1
        daemon.reader.answer = node(gpu(0), gpu(1))
        daemon.traces = "another"
        await until(lambda: len(listed(kubelet)) == 2)
        await some_polls()
        assert daemon.reader.reads == 2


async def test_device_nodes_that_cannot_be_looked_at_do_not_stop_the_daemon(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    daemon = Daemon(tmp_path, node(gpu(0)), health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))

        def fail(_config: object) -> None:
            raise OSError("too many open files")

        supervisor._lookout._traces = fail
        await until(lambda: "cannot be looked at" in caplog.text)
        supervisor.rescan()
        await until(lambda: daemon.reader.reads == 2)


async def test_mig_devices_that_go_and_come_leave_the_others_alone_case_c24(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    daemon = Daemon(tmp_path, both(), mig_strategy="mixed", held=[(MIG, "MIG-1-0")], health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet) and listed(kubelet, MIG))
        fewer = gpu(1, mig_devices=3)
        daemon.reader.answer = node(gpu(0), replace(fewer, mig_devices=fewer.mig_devices[2:]))
        supervisor.rescan()
        await until(lambda: listed(kubelet, MIG) == {"MIG-1-0": False, "MIG-1-2": True})
        assert "GPU 1: 2 x 1g.10gb -> 1 x 1g.10gb" in caplog.text
        assert supervisor.not_ready is None, "the card is there: its layout is the operator's"
        daemon.held.clear()
        await until(lambda: daemon.lists)
        supervisor._serving.usage.changed()
        await until(lambda: listed(kubelet, MIG) == {"MIG-1-2": True})
        assert sorted(request.resource_name for request in kubelet.requests) == [GPU, MIG]
        assert [len(each.lists) for each in kubelet.plugins if each.request.resource_name == GPU] == [1]


async def test_a_resource_that_goes_sends_an_empty_list_once_nothing_of_it_is_held_case_c18(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, both(), mig_strategy="mixed", held=[(MIG, "MIG-1-0")], health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet) and listed(kubelet, MIG))
        (mig,) = kubelet.live(MIG)
        daemon.reader.answer = node(gpu(0), gpu(1))
        supervisor.rescan()
        await until(lambda: listed(kubelet) == {"GPU-0": True, "GPU-1": True})
        await until(lambda: listed(kubelet, MIG) == {"MIG-1-0": False})
        assert not mig.ended
        daemon.held.clear()
        supervisor._serving.usage.changed()
        await until(lambda: mig.ended)
        assert [len(each) for each in mig.lists] == [2, 2, 1, 0]
        await until(lambda: supervisor.states == {GPU: PluginState.STREAMING})
        assert len(our_sockets(tmp_path)) == 1


async def test_without_kubelets_word_what_is_gone_stays(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, node(gpu(0), gpu(1)), health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))
        daemon.reader.answer = node(gpu(0))
        supervisor.rescan()
        await until(lambda: listed(kubelet) == {"GPU-0": True, "GPU-1": False})
        await some_polls()
        assert listed(kubelet) == {"GPU-0": True, "GPU-1": False}
        assert "unhealthy: GPU-1 (it is not found any more)" in str(supervisor.not_ready)


async def test_a_gpu_that_is_lost_is_unhealthy_and_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    daemon = Daemon(tmp_path, node(gpu(0), gpu(1)), held=[], health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))
        daemon.reader.answer = replace(node(gpu(0)), unreadable=(1,), notes=("GPU 1 is lost: it is left out",))
        supervisor.rescan()
        await until(lambda: listed(kubelet) == {"GPU-0": True, "GPU-1": False})
        await until(lambda: daemon.lists)
        await some_polls()
        assert listed(kubelet) == {"GPU-0": True, "GPU-1": False}
        assert "unhealthy: GPU-1 (its GPU is lost or cannot be read)" in str(supervisor.not_ready)
        daemon.reader.answer = node(gpu(0), gpu(1))
        supervisor.rescan()
        await until(lambda: listed(kubelet) == {"GPU-0": True, "GPU-1": True} and supervisor.not_ready is None)
        assert len(kubelet.requests) == 1
    assert "GPU 1 (GPU-1) is gone" in caplog.text
    assert f"{GPU}: unhealthy until its GPU can be read again: GPU-1" in caplog.text
    assert "as long as a container may hold it" not in caplog.text
    assert "GPU 1 (GPU-1) is back" in caplog.text


async def test_a_driver_that_cannot_be_read_leaves_what_runs_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    daemon = Daemon(tmp_path, health=OFTEN, fail_on_init_error=True)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))
        daemon.reader.answer = HardwareError("the driver is gone")
        await until(lambda: "what was found before goes on: the driver is gone" in str(supervisor.not_ready))
        reads = daemon.reader.reads
        await until(lambda: daemon.reader.reads > reads + 3)
        assert caplog.text.count("the driver is gone") == 1
        assert listed(kubelet) == {"GPU-0": True, "GPU-1": True}
        daemon.reader.answer = node(gpu(0), gpu(1))
        await until(lambda: supervisor.not_ready is None)
        assert "the node can be read, and what it has is served" in caplog.text
        assert [len(each.lists) for each in kubelet.plugins] == [1]


async def test_a_driver_that_hangs_leaves_what_runs_and_is_asked_again_once_it_answers(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, health=SELDOM, timing=replace(SHORT, reading=0.05))
    release = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))
        read = daemon.reader.read

        def hang() -> Node:
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
            return read()

        daemon.reader.read = hang  # type: ignore[method-assign] # until it is released
        supervisor.rescan()
        await until(lambda: "the driver has not answered for 0.05 s" in str(supervisor.not_ready))
        supervisor.reload()
        await until(lambda: "the reload is refused" in str(supervisor.not_ready))
        await kubelet.restart()
        await until(lambda: listed(kubelet) == {"GPU-0": True, "GPU-1": True})
        daemon.reader.read = read  # type: ignore[method-assign] # as it was
        release.set()
        await until(lambda: supervisor.not_ready is None)


async def test_a_node_that_loses_all_its_gpus_is_not_ready_and_waits_for_others_case_c26(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, held=[], health=OFTEN, fail_on_init_error=True)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))
        daemon.reader.answer = node()
        await until(lambda: supervisor.states == {} and kubelet.plugins[0].ended)
        assert [len(each) for each in kubelet.plugins[0].lists] == [2, 2, 0]
        assert "has no devices to serve" in str(supervisor.not_ready)
        daemon.reader.answer = node(gpu(2))
        await until(lambda: listed(kubelet) == {"GPU-2": True} and supervisor.not_ready is None)


async def test_a_node_that_does_not_go_with_the_configuration_any_more_is_served_without_what_is_gone(
    tmp_path: Path,
) -> None:
    cut = node(gpu(0, mig_devices=2), gpu(1, mig_devices=2))
    daemon = Daemon(tmp_path, cut, mig_strategy="single", held=[], health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: len(listed(kubelet)) == 4)
        daemon.reader.answer = node(gpu(0, mig_devices=1), gpu(1))
        supervisor.rescan()
        expected = {"MIG-0-0": True, "MIG-0-1": False, "MIG-1-0": False, "MIG-1-1": False}
        await until(lambda: listed(kubelet) == expected)
        assert "the node has changed, and what was found before goes on: MIG strategy single" in str(
            supervisor.not_ready
        )
        daemon.reader.answer = node(gpu(0, mig_devices=1), gpu(1, mig_devices=1))
        supervisor.rescan()
        await until(lambda: listed(kubelet) == {"MIG-0-0": True, "MIG-1-0": True} and supervisor.not_ready is None)
        assert len(kubelet.requests) == 1


async def test_a_reload_that_is_refused_is_tried_again_with_each_rescan(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    daemon = Daemon(tmp_path, node(gpu(0), gpu(1)), held=[], health=OFTEN)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))
        daemon.flags["mig_strategy"] = "single"
        daemon.reader.answer = both()
        supervisor.reload()
        await until(lambda: "the reload is refused" in str(supervisor.not_ready))
        assert "unhealthy" not in str(supervisor.not_ready)
        reads = daemon.reader.reads
        await until(lambda: daemon.reader.reads > reads + 6)
        assert caplog.text.count("the reload is refused") == 1
        assert caplog.text.count("reloading") == 1
        daemon.reader.answer = node(gpu(0, mig_devices=1), gpu(1, mig_devices=1))
        await until(lambda: listed(kubelet) == {"MIG-0-0": True, "MIG-1-0": True} and supervisor.not_ready is None)


def config_file(path: Path, replicas: int | None) -> None:
    sharing = f", sharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: {replicas}}}]}}}}"
    path.write_text(f"{{version: v1{sharing if replicas else ''}}}")


async def test_another_content_of_the_configuration_file_is_a_reload_case_c17(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    config_file(path, 8)
    daemon = Daemon(tmp_path, node(gpu(0), gpu(1)), held=[], health=SELDOM, config_file=str(path))
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: len(listed(kubelet)) == 16)
        lists = kubelet.plugins[0].lists
        config_file(path, 4)
        await until(lambda: len(listed(kubelet)) == 8 and supervisor.not_ready is None)
        assert min(sum(device.health == "Healthy" for device in each) for each in lists) == 8
        reads = daemon.reader.reads
        path.write_text(path.read_text())
        await some_polls()
        assert daemon.reader.reads == reads, "the same bytes are no change"
        path.write_text("version: [")
        await until(lambda: "the reload is refused" in str(supervisor.not_ready))
        assert len(listed(kubelet)) == 8
        config_file(path, 4)
        await until(lambda: supervisor.not_ready is None)
        assert len(kubelet.requests) == 1


async def test_a_file_that_is_as_before_soon_after_it_was_refused_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    config_file(path, 4)
    timing = replace(SHORT, look=0.5)
    daemon = Daemon(tmp_path, node(gpu(0)), held=[], health=SELDOM, timing=timing, config_file=str(path))
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: len(listed(kubelet)) == 4 and supervisor.not_ready is None)
        path.write_text("version: [")
        supervisor.reload()
        await until(lambda: "the reload is refused" in str(supervisor.not_ready))
        config_file(path, 4)
        await until(lambda: supervisor.not_ready is None)


@pytest.mark.parametrize(("before", "after"), [(8, 4), (4, 8), (None, 3), (3, None), (5, 5)])
async def test_allocatable_never_falls_below_the_smaller_of_old_and_new_case_c17(
    tmp_path: Path, before: int | None, after: int | None
) -> None:
    path = tmp_path / "config.yaml"
    config_file(path, before)
    daemon = Daemon(tmp_path, node(gpu(0), gpu(1)), held=[], health=SELDOM, config_file=str(path))
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: len(listed(kubelet)) == 2 * (before or 1))
        for replicas in (after, before, after):
            config_file(path, replicas)
            supervisor.reload()
            await until(partial(_has, kubelet, 2 * (replicas or 1)))
        least = 2 * min(before or 1, after or 1)
        sent = [sum(device.health == "Healthy" for device in each) for each in kubelet.plugins[0].lists]
        assert min(sent) >= least
        assert len(kubelet.requests) == 1


def _has(kubelet: FakeKubelet, number: int) -> bool:
    return len(listed(kubelet)) == number and all(listed(kubelet).values())


def bad(daemon: Daemon) -> None:
    daemon.config_error = ConfigError("f", [Problem("p", "m")])


def broken(daemon: Daemon) -> None:
    daemon.config_error = ZeroDivisionError("a fault of ours")


@pytest.mark.parametrize("spoil", [bad, broken])
async def test_a_reload_that_does_not_work_reads_the_node_nevertheless(
    tmp_path: Path, spoil: Callable[[Daemon], None]
) -> None:
    daemon = Daemon(tmp_path, node(gpu(0)), health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))
        spoil(daemon)
        daemon.reader.answer = node(gpu(0), gpu(1))
        supervisor.reload()
        await until(lambda: listed(kubelet) == {"GPU-0": True, "GPU-1": True})
        assert "what ran before goes on" in str(supervisor.not_ready)


async def test_what_is_told_with_a_survey_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    daemon = Daemon(tmp_path, replace(node(gpu(0)), notes=("GPU 5 is odd",)), health=OFTEN)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running():
        await until(lambda: listed(kubelet))
        daemon.reader.answer = replace(node(gpu(0)), notes=("GPU 5 is odd", "GPU 6 too"))
        await until(lambda: "GPU 6 too" in caplog.text)
    assert caplog.text.count("GPU 5 is odd") == 1
    assert caplog.text.count(f"{GPU}: 1 device on 1 GPU") == 1


async def test_a_fault_of_ours_in_a_rescan_leaves_what_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    daemon = Daemon(tmp_path, health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))
        daemon.reader.answer = ZeroDivisionError("a fault of ours")
        supervisor.rescan()
        await until(lambda: "a fault of ours" in str(supervisor.not_ready))
        assert "ZeroDivisionError" in caplog.text
        daemon.reader.answer = node(gpu(0), gpu(1))
        supervisor.rescan()
        await until(lambda: supervisor.not_ready is None)
        assert len(kubelet.requests) == 1


async def test_an_observer_is_told_of_reloads_and_surveys(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))
        supervisor.reload()
        await until(lambda: daemon.recorder.reloads)
        bad(daemon)
        daemon.reader.answer = HardwareError("no driver")
        supervisor.reload()
        await until(lambda: len(daemon.recorder.surveys) == 3)
    good, refusal = daemon.recorder.reloads
    assert good is None
    assert "the reload is refused" in str(refusal)
    assert daemon.recorder.surveys[:2] == [None, None]
    assert "no driver" in str(daemon.recorder.surveys[2])


@pytest.mark.parametrize("spoil", [bad, broken, lambda daemon: setattr(daemon.reader, "answer", HardwareError("gone"))])
async def test_what_has_failed_is_tried_again_even_without_rescans(
    tmp_path: Path, spoil: Callable[[Daemon], None]
) -> None:
    daemon = Daemon(tmp_path, health=SELDOM)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: listed(kubelet))
        spoil(daemon)
        supervisor.reload()
        await until(lambda: "goes on" in str(supervisor.not_ready))
        daemon.config_error = None
        daemon.reader.answer = node(gpu(0), gpu(1))
        await until(lambda: supervisor.not_ready is None)
        reads = daemon.reader.reads
        await some_polls()
        assert daemon.reader.reads == reads
