"""The daemon ends, is killed, or runs twice."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gpustow.errors import AdmissionError
from tests.devicemanager.backend import Backend, Kubelet
from tests.devicemanager.plugin import GPU, Plugin, node_of
from tests.devicemanager.scene import Scene, scene
from tests.kubelet.fakekubelet import until
from tests.plugin.samples import our_sockets


@asynccontextmanager
async def daemon(kubelet: Kubelet) -> AsyncIterator[asyncio.subprocess.Process]:
    """The daemon in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("gpustow")), "plugin"),
        *("--node-model", "t4-4", "--kubelet-socket", str(kubelet.registration_socket), "--log-level", "error"),
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_while_the_daemon_is_gone_the_capacity_stays_and_nothing_is_allocatable(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(1)
        at.plugin.supervisor.stop()
        await until(lambda: at.kubelet.allocatable() == {GPU: 0})
        assert at.kubelet.capacity() == {GPU: 4}
        assert at.held(pod) == pod.device_ids(GPU)
        with pytest.raises(AdmissionError, match="no healthy devices present"):
            await at.admit(1)


async def test_a_daemon_that_starts_again_has_the_same_devices_and_pods_keep_theirs(
    backend: Backend, directory: Path
) -> None:
    kubelet = backend.kubelet(directory)
    plugin = Plugin(kubelet, node_of("t4-4"))
    async with kubelet:
        at = Scene(kubelet, plugin)
        async with plugin.running():
            pod = await at.admit(2)
        async with plugin.running():
            assert at.held(pod) == pod.device_ids(GPU)
            other = await at.admit(2)
            assert {*pod.device_ids(GPU), *other.device_ids(GPU)} == {*plugin.ids()}


async def test_a_daemon_that_is_killed_and_started_again_is_back_and_leaves_no_socket(
    backend: Backend, directory: Path
) -> None:
    kubelet = backend.kubelet(directory)
    async with kubelet:
        at = Scene(kubelet, Plugin(kubelet, node_of("t4-4")))
        async with daemon(kubelet) as first:
            await kubelet.wait_for(GPU, 4)
            pod = await at.admit(2)
            first.send_signal(signal.SIGKILL)
            await until(lambda: kubelet.allocatable() == {GPU: 0})
            (dead,) = our_sockets(kubelet.plugin_directory)
            async with daemon(kubelet) as second:
                await kubelet.wait_for(GPU, 4)
                assert dead not in our_sockets(kubelet.plugin_directory)
                other = await at.admit(2)
                assert not {*pod.device_ids(GPU)} & {*other.device_ids(GPU)}
                second.terminate()
                assert await second.wait() == 0
        assert our_sockets(kubelet.plugin_directory) == []


async def test_of_two_daemons_the_newer_serves_and_goes_on_when_the_older_ends(
    backend: Backend, directory: Path
) -> None:
    kubelet = backend.kubelet(directory)
    old, new = (Plugin(kubelet, node_of("t4-4")) for _ in range(2))
    async with kubelet:
        at = Scene(kubelet, new)
        async with old.running():
            pod = await at.admit(1)
            async with new.running():
                await at.admit(1)
                assert [resource for resource, _ in new.witness.allocations] == [GPU]
                old.supervisor.stop()
                await until(lambda: len(our_sockets(kubelet.plugin_directory)) == 1)
                await until(lambda: new.supervisor.not_ready is None and kubelet.allocatable() == {GPU: 4})
                await asyncio.sleep(0.2)
                assert (new.supervisor.not_ready, kubelet.allocatable()) == (None, {GPU: 4})
                assert len((await at.admit(2)).device_ids(GPU)) == 2
                assert at.held(pod) == pod.device_ids(GPU)
                expected = 1 if backend.since("1.37") else 2
                assert new.witness.registrations[GPU] == expected
