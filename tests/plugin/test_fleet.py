"""The plugins of a daemon beside each other: none takes another down."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpustow.plugin.fleet import Fleet
from gpustow.plugin.observer import PluginState
from gpustow.plugin.offer import KubeletPlace, Offer, ServedResource
from gpustow.plugin.resource import ResourcePlugin
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.samples import GPU, MIG, SHORT, config, gpu, node, our_sockets, surroundings


def served() -> tuple[ServedResource, ...]:
    return Offer.of(node(gpu(0), gpu(1, mig_devices=2)), config(mig_strategy="mixed")).served


def at(directory: Path) -> KubeletPlace:
    return KubeletPlace(directory, directory / "kubelet.sock")


@asynccontextmanager
async def running(directory: Path, resources: tuple[ServedResource, ...]) -> AsyncIterator[Fleet]:
    fleet = Fleet(surroundings())
    async with asyncio.TaskGroup() as group:
        fleet.serve(resources, at(directory), group)
        yield fleet
        fleet.cancel()


def crash(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[int]:
    """Has the plugin of a resource crash in each round; counts the rounds."""
    register = ResourcePlugin._register
    rounds = iter(range(1000))

    async def registering(plugin: ResourcePlugin, *arguments: object) -> None:
        if plugin.name == name:
            next(rounds)
            raise ZeroDivisionError
        await register(plugin, *arguments)  # type: ignore[arg-type] # passed on as they come

    monkeypatch.setattr(ResourcePlugin, "_register", registering)
    return rounds


async def test_a_plugin_that_crashes_again_and_again_ends_alone_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rounds = crash(monkeypatch, MIG)
    async with FakeKubelet(tmp_path) as kubelet, running(tmp_path, served()) as fleet:
        await until(lambda: fleet.states[MIG] is PluginState.FAILED and kubelet.live(GPU))
        assert next(rounds) == 6, "five crashes are within the budget"
        assert [request.resource_name for request in kubelet.requests] == [GPU]
        assert fleet.complaints == {
            GPU: "",
            MIG: f"{MIG} is failed: it has crashed too often, the last time with ZeroDivisionError()",
        }
        assert f"{MIG} is not served any more" in caplog.text
        assert len(our_sockets(tmp_path)) == 1


async def test_one_that_crashes_now_and_then_is_served_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = crash(monkeypatch, MIG)
    async with FakeKubelet(tmp_path) as kubelet, running(tmp_path, served()) as fleet:
        await until(lambda: "it crashed: ZeroDivisionError()" in str(fleet.complaints))
        monkeypatch.undo()
        await until(lambda: kubelet.live(MIG) and kubelet.live(GPU))
        assert next(rounds) < 6
        assert fleet.complaints == {GPU: "", MIG: ""}


async def test_the_crash_of_the_last_one_ends_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash(monkeypatch, GPU)
    async with FakeKubelet(tmp_path):
        with pytest.raises(ExceptionGroup) as raised:
            async with running(tmp_path, served()[:1]) as fleet:
                await until(lambda: fleet.states[GPU] is PluginState.FAILED)
    assert [type(each) for each in raised.value.exceptions] == [ZeroDivisionError]


async def test_one_that_has_ended_is_tried_again_only_once_it_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash(monkeypatch, MIG)
    async with FakeKubelet(tmp_path) as kubelet, asyncio.TaskGroup() as group:
        fleet = Fleet(surroundings())
        fleet.serve(served(), at(tmp_path), group)
        await until(lambda: fleet.states[MIG] is PluginState.FAILED)
        monkeypatch.undo()
        fleet.serve(served(), at(tmp_path), group)
        assert fleet.states[MIG] is PluginState.FAILED
        fleet.forget_ended()
        assert fleet.names == (GPU,)
        fleet.serve(served(), at(tmp_path), group)
        await until(lambda: kubelet.live(MIG))
        fleet.cancel()


async def test_an_update_is_for_those_that_run(tmp_path: Path) -> None:
    async with FakeKubelet(tmp_path) as kubelet, running(tmp_path, served()[:1]) as fleet:
        await until(lambda: kubelet.live(GPU))
        (other,) = Offer.of(node(gpu(5)), config()).served
        fleet.update([other, served()[1]])
        await until(lambda: kubelet.plugins[0].healthy == {"GPU-5"})
        assert fleet.names == (GPU,)


def test_the_wait_of_a_name_that_was_retired_ends_and_is_for_the_same_kubelet_alone(tmp_path: Path) -> None:
    now = 100.0
    fleet = Fleet(replace(surroundings(timing=replace(SHORT, retry_first=5)), clock=lambda: now))
    here, there = at(tmp_path), KubeletPlace(tmp_path / "d", None)
    waits = []
    for retired_at in (100.0, 97.0, 95.0, 10.0):
        fleet._retired_at[here, GPU] = retired_at
        assert fleet.rest(there, GPU) == fleet.rest(here, MIG) == 0
        waits.append(fleet.rest(here, GPU))
        assert fleet.rest(here, GPU) == 0
    assert waits == [5, 2, 0, 0]
