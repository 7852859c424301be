"""Two daemons on one node, as during an update of the DaemonSet: in the end the one that stays serves."""

import asyncio
import random
from pathlib import Path

import pytest

from gpustow.plugin.observer import PluginState
from gpustow.simulation.kubelet import Behaviour, EmbeddedKubelet
from tests.kubelet.fakekubelet import until
from tests.kubelet.samples import abandon
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, SHORT, our_sockets

VERSIONS = ["1.24", "1.36", "1.37"]


def kubelet_of(directory: Path, version: str) -> EmbeddedKubelet:
    kubelet = EmbeddedKubelet(directory, random=random.Random(1), behaviour=Behaviour.of(version))
    kubelet.plugin_directory.mkdir()
    return kubelet


def another(kubelet: EmbeddedKubelet) -> Daemon:
    """A daemon whose sockets have names of their own."""
    daemon = Daemon(kubelet.plugin_directory)
    daemon.supervisor._serving.fleet._surroundings.random.seed(2)
    return daemon


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_newer_takes_over_and_goes_on_when_the_older_ends(tmp_path: Path, version: str) -> None:
    kubelet = kubelet_of(tmp_path, version)
    older, newer = Daemon(kubelet.plugin_directory), another(kubelet)
    async with kubelet, older.running():
        await kubelet.wait_for(GPU, at_least=2)
        first = our_sockets(kubelet.plugin_directory)
        async with newer.running() as supervisor:
            await until(lambda: supervisor.not_ready is None)
            assert set(first) < set(our_sockets(kubelet.plugin_directory)), "nobody removes what is not his"
            older.supervisor.stop()
            await until(lambda: older.supervisor.not_ready == "it has ended")
            await until(lambda: supervisor.not_ready is None and kubelet.allocatable() == {GPU: 2})
            (left,) = our_sockets(kubelet.plugin_directory)
            assert left not in first


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_older_goes_on_when_the_newer_ends(tmp_path: Path, version: str) -> None:
    kubelet = kubelet_of(tmp_path, version)
    older, newer = Daemon(kubelet.plugin_directory), another(kubelet)
    async with kubelet, older.running() as supervisor:
        await kubelet.wait_for(GPU, at_least=2)
        (first,) = our_sockets(kubelet.plugin_directory)
        async with newer.running():
            await until(lambda: newer.supervisor.not_ready is None)
            await asyncio.sleep(3 * SHORT.poll)
        await until(lambda: first not in our_sockets(kubelet.plugin_directory))
        await until(lambda: supervisor.not_ready is None and kubelet.allocatable() == {GPU: 2})
        assert len(our_sockets(kubelet.plugin_directory)) == 1


@pytest.mark.parametrize("version", VERSIONS)
async def test_after_a_restart_of_kubelet_both_come_back_and_neither_disturbs_the_other(
    tmp_path: Path, version: str
) -> None:
    kubelet = kubelet_of(tmp_path, version)
    older, newer = Daemon(kubelet.plugin_directory), another(kubelet)
    async with kubelet, older.running() as one, newer.running() as other:
        for _ in range(3):
            await until(lambda: one.not_ready is None and other.not_ready is None)
            await kubelet.restart(killed=True)
            await until(lambda: one.not_ready is not None)
        await until(lambda: one.not_ready is None and other.not_ready is None and kubelet.allocatable() == {GPU: 2})
        assert len(our_sockets(kubelet.plugin_directory)) == 2
        kubelet.registrations.clear()
        await until(lambda: one.states == other.states == {GPU: PluginState.STREAMING})
        assert list(kubelet.registrations) == []


async def test_the_sockets_of_v0_20_0_beside_ours_are_left_alone(tmp_path: Path) -> None:
    kubelet = kubelet_of(tmp_path, "1.36")
    async with kubelet:
        abandon(kubelet.plugin_directory / "nvidia-gpu.sock")
        async with Daemon(kubelet.plugin_directory).running():
            await kubelet.wait_for(GPU, at_least=2)
        assert (kubelet.plugin_directory / "nvidia-gpu.sock").is_socket()
