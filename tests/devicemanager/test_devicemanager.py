"""The Go program as a partner: what it refuses, and what is told when it ends."""

import os
import signal
from pathlib import Path

import pytest

from gpustow.errors import UsageError
from gpustow.simulation.kubelet import Container, Pod, TopologySettings
from tests.devicemanager.backend import Backend
from tests.devicemanager.conversation import Conversation, EndedError, RefusedError
from tests.devicemanager.devicemanager import DeviceManagerKubelet
from tests.devicemanager.program import IN_OWN_NAMESPACE, PROGRAMS


def conversation(device_manager: Backend, directory: Path) -> Conversation:
    command = [*IN_OWN_NAMESPACE, str(directory), str(PROGRAMS[device_manager.version].path)]
    return Conversation(command, directory / "log")


def test_what_it_does_not_know_it_refuses(device_manager: Backend, directory: Path) -> None:
    partner = conversation(device_manager, directory)
    with pytest.raises(RefusedError, match='nobody knows how to do "dance"'):
        partner.ask_now("dance")
    with pytest.raises(RefusedError, match="kubelet has not been started"):
        partner.ask_now("quantities")
    with pytest.raises(RefusedError, match="unknown field"):
        partner.ask_now("wait_for", colour="red")
    partner.close()


def test_when_it_ends_every_question_is_answered_with_its_last_words(device_manager: Backend, directory: Path) -> None:
    partner = conversation(device_manager, directory)
    topology = {"policy": "none", "scope": "container", "options": {}, "numa_nodes": [0], "distances": []}
    partner.ask_now("start", topology=topology, pods=[], running=[], node={"capacity": {}, "allocatable": {}})
    waiting = partner.ask("wait_for", resource="example.com/never", at_least=1, seconds=60)
    partner.close(kill=True)
    with pytest.raises(EndedError, match="checkpoint is not found"):
        waiting.result(10)
    with pytest.raises(EndedError):
        partner.ask_now("quantities")


async def test_settings_that_keep_kubelet_from_starting_are_told(device_manager: Backend, directory: Path) -> None:
    topology = TopologySettings("restricted", numa_nodes=tuple(range(8)))
    object.__setattr__(topology, "numa_nodes", tuple(range(9)))
    kubelet = device_manager.kubelet(directory, topology=topology)
    with pytest.raises(RefusedError, match="unsupported on machines with more than 8 NUMA Nodes"):
        await kubelet.start()


async def test_a_device_manager_that_is_down_is_a_fault_of_the_test(device_manager: Backend, directory: Path) -> None:
    kubelet = device_manager.kubelet(directory)
    pod = Pod("pod", containers=(Container("main"),))
    with pytest.raises(UsageError, match="the device manager does not run"):
        await kubelet.admit(pod)
    async with kubelet:
        with pytest.raises(UsageError, match="runs already"):
            await kubelet.start()
        await kubelet.admit(Pod("other", containers=(Container("main"),)))
        with pytest.raises(UsageError, match="is there already"):
            await kubelet.admit(Pod("other", containers=(Container("main"),)))
        with pytest.raises(TimeoutError, match=r"example\.com/never has 0 devices, not 1"):
            await kubelet.wait_for("example.com/never", timeout=0.01)


async def test_the_host_does_not_see_kubelets_directory(device_manager: Backend, directory: Path) -> None:
    before = Path("/var/lib/kubelet").exists()  # noqa: ASYNC240 - a look, no wait
    async with device_manager.kubelet(directory) as kubelet:
        assert isinstance(kubelet, DeviceManagerKubelet)
        assert kubelet.registration_socket.is_socket()
        assert Path("/var/lib/kubelet").exists() == before  # noqa: ASYNC240 - as above


async def test_a_device_manager_that_crashes_fails_the_test(device_manager: Backend, directory: Path) -> None:
    kubelet = device_manager.kubelet(directory)
    assert isinstance(kubelet, DeviceManagerKubelet)
    await kubelet.start()
    os.kill(kubelet.process, signal.SIGKILL)
    with pytest.raises(EndedError):
        kubelet.capacity()
    await kubelet.stop(killed=True)
