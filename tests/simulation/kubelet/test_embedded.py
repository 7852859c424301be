"""The whole of it over real sockets: a pod's way through kubelet, restarts, the node's and the pods' status."""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import grpc
import pytest

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.simulation.kubelet import (
    AdmissionError,
    AllocationError,
    Behaviour,
    Container,
    EmbeddedKubelet,
    Hint,
    Hints,
    KubeletDirectoryError,
    KubeletPanicError,
    Mask,
    Phase,
    Pod,
    PodStatus,
    ResourceStatus,
    TopologySettings,
    UsageError,
)
from gpustow.simulation.kubelet.sockets import Server, serve
from tests.simulation.kubelet.core import THING, FakeClock, seeded, wanting
from tests.simulation.kubelet.fakeplugin import FakePlugin, device, devices, until

OTHER = "example.com/other"

Make = Callable[..., EmbeddedKubelet]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def kubelet(directory: Path, random: Random, clock: FakeClock) -> EmbeddedKubelet:
    return EmbeddedKubelet(directory, random=random, clock=clock)


def plugin_for(kubelet: EmbeddedKubelet, names: str = "d0 d1", resource: str = THING) -> FakePlugin:
    return FakePlugin(
        resource, kubelet.plugin_directory, devices(names), endpoint=f"{resource.rpartition('/')[2]}.sock"
    )


async def back(kubelet: EmbeddedKubelet, plugin: FakePlugin, at_least: int) -> None:
    """The plugin serves and registers again, after a restart has removed its socket."""
    await plugin.stop()
    await plugin.serve()
    await plugin.register()
    await kubelet.wait_for(plugin.resource, at_least=at_least)


async def test_a_pod_gets_the_devices_that_the_plugin_prefers_and_its_answer(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet, "d0 d1 d2 d3")
        async with plugin:
            await kubelet.wait_for(THING, at_least=4)
            admitted = await kubelet.admit(wanting("a", 2))
    assert admitted.device_ids(THING) == ("d0", "d1")
    assert admitted.container("main").envs == {"DEVICES": "d0,d1"}
    assert plugin.preferences == [(("d0", "d1", "d2", "d3"), (), 2)]
    assert plugin.allocations == [("d0", "d1")]


async def test_everything_that_a_plugin_answers_reaches_the_container(kubelet: EmbeddedKubelet) -> None:
    answer = wire.ContainerAllocateResponse(
        envs={"K": "v"},
        mounts=[wire.Mount(container_path="/c", host_path="/h", read_only=True)],
        devices=[wire.DeviceSpec(container_path="/dev/c", host_path="/dev/h", permissions="rwm")],
        annotations={"note": "x"},
        cdi_devices=[wire.CDIDevice(name="v.io/c=0"), wire.CDIDevice(name="v.io/c=0")],
    )
    async with kubelet:
        plugin = plugin_for(kubelet)
        plugin.answer = lambda _: answer
        async with plugin:
            await kubelet.wait_for(THING)
            got = (await kubelet.admit(wanting("a", 1))).container("main")
    assert (got.envs, got.annotations, got.cdi_devices) == ({"K": "v"}, {"note": "x"}, ("v.io/c=0",))
    assert [(m.container_path, m.host_path, m.read_only) for m in got.mounts] == [("/c", "/h", True)]
    assert [(d.container_path, d.host_path, d.permissions) for d in got.devices] == [("/dev/c", "/dev/h", "rwm")]


async def test_a_uid_is_made_up_if_there_is_none(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        first = await kubelet.admit(Pod("a", containers=(Container("main"),)))
        second = await kubelet.admit(Pod("b", containers=(Container("main"),)))
        third = await kubelet.admit(Pod("c", containers=(Container("main"),), uid="mine"))
    assert first.pod.uid != second.pod.uid != ""
    assert third.pod.uid == "mine"


async def test_a_removed_pod_gives_its_devices_to_the_next_one(kubelet: EmbeddedKubelet) -> None:
    async with kubelet, plugin_for(kubelet):
        await kubelet.wait_for(THING, at_least=2)
        await kubelet.admit(wanting("a", 2))
        with pytest.raises(AdmissionError, match="Requested: 1, Available: 0"):
            await kubelet.admit(wanting("b", 1))
        kubelet.remove("default", "a")
        assert (await kubelet.admit(wanting("c", 2))).device_ids(THING) == ("d0", "d1")


async def test_a_finished_pod_gives_its_devices_to_the_next_one(kubelet: EmbeddedKubelet) -> None:
    async with kubelet, plugin_for(kubelet):
        await kubelet.wait_for(THING, at_least=2)
        await kubelet.admit(wanting("a", 2))
        kubelet.finish("default", "a")
        healthy = {"main": (ResourceStatus(THING, {"d0": "Healthy", "d1": "Healthy"}),)}
        assert kubelet.pod_status("default", "a") == PodStatus(Phase.SUCCEEDED, allocated_resources=healthy)
        with pytest.raises(UsageError, match="default/a has ended already"):
            kubelet.finish("default", "a")
        await kubelet.admit(wanting("b", 2))


async def test_a_refused_pod_has_failed_and_can_be_created_anew(kubelet: EmbeddedKubelet) -> None:
    async with kubelet, plugin_for(kubelet):
        await kubelet.wait_for(THING, at_least=2)
        with pytest.raises(AdmissionError) as refused:
            await kubelet.admit(wanting("a", 3))
        assert refused.value.pod == "default/a"
        status = kubelet.pod_status("default", "a")
        assert (status.phase, status.reason) == (Phase.FAILED, "UnexpectedAdmissionError")
        assert status.message == (
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
            f"{THING}. Requested: 3, Available: 2, which is unexpected"
        )
        await kubelet.admit(replace(wanting("a", 1), uid="another"))


async def test_a_pod_cannot_be_there_twice(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        await kubelet.admit(wanting("a", 1))
        with pytest.raises(UsageError, match="default/a is there already"):
            await kubelet.admit(wanting("a", 1))


async def test_an_allocate_that_does_not_answer_holds_up_every_pod(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        plugin.hold_allocate = asyncio.Event()
        async with plugin:
            await kubelet.wait_for(THING)
            stuck = asyncio.create_task(kubelet.admit(wanting("a", 1)))
            await until(lambda: plugin.allocations)
            other = asyncio.create_task(kubelet.admit(Pod("b", containers=(Container("main"),))))
            await asyncio.sleep(0.01)
            assert not other.done()
            with pytest.raises(UsageError, match="default/a is being admitted"):
                kubelet.remove("default", "a")
            plugin.hold_allocate.set()
            await stuck
            await other


async def test_a_container_can_start_while_an_admission_is_held_up(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        plugin.options = wire.DevicePluginOptions(pre_start_required=True)
        async with plugin:
            await kubelet.wait_for(THING)
            await kubelet.admit(wanting("a", 1))
            plugin.hold_allocate = asyncio.Event()
            stuck = asyncio.create_task(kubelet.admit(wanting("b", 1)))
            await until(lambda: len(plugin.allocations) == 2)
            edits = await kubelet.start_container("default", "a", "main")
            assert plugin.pre_starts == [plugin.allocations[0]]
            assert edits.envs == {"DEVICES": plugin.allocations[0][0]}
            plugin.hold_allocate.set()
            await stuck


async def test_a_start_of_an_unknown_container_is_a_key_error(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        await kubelet.admit(wanting("a", 1))
        for name, container in (("a", "other"), ("b", "main")):
            with pytest.raises(KeyError):
                await kubelet.start_container("default", name, container)


async def test_a_failed_start_leaves_the_pod_as_it_is(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        plugin.options = wire.DevicePluginOptions(pre_start_required=True)
        async with plugin:
            await kubelet.wait_for(THING)
            await kubelet.admit(wanting("a", 1))
            plugin.end_streams()
            await kubelet.wait_until(lambda: kubelet.allocatable() == {THING: 0})
            with pytest.raises(AllocationError, match="has been stopped"):
                await kubelet.start_container("default", "a", "main")
        assert kubelet.pod_status("default", "a").phase is Phase.RUNNING


async def test_the_capacity_of_a_lost_plugin_is_kept_for_five_minutes(
    kubelet: EmbeddedKubelet, clock: FakeClock
) -> None:
    async with kubelet:
        async with plugin_for(kubelet):
            await kubelet.wait_for(THING, at_least=2)
        await kubelet.wait_until(lambda: kubelet.allocatable() == {THING: 0})
        clock.now += 300
        assert kubelet.capacity() == {THING: 2}
        clock.now += 1
        assert kubelet.capacity() == {}


async def test_a_kubelet_that_is_down_writes_no_checkpoint(kubelet: EmbeddedKubelet, clock: FakeClock) -> None:
    checkpoint = kubelet.plugin_directory / "kubelet_internal_checkpoint"
    async with kubelet:
        async with plugin_for(kubelet):
            await kubelet.wait_for(THING)
        await kubelet.wait_until(lambda: kubelet.allocatable() == {THING: 0})
    before = checkpoint.read_text()
    clock.now += 301
    assert kubelet.capacity() == {}
    assert checkpoint.read_text() == before


async def test_the_node_status_lags_and_keeps_a_forgotten_resource_with_zero(
    kubelet: EmbeddedKubelet, clock: FakeClock
) -> None:
    async with kubelet:
        async with plugin_for(kubelet):
            await kubelet.wait_for(THING, at_least=2)
            clock.now += 10
            assert kubelet.node_status().allocatable == {THING: 2}
        await kubelet.wait_until(lambda: kubelet.allocatable() == {THING: 0})
        assert kubelet.node_status().allocatable == {THING: 2}
        clock.now += 10
        assert (kubelet.node_status().capacity, kubelet.node_status().allocatable) == ({THING: 2}, {THING: 0})
        clock.now += 301
        assert kubelet.node_status().capacity == {THING: 0}
        with pytest.raises(AdmissionError, match=f"OutOf{THING}"):
            await kubelet.admit(wanting("a", 1))


async def test_a_node_without_a_checkpoint_loses_what_an_administrator_has_set(directory: Path, random: Random) -> None:
    kubelet = EmbeddedKubelet(directory, random=random, node_resources={"example.com/dongle": 2})
    async with kubelet:
        assert kubelet.node_status().capacity == {"example.com/dongle": 0}


async def test_a_node_with_a_checkpoint_keeps_it(directory: Path, random: Random) -> None:
    async with EmbeddedKubelet(directory, random=random) as first, plugin_for(first):
        await first.wait_for(THING)
    async with EmbeddedKubelet(directory, random=random, node_resources={"example.com/dongle": 2}) as kubelet:
        assert kubelet.node_status().capacity == {"example.com/dongle": 2, THING: 0}


async def test_after_a_restart_the_plugin_registers_anew_and_pods_keep_their_devices(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        async with plugin:
            await kubelet.wait_for(THING, at_least=2)
            await kubelet.admit(wanting("a", 1))
            (again,) = await kubelet.restart()
            assert again.refusal is None
            assert not plugin.socket.exists()
            assert (kubelet.capacity(), kubelet.allocatable()) == ({THING: 0}, {THING: 0})
            await back(kubelet, plugin, 2)
            assert kubelet.pod("default", "a").container("main").envs == {"DEVICES": "d0"}
            assert (await kubelet.admit(wanting("b", 1))).device_ids(THING) == ("d1",)
            assert plugin.allocations == [("d0",), ("d1",)]


async def test_a_restart_breaks_the_streams_of_plugins(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        async with plugin:
            await kubelet.wait_for(THING)
            await kubelet.restart()
            await until(lambda: plugin.open_streams == 0)


async def test_pods_are_readmitted_in_the_order_of_their_creation(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        for name in "cab":
            await kubelet.admit(wanting(name, 1))
        kubelet.remove("default", "c")
        await kubelet.admit(wanting("c", 1))
        assert [again.pod.name for again in await kubelet.restart()] == ["a", "b", "c"]


async def test_the_stored_answer_is_used_after_a_restart_without_another_allocate(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        async with plugin:
            await kubelet.wait_for(THING)
            await kubelet.admit(wanting("a", 1))
            await kubelet.restart()
            edits = await kubelet.start_container("default", "a", "main")
            assert edits.envs == {"DEVICES": "d0"}
            assert len(plugin.allocations) == 1


async def test_without_its_checkpoint_kubelet_admits_a_running_pod_without_devices(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        async with plugin:
            await kubelet.wait_for(THING, at_least=2)
            await kubelet.admit(wanting("a", 1))
            await kubelet.stop()
            (kubelet.plugin_directory / "kubelet_internal_checkpoint").write_text("damaged")
            await kubelet.restart(readmit=False)
            await back(kubelet, plugin, 2)
            (again,) = await kubelet.readmit()
            assert again.refusal is None
            assert kubelet.pod("default", "a").device_ids(THING) == ()
            assert (await kubelet.admit(wanting("b", 1))).device_ids(THING) == ("d0",)
            edits = await kubelet.start_container("default", "a", "main")
            assert edits.envs == {"DEVICES": "d1"}


async def test_after_a_reboot_pods_fail_that_come_before_their_plugin(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        async with plugin_for(kubelet):
            await kubelet.wait_for(THING)
            await kubelet.admit(wanting("a", 1))
        (again,) = await kubelet.restart(reboot=True)
        assert again.refusal is not None
        assert "no healthy devices present" in again.refusal.status_message
        assert kubelet.pod_status("default", "a").phase is Phase.FAILED


async def test_after_a_reboot_pods_are_admitted_that_come_after_their_plugin(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        async with plugin:
            await kubelet.wait_for(THING)
            await kubelet.admit(wanting("a", 1))
            await kubelet.restart(reboot=True, readmit=False)
            await back(kubelet, plugin, 2)
            (again,) = await kubelet.readmit()
            assert again.refusal is None
            assert len(plugin.allocations) == 1
            (later,) = await kubelet.restart()
            assert later.refusal is None


async def test_pods_that_are_removed_while_others_are_readmitted_are_left_alone(
    directory: Path, random: Random
) -> None:
    cpus = Cpus()
    async with EmbeddedKubelet(directory, random=random, hint_providers=[cpus]) as kubelet:
        for name in ("a", "b"):
            await kubelet.admit(wanting(name, 1))
        await kubelet.restart(readmit=False)
        cpus.hold, cpus.refuse = asyncio.Event(), True
        readmission = asyncio.create_task(kubelet.readmit())
        await until(lambda: len(cpus.allocated) == 3)
        for name in ("a", "b"):
            kubelet.remove("default", name)
        cpus.hold.set()
        (first,) = await readmission
        assert first.refusal is not None
        with pytest.raises(KeyError):
            kubelet.pod_status("default", first.pod.name)


async def test_until_the_pods_are_readmitted_nobody_is_collected(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        async with plugin:
            await kubelet.wait_for(THING)
            await kubelet.admit(wanting("a", 2))
            await kubelet.restart(readmit=False)
            await back(kubelet, plugin, 2)
            kubelet.remove("default", "a")
            with pytest.raises(AdmissionError, match="Available: 0"):
                await kubelet.admit(wanting("b", 1))
            await kubelet.readmit()
            await kubelet.admit(replace(wanting("b", 1), uid="again"))


async def test_a_killed_kubelet_leaves_a_dead_socket_and_starts_over_it(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        await kubelet.stop(killed=True)
        assert kubelet.registration_socket.exists()
        await kubelet.start()
        async with plugin_for(kubelet):
            await kubelet.wait_for(THING)
    assert not kubelet.registration_socket.exists()


async def test_an_admission_that_a_restart_interrupts_starts_anew_after_it(directory: Path, random: Random) -> None:
    cpus = Cpus()
    kubelet = EmbeddedKubelet(directory, random=random, hint_providers=[cpus])
    async with kubelet:
        cpus.hold = asyncio.Event()
        admission = asyncio.create_task(kubelet.admit(Pod("a", containers=(Container("main"),))))
        await until(lambda: cpus.allocated)
        await kubelet.restart()
        cpus.hold.set()
        await admission
        assert cpus.allocated == ["main", "main"]
        assert kubelet.pod_status("default", "a").phase is Phase.RUNNING


async def test_and_it_is_refused_if_its_plugin_is_not_back(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        plugin.hold_allocate = asyncio.Event()
        async with plugin:
            await kubelet.wait_for(THING)
            admission = asyncio.create_task(kubelet.admit(wanting("a", 1)))
            await until(lambda: plugin.allocations)
            await kubelet.restart()
            plugin.hold_allocate.set()
            with pytest.raises(AdmissionError, match="no healthy devices present"):
                await admission


async def test_an_admission_during_a_restart_waits_for_it(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        restart = asyncio.create_task(kubelet.restart())
        second = asyncio.create_task(kubelet.restart(killed=True))
        await asyncio.sleep(0)
        admitted = await kubelet.admit(Pod("a", containers=(Container("main"),)))
        await restart
        await second
        assert kubelet.pod_status("default", "a").phase is Phase.RUNNING
        assert admitted.device_ids(THING) == ()


async def test_a_stop_during_a_restart_comes_after_it(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        restart = asyncio.create_task(kubelet.restart(readmit=False))
        await asyncio.sleep(0)
    await restart
    assert not kubelet.registration_socket.exists()


async def test_a_second_stop_returns_when_kubelet_has_stopped(kubelet: EmbeddedKubelet) -> None:
    await kubelet.start()
    first = asyncio.create_task(kubelet.stop(killed=True))
    await asyncio.sleep(0)
    await kubelet.stop()
    assert first.done()
    assert kubelet.registration_socket.is_socket()
    await kubelet.stop(killed=True)
    async with kubelet:
        assert kubelet.capacity() == {}


async def test_a_start_that_is_given_up_leaves_nothing_behind(
    kubelet: EmbeddedKubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve_or_hang(handler: grpc.GenericRpcHandler, path: Path) -> Server:
        if path == kubelet.registration_socket:
            await asyncio.Event().wait()
        return await serve(handler, path)

    monkeypatch.setattr("gpustow.simulation.kubelet.run.serve", serve_or_hang)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(kubelet.start(), 0.1)
    assert not kubelet.pod_resources_socket.exists()


async def test_an_admission_that_a_stop_interrupts_ends_with_an_error(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        plugin.hold_allocate = asyncio.Event()
        async with plugin:
            await kubelet.wait_for(THING)
            admission = asyncio.create_task(kubelet.admit(wanting("a", 1)))
            await until(lambda: plugin.allocations)
            await kubelet.stop()
            with pytest.raises(UsageError, match="does not run"):
                await admission
            plugin.hold_allocate.set()
        with pytest.raises(KeyError):
            kubelet.pod_status("default", "a")


async def test_a_kubelet_that_was_never_started_says_so(kubelet: EmbeddedKubelet) -> None:
    with pytest.raises(UsageError, match="has never run"):
        kubelet.capacity()
    with pytest.raises(UsageError, match="does not run"):
        await kubelet.admit(wanting("a", 1))


async def test_a_kubelet_cannot_be_started_twice(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        with pytest.raises(UsageError, match="runs already"):
            await kubelet.start()


async def test_a_start_that_fails_leaves_nothing_behind(kubelet: EmbeddedKubelet) -> None:
    kubelet.registration_socket.parent.mkdir(parents=True)
    kubelet.registration_socket.mkdir()
    with pytest.raises(KubeletDirectoryError):
        await kubelet.start()
    assert not kubelet.pod_resources_socket.exists()
    kubelet.registration_socket.rmdir()
    async with kubelet:
        assert kubelet.capacity() == {}


async def test_waiting_in_vain_ends_with_what_there_was_and_how_the_registration_went(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        with pytest.raises(TimeoutError, match="its last registration never came"):
            await kubelet.wait_for(THING, timeout=0.01)
        plugin = plugin_for(kubelet)
        async with plugin:
            with pytest.raises(TimeoutError, match=r"for 3 devices of .*: 2\}; its last registration was taken"):
                await kubelet.wait_for(THING, at_least=3, timeout=0.1)
            with pytest.raises(grpc.aio.AioRpcError):
                await plugin.register("v1")
            with pytest.raises(TimeoutError, match="was refused: requested API version"):
                await kubelet.wait_for(THING, at_least=3, timeout=0.01)


async def test_a_change_of_health_can_be_waited_for_in_the_status_of_the_pod(kubelet: EmbeddedKubelet) -> None:
    async with kubelet, plugin_for(kubelet) as plugin:
        await kubelet.wait_for(THING, at_least=2)
        await kubelet.admit(wanting("a", 1))
        plugin.send(devices("d0 d1", None, "Unhealthy"))
        sick = {"main": (ResourceStatus(THING, {"d0": "Unhealthy"}),)}
        await kubelet.wait_until(lambda: kubelet.allocatable() == {THING: 0})
        assert kubelet.pod_status("default", "a").allocated_resources == sick


async def test_an_admission_that_the_caller_gives_up_leaves_nothing_reserved(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        plugin.hold_allocate = asyncio.Event()
        async with plugin:
            await kubelet.wait_for(THING, at_least=2)
            stuck = asyncio.create_task(kubelet.admit(wanting("a", 2)))
            await until(lambda: plugin.allocations)
            stuck.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stuck
            plugin.hold_allocate = None
            assert (await kubelet.admit(wanting("a", 2))).device_ids(THING) == ("d0", "d1")


async def test_without_its_directory_kubelet_takes_lists_and_refuses_pods(kubelet: EmbeddedKubelet) -> None:
    async with kubelet, plugin_for(kubelet) as plugin:
        await kubelet.wait_for(THING, at_least=2)
        shutil.rmtree(kubelet.plugin_directory)
        plugin.send(devices("d0"))
        await kubelet.wait_until(lambda: kubelet.allocatable() == {THING: 1})
        with pytest.raises(
            AdmissionError, match='failed to write checkpoint file "kubelet_internal_checkpoint": No such'
        ):
            await kubelet.admit(wanting("a", 1))


async def test_a_plugin_that_is_lost_before_its_first_list_refuses_pods(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        plugin.list_at_once = False
        async with plugin:
            await until(lambda: plugin.open_streams)
            plugin.end_streams()
            await kubelet.wait_until(lambda: kubelet.capacity() == {THING: 0})
        assert kubelet.allocatable() == {}
        with pytest.raises(AdmissionError, match=f"OutOf{THING}"):
            await kubelet.admit(wanting("a", 1))


async def test_where_kubelet_would_crash_it_is_down_until_a_restart(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)

        async def shrink() -> None:
            plugin.send(devices("d1"))
            await until(lambda: kubelet.capacity() == {THING: 1})

        async with plugin:
            await kubelet.wait_for(THING, at_least=2)
            plugin.during_allocate = shrink
            with pytest.raises(KubeletPanicError, match=f"d0 of {THING}"):
                await kubelet.admit(wanting("a", 1))
            with pytest.raises(UsageError, match="does not run"):
                await kubelet.admit(wanting("b", 1))
            plugin.during_allocate = None
            await kubelet.restart()
            await back(kubelet, plugin, 1)
            assert (await kubelet.admit(wanting("a", 1))).device_ids(THING) == ("d1",)


async def test_device_health_is_written_into_the_status_of_the_pod(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = plugin_for(kubelet)
        async with plugin:
            await kubelet.wait_for(THING, at_least=2)
            await kubelet.admit(wanting("a", 1))
            assert kubelet.pod_status("default", "a") == PodStatus(
                Phase.RUNNING, allocated_resources={"main": (ResourceStatus(THING, {"d0": "Healthy"}),)}
            )
            plugin.send([device("d0", None, "Unhealthy"), device("d1")])
            await until(lambda: kubelet.allocatable() == {THING: 1})
            sick = {"main": (ResourceStatus(THING, {"d0": "Unhealthy"}),)}
            await until(lambda: kubelet.pod_status("default", "a").allocated_resources == sick)
            plugin.send(devices("d1"))
            await until(lambda: kubelet.capacity() == {THING: 1})
            assert kubelet.pod_status("default", "a").allocated_resources == sick
            kubelet.write_status("default", "a")
            healthy = {"main": (ResourceStatus(THING, {"d0": "Healthy"}),)}
            assert kubelet.pod_status("default", "a").allocated_resources == healthy


async def test_until_1_35_no_device_health_is_written(directory: Path, random: Random) -> None:
    async with EmbeddedKubelet(directory, random=random, behaviour=Behaviour.of("1.35")) as kubelet:
        plugin = plugin_for(kubelet)
        async with plugin:
            await kubelet.wait_for(THING)
            await kubelet.admit(wanting("a", 1))
            plugin.send(devices("d0 d1", None, "Unhealthy"))
            await until(lambda: kubelet.allocatable() == {THING: 0})
            assert kubelet.pod_status("default", "a").allocated_resources == {}


@pytest.mark.parametrize(("version", "phase"), [("1.31", Phase.FAILED), ("1.32", Phase.SUCCEEDED)])
async def test_finished_pods_went_through_admission_again_until_1_31(
    version: str, phase: Phase, directory: Path, random: Random
) -> None:
    async with EmbeddedKubelet(directory, random=random, behaviour=Behaviour.of(version)) as kubelet:
        async with plugin_for(kubelet):
            await kubelet.wait_for(THING)
            await kubelet.admit(wanting("done", 1))
            kubelet.finish("default", "done")
        await kubelet.restart()
        assert kubelet.pod_status("default", "done").phase is phase


async def test_a_finished_pod_that_passes_again_stays_finished(directory: Path, random: Random) -> None:
    async with EmbeddedKubelet(directory, random=random, behaviour=Behaviour.of("1.31")) as kubelet:
        await kubelet.admit(Pod("done", containers=(Container("main"),)))
        kubelet.finish("default", "done")
        (again,) = await kubelet.restart()
        assert again.refusal is None
        assert kubelet.pod_status("default", "done").phase is Phase.SUCCEEDED


class Cpus:
    """A second provider, which has CPUs on node 1 only."""

    def __init__(self) -> None:
        self.allocated: list[str] = []
        self.hold: asyncio.Event | None = None
        self.refuse = False

    def hints(self, pod: Pod, container: Container) -> Hints:
        del pod, container
        return {"cpu": (Hint(Mask.of((1,)), preferred=True),)}

    def pod_hints(self, pod: Pod) -> Hints:
        del pod
        return self.hints(Pod("any", containers=(Container("main"),)), Container("main"))

    async def allocate(self, pod: Pod, container: Container) -> None:
        del pod
        self.allocated.append(container.name)
        if self.hold is not None:
            await self.hold.wait()
        if self.refuse or container.name == "greedy":
            raise AllocationError("not enough cpus available to satisfy request")


@pytest.mark.parametrize("scope", ["container", "pod"])
async def test_another_provider_has_a_say_and_allocates_after_the_devices(
    scope: str, directory: Path, random: Random
) -> None:
    settings = TopologySettings("single-numa-node", scope, (0, 1))
    cpus = Cpus()
    async with EmbeddedKubelet(directory, random=random, topology=settings, hint_providers=[cpus]) as kubelet:
        layout = [*devices("a0 a1", (0,)), *devices("b0 b1", (1,))]
        async with FakePlugin(THING, kubelet.plugin_directory, layout):
            await kubelet.wait_for(THING, at_least=4)
            admitted = await kubelet.admit(wanting("a", 1))
            assert admitted.device_ids(THING) == ("b0",)
            assert cpus.allocated == ["main"]
            assert str(kubelet.journal.decisions[-1].merged) == "1P"
            greedy = Pod("greedy", containers=(Container("greedy", {THING: 1}),))
            with pytest.raises(AdmissionError, match="Allocate failed due to not enough cpus"):
                await kubelet.admit(greedy)
            assert kubelet.manager.state.free(THING) == {"a0", "a1"}
            with pytest.raises(AdmissionError) as refused:
                await kubelet.admit(wanting("too-big", 3))
            assert refused.value.reason == "TopologyAffinityError"


async def test_the_same_seed_gives_the_same_pods_the_same_devices(directory: Path) -> None:
    outcomes = []
    for number in range(2):
        kubelet = EmbeddedKubelet(directory / str(number), random=seeded(5))
        async with kubelet:
            plugin = plugin_for(kubelet, "d0 d1 d2 d3 d4 d5")
            plugin.options = wire.DevicePluginOptions()
            async with plugin:
                await kubelet.wait_for(THING, at_least=6)
                pods = [await kubelet.admit(replace(wanting(name, 2), uid="")) for name in "abc"]
        outcomes.append([(pod.pod.uid, pod.device_ids(THING)) for pod in pods])
    assert outcomes[0] == outcomes[1]


async def test_two_resources_of_one_container_that_conflict_are_told(kubelet: EmbeddedKubelet) -> None:
    async with kubelet, plugin_for(kubelet), plugin_for(kubelet, "o0", OTHER):
        await kubelet.wait_for(THING)
        await kubelet.wait_for(OTHER)
        pod = Pod("a", containers=(Container("main", {THING: 1, OTHER: 1}),))
        main = (await kubelet.admit(pod)).container("main")
    (conflict,) = main.conflicts
    assert (conflict.kind, conflict.key) == ("env", "DEVICES")
    assert {conflict.kept, conflict.dropped} == {"d0", "o0"}
    assert main.envs == {"DEVICES": conflict.kept}
