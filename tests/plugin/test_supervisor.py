import ast
import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gpustow import plugin
from gpustow.config import Config, LoadedConfig
from gpustow.errors import (
    ApiVersionRefused,
    ConfigError,
    HardwareError,
    KubeletDirectoryError,
    NoDevicesError,
    Problem,
)
from gpustow.hardware.node import Node, NodeReader
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import RegisterRequest
from gpustow.plugin.observer import PluginState
from gpustow.plugin.occupancy import NodeUsage
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.kubelet.samples import abandon, names
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, MIG, SHORT, gpu, loaded, node, our_sockets


async def some_polls() -> None:
    await asyncio.sleep(10 * SHORT.poll)


async def test_each_resource_is_registered_and_stop_removes_only_our_sockets(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, node(gpu(0), gpu(1, mig_devices=2)), mig_strategy="mixed")
    (tmp_path / "kubelet_internal_checkpoint").write_text("{}")
    async with FakeKubelet(tmp_path) as kubelet:
        abandon(tmp_path / "nvidia-gpu.sock")
        async with daemon.running() as supervisor:
            assert supervisor.not_ready
            await until(lambda: supervisor.not_ready is None)
            await until(lambda: kubelet.live(GPU) and kubelet.live(MIG))
            assert supervisor.states == {GPU: PluginState.STREAMING, MIG: PluginState.STREAMING}
            assert len(our_sockets(tmp_path)) == 2
        assert supervisor.not_ready == "it has ended"
        assert names(tmp_path) == ["kubelet.sock", "kubelet_internal_checkpoint", "nvidia-gpu.sock"]


async def test_sockets_that_a_killed_instance_left_are_removed_at_the_start(tmp_path: Path) -> None:
    abandon(tmp_path / "gpustow-gpu-0123456789.sock")
    async with Daemon(tmp_path).running() as supervisor:
        await until(lambda: "waits for kubelet" in str(supervisor.not_ready))
        assert our_sockets(tmp_path) == []


async def test_stop_before_and_during_everything_ends_it(tmp_path: Path) -> None:
    early = Daemon(tmp_path)
    early.supervisor.stop()
    await early.supervisor.run()
    release = threading.Event()
    stuck = Daemon(tmp_path)

    def hang() -> LoadedConfig:
        release.wait()
        return loaded()

    stuck.supervisor._load_config = hang
    async with stuck.running():
        await until(lambda: any(thread.name == "read configuration" for thread in threading.enumerate()))
    release.set()


async def test_a_cancelled_supervisor_removes_its_sockets_too(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    async with FakeKubelet(tmp_path) as kubelet:
        task = asyncio.create_task(daemon.supervisor.run())
        await until(lambda: kubelet.live(GPU))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert our_sockets(tmp_path) == []


@pytest.mark.parametrize("error", [ConfigError("f", [Problem("p", "m")]), ZeroDivisionError("a fault of ours")])
async def test_an_error_at_the_start_is_raised_as_it_is(tmp_path: Path, error: Exception) -> None:
    daemon = Daemon(tmp_path)
    daemon.config_error = error
    with pytest.raises(type(error)) as raised:
        await daemon.supervisor.run()
    assert raised.value is error


async def test_a_missing_directory_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(KubeletDirectoryError, match="does not exist"):
        await Daemon(tmp_path / "missing").supervisor.run()


async def test_without_a_kubelet_socket_a_missing_default_directory_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(KubeletDirectoryError, match="does not exist") as raised:
        await Daemon(tmp_path / "missing", kubelet_socket="").supervisor.run()
    assert raised.value.directory == str(tmp_path / "missing")
    assert "nobody is registered with, and the sockets lie in this directory by default" in str(raised.value)
    assert "or set --kubelet-socket" not in str(raised.value)


@pytest.mark.parametrize(("answer", "error"), [(node(), NoDevicesError), (HardwareError("no driver"), HardwareError)])
async def test_nothing_to_serve_ends_it_if_the_operator_asked_for_that(
    tmp_path: Path, answer: Node | Exception, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await Daemon(tmp_path, answer, fail_on_init_error=True).supervisor.run()


@pytest.mark.parametrize(
    ("answer", "told"), [(node(), "has no devices to serve"), (HardwareError("no driver"), "no driver")]
)
async def test_otherwise_it_stays_not_ready_and_looks_again_until_there_is_something(
    tmp_path: Path, answer: Node | Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    daemon = Daemon(tmp_path, answer, fail_on_init_error=False)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: daemon.reader.reads >= 3)
        assert told in str(supervisor.not_ready)
        assert caplog.text.count(told) == 1
        daemon.reader.answer = node(gpu(0))
        await until(lambda: kubelet.live(GPU) and supervisor.not_ready is None)


async def test_a_reload_while_there_is_nothing_takes_the_new_configuration(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, HardwareError("no driver"), fail_on_init_error=False)
    other = tmp_path / "other"
    other.mkdir()
    async with FakeKubelet(other) as kubelet, daemon.running() as supervisor:
        await until(lambda: supervisor.not_ready == "no driver")
        daemon.flags["kubelet_socket"] = str(other / "kubelet.sock")
        supervisor.reload()
        await some_polls()
        daemon.reader.answer = node(gpu(0))
        await until(lambda: kubelet.live(GPU))


async def test_without_a_kubelet_socket_it_serves_in_the_default_directory(tmp_path: Path) -> None:
    async with Daemon(tmp_path, kubelet_socket="").running() as supervisor:
        await until(lambda: supervisor.not_ready is None)
        assert len(our_sockets(tmp_path)) == 1


def has_read_more(daemon: Daemon, reads: int) -> bool:
    return daemon.reader.reads > reads


async def test_a_reload_that_changes_nothing_touches_nothing(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU))
        for _ in range(3):
            reads = daemon.reader.reads
            supervisor.reload()
            await until(partial(has_read_more, daemon, reads))
        await some_polls()
        assert len(kubelet.requests) == 1
        assert [len(each.lists) for each in kubelet.plugins] == [1]


async def test_a_reload_tells_kubelet_of_new_devices_without_a_new_registration(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU))
        daemon.reader.answer = node(gpu(0), gpu(1), gpu(2))
        supervisor.reload()
        await until(lambda: kubelet.plugins[0].healthy == {"GPU-0", "GPU-1", "GPU-2"})
        assert len(kubelet.requests) == 1


async def test_a_reload_that_changes_the_resources_retires_what_goes_and_leaves_what_stays(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, node(gpu(0), gpu(1, mig_devices=2)), mig_strategy="mixed", held=[])
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and kubelet.live(MIG))
        daemon.reader.answer = node(gpu(0), gpu(1))
        supervisor.reload()
        await until(lambda: not kubelet.live(MIG))
        mig = next(plugin for plugin in kubelet.plugins if plugin.request.resource_name == MIG)
        assert [[device.health for device in each] for each in mig.lists] == [["Healthy"] * 2, ["Unhealthy"] * 2, []]
        await until(lambda: len(our_sockets(tmp_path)) == 1)
        assert supervisor.states == {GPU: PluginState.STREAMING}
        daemon.reader.answer = node(gpu(0), gpu(1, mig_devices=3))
        supervisor.reload()
        await until(lambda: kubelet.live(MIG))
        assert [request.resource_name for request in kubelet.requests].count(GPU) == 1


async def test_a_name_that_goes_and_comes_back_waits_until_kubelet_has_noticed_or_is_another_one(
    tmp_path: Path,
) -> None:
    with_mig, without = node(gpu(0), gpu(1, mig_devices=2)), node(gpu(0), gpu(1))
    timing = replace(SHORT, retry_first=600, retry_most=600)
    daemon = Daemon(tmp_path, with_mig, mig_strategy="mixed", timing=timing, held=[])
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and kubelet.live(MIG))
        daemon.reader.answer = without
        supervisor.reload()
        await until(lambda: supervisor.states == {GPU: PluginState.STREAMING})
        daemon.reader.answer = with_mig
        supervisor.reload()
        await until(lambda: "it waits for kubelet to notice that it was retired" in str(supervisor.not_ready))
        await some_polls()
        assert [request.resource_name for request in kubelet.requests].count(MIG) == 1
        assert len(our_sockets(tmp_path)) == 1
        await kubelet.restart()
        await until(lambda: kubelet.live(GPU) and kubelet.live(MIG))


async def test_a_reload_to_another_directory_moves_everything_there(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    daemon = Daemon(first)
    async with FakeKubelet(first) as old, FakeKubelet(second) as new, daemon.running() as supervisor:
        await until(lambda: old.live(GPU))
        abandon(second / "gpustow-gpu-0123456789.sock")
        daemon.flags["kubelet_socket"] = str(second / "kubelet.sock")
        supervisor.reload()
        await until(lambda: new.live(GPU))
        assert our_sockets(first) == []
        assert len(our_sockets(second)) == 1


def bad_config(daemon: Daemon) -> None:
    daemon.config_error = ConfigError("config.yaml", [Problem("flags", "is not a map")])


def broken_loader(daemon: Daemon) -> None:
    daemon.config_error = ZeroDivisionError("a fault of ours")


def bad_directory(daemon: Daemon) -> None:
    daemon.flags["kubelet_socket"] = "/nowhere/at/all/kubelet.sock"


def lost_driver(daemon: Daemon) -> None:
    daemon.reader.answer = HardwareError("the driver is gone")


@pytest.mark.parametrize("spoil", [bad_config, broken_loader, bad_directory, lost_driver])
async def test_a_bad_reload_leaves_the_old_running_but_not_ready_until_a_reload_works(
    tmp_path: Path, spoil: Callable[[Daemon], None], caplog: pytest.LogCaptureFixture
) -> None:
    daemon = Daemon(tmp_path, held=[])
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU))
        spoil(daemon)
        supervisor.reload()
        await until(lambda: "what ran before goes on" in caplog.text)
        await some_polls()
        assert "what ran before goes on: " in str(supervisor.not_ready)
        assert supervisor.states == {GPU: PluginState.STREAMING}
        assert len(kubelet.requests) == 1
        daemon.config_error = None
        daemon.flags["kubelet_socket"] = str(kubelet.socket)
        daemon.reader.answer = node(gpu(3))
        supervisor.reload()
        await until(lambda: kubelet.plugins[0].healthy == {"GPU-3"} and supervisor.not_ready is None)


async def test_a_name_that_kubelet_refuses_does_not_disturb_the_others_and_is_tried_at_the_next_reload(
    tmp_path: Path,
) -> None:
    async def refuse_mig(request: RegisterRequest) -> str | None:
        return f'the ResourceName "{MIG}" is invalid' if request.resource_name == MIG else None

    daemon = Daemon(tmp_path, node(gpu(0), gpu(1, mig_devices=2)), mig_strategy="mixed")
    kubelet = FakeKubelet(tmp_path)
    kubelet.refusal = refuse_mig
    async with kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and supervisor.states[MIG] is PluginState.REFUSED)
        assert "is invalid" in str(supervisor.not_ready)
        kubelet.refusal = None
        supervisor.reload()
        await until(lambda: kubelet.live(MIG))
        assert [request.resource_name for request in kubelet.requests].count(GPU) == 1


async def test_a_kubelet_that_does_not_know_our_api_version_ends_the_daemon(tmp_path: Path) -> None:
    async def refuse(_request: RegisterRequest) -> str:
        return 'requested API version "v1beta1" is not supported by kubelet'

    kubelet = FakeKubelet(tmp_path)
    kubelet.refusal = refuse
    async with kubelet:
        with pytest.raises(ApiVersionRefused) as error:
            await Daemon(tmp_path, node(gpu(0), gpu(1, mig_devices=2)), mig_strategy="mixed").supervisor.run()
    assert error.value.exit_code != 0
    assert our_sockets(tmp_path) == []


async def test_of_two_failures_in_one_moment_the_first_is_raised_and_the_other_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse_the_second(_request: RegisterRequest) -> str | None:
        return 'requested API version "v1beta1" is not supported by kubelet' if len(kubelet.requests) == 2 else None

    async def end_badly(_usage: NodeUsage, *_: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ZeroDivisionError

    monkeypatch.setattr(NodeUsage, "watch", end_badly)
    kubelet = FakeKubelet(tmp_path)
    kubelet.refusal = refuse_the_second
    async with kubelet:
        with pytest.raises(ApiVersionRefused):
            await Daemon(tmp_path, node(gpu(0), gpu(1, mig_devices=2)), mig_strategy="mixed").supervisor.run()
    assert "another failure in the same moment" in caplog.text


async def test_a_register_that_hangs_for_one_resource_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async def hang_for_mig(request: RegisterRequest) -> None:
        if request.resource_name == MIG:
            await asyncio.Event().wait()

    daemon = Daemon(tmp_path, node(gpu(0), gpu(1, mig_devices=2)), mig_strategy="mixed")
    kubelet = FakeKubelet(tmp_path)
    kubelet.refusal = hang_for_mig
    async with kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and supervisor.states[MIG] is PluginState.BOUND)
    assert our_sockets(tmp_path) == []


async def test_warnings_and_notes_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    daemon = Daemon(tmp_path, replace(node(gpu(0)), notes=("GPU 1 is lost",)))
    daemon.warnings = ("flags.plugin.mps is not known",)
    async with daemon.running() as supervisor:
        await until(lambda: supervisor.states)
    assert "GPU 1 is lost" in caplog.text
    assert "flags.plugin.mps is not known" in caplog.text


async def test_what_holds_is_logged_at_the_start_and_after_a_reload_that_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    daemon = Daemon(tmp_path)

    def told(words: str) -> int:
        return sum(words in record.getMessage() for record in caplog.records)

    async with daemon.running() as supervisor:
        await until(lambda: told(f"{GPU}: 2 devices on 2 GPUs") == 1)
        daemon.flags["mig_strategy"] = "mixed"
        daemon.reader.answer = HardwareError("the driver is gone")
        supervisor.reload()
        await until(lambda: told("the reload is refused"))
        assert told("migStrategy mixed") == 0
        daemon.reader.answer = node(gpu(0, mig_devices=3))
        supervisor.reload()
        await until(lambda: told(f"{MIG}: 3 devices on 1 GPU") == 1)
        supervisor.reload()
        await until(lambda: told("the configuration is the same") == 1)
    assert told("migStrategy none; ") == 1
    assert told("changed: flags.migStrategy: none -> mixed (from the flag)") == 1
    assert told("sharedDevicesAllocationPolicy") == 1, "the rest is told at the start alone"


async def test_each_reload_that_is_asked_for_is_answered_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    daemon = Daemon(tmp_path, held=[])

    def told(words: str) -> int:
        return sum(words in record.getMessage() for record in caplog.records)

    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and supervisor.not_ready is None)
        bad_config(daemon)
        supervisor.reload()
        await until(lambda: told("the reload is refused, and what ran before goes on: ") == 1)
        supervisor.reload()
        await until(lambda: told("refused again: the reload is refused") == 1)
        [again] = [each.getMessage() for each in caplog.records if "refused again" in each.getMessage()]
        assert again.endswith("configuration config.yaml is refused: flags: is not a map"), "it is one line"
        reads = daemon.reader.reads
        await until(lambda: daemon.reader.reads > reads + 2)
        assert told("refused") == 2, "retries that nobody asked for stay quiet"
        assert told("reloading") == 2
        daemon.config_error = None
        supervisor.reload()
        await until(lambda: told("the configuration is accepted, ready again") == 1)
        assert told("reloading") == 3
        bad_config(daemon)
        supervisor.reload()
        await until(lambda: told("the reload is refused, and what ran before goes on: ") == 3)
        supervisor.mark(lambda uuid: "XID 48" if uuid == "GPU-0" else None)
        daemon.config_error = None
        supervisor.reload()
        await until(lambda: told("the configuration is accepted, and still not ready: unhealthy: GPU-0 (XID 48)") == 1)


async def test_the_reader_is_made_for_the_configuration(tmp_path: Path) -> None:
    made: list[Config] = []
    daemon = Daemon(tmp_path)

    def make(config: Config) -> NodeReader:
        made.append(config)
        return daemon.reader

    daemon.supervisor._surveyor._make_reader = make
    async with daemon.running() as supervisor:
        await until(lambda: supervisor.states)
    assert [config.kubelet_socket for config in made] == [str(tmp_path / "kubelet.sock")]


@pytest.mark.parametrize("jump", [-1e9, 1e9])
async def test_a_clock_that_jumps_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    daemon = Daemon(tmp_path, held=[])
    now = time.time
    async with FakeKubelet(tmp_path) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU) and supervisor.not_ready is None)
        reads, lists = daemon.reader.reads, daemon.lists
        monkeypatch.setattr(time, "time", lambda: now() + jump)
        await some_polls()
        assert supervisor.not_ready is None
        assert len(kubelet.requests) == 1
        assert (daemon.reader.reads, daemon.lists) == (reads, lists)
        supervisor.reload()
        await until(lambda: daemon.reader.reads > reads)
        monkeypatch.undo()
        await some_polls()
        assert supervisor.not_ready is None
        assert len(kubelet.requests) == 1


ROOMS = ("plugin", "health", "kubelet", "placement", "hardware")


def test_whatever_waits_or_compares_times_uses_a_clock_that_only_goes_up() -> None:
    house = Path(plugin.__file__).parent.parent
    for path in (path for room in ROOMS for path in (house / room).rglob("*.py")):
        used = {
            f"{node.value.id}.{node.attr}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        assert not used & {"time.time", "time.time_ns", "datetime.now", "time.localtime", "time.gmtime"}, path
