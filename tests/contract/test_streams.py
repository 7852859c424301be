"""The stream of the list: its first message, its end, and many of them."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.plugin import Supervisor
from tests.contract.scene import VERSIONS, allocation, embedded, health, offered, serving, some_polls
from tests.kubelet.fakekubelet import FakeKubelet, Plugin, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, SHORT, gpu, node, our_sockets, with_health

STREAMS = 8


async def test_03_first_list_is_whole_and_comes_as_soon_as_the_stream_opens(directory: Path) -> None:
    daemon = Daemon(directory, node(*(gpu(index) for index in range(8))))
    async with FakeKubelet(directory) as kubelet, daemon.running():
        await until(lambda: kubelet.live(GPU))
        daemon.supervisor.mark(lambda uuid: "it is sick" if uuid == "GPU-3" else None)
        stream = kubelet.plugins[0].calls.list_and_watch(protocol.Empty(), timeout=10)
        first = await anext(aiter(stream))
        stream.cancel()
    assert health(first.devices) == {f"GPU-{index}": "Unhealthy" if index == 3 else "Healthy" for index in range(8)}


async def test_03_first_list_comes_even_if_it_is_empty(directory: Path) -> None:
    some = offered(node(gpu(0)))
    nothing = replace(some, resource=replace(some.resource, devices=()), device_list=b"")
    async with serving(directory, nothing) as (_, calls):
        stream = aiter(calls.list_and_watch(protocol.Empty(), timeout=10))
        assert list((await anext(stream)).devices) == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_07_stream_killed_only_brings_a_new_registration(directory: Path, version: str) -> None:
    async with embedded(directory, version) as kubelet, Daemon(kubelet.plugin_directory).running() as supervisor:
        await kubelet.wait_for(GPU, at_least=2)
        [client] = kubelet._alive().clients.open
        await client.close()
        await until(lambda: len(kubelet.registrations) == 2 and kubelet.allocatable() == {GPU: 2})
        await some_polls()
        assert supervisor.not_ready is None
        assert len(kubelet._alive().clients.open) == len(our_sockets(kubelet.plugin_directory)) == 1


async def test_07_stream_that_never_opens_brings_a_new_registration(directory: Path) -> None:
    kubelet = FakeKubelet(directory)
    kubelet.listens = False
    async with kubelet, Daemon(directory, timing=replace(SHORT, stream_deadline=0.05)).running():
        await until(lambda: len(kubelet.requests) >= 2)
        kubelet.listens = True
        await until(lambda: kubelet.live(GPU))


class LateKubelet(FakeKubelet):
    """Knows plugins by the name of the resource alone, and handles the end of a stream late.

    What it finds under the name by then, it disconnects. It handles the first `strikes` ends at the worst moment, when
    the next plugin has just sent its list, and the others after `delay` seconds.
    """

    def __init__(self, directory: Path, *, delay: float = 0.0, strikes: int = 0) -> None:
        super().__init__(directory)
        self._delay = delay
        self._strikes = strikes
        self._known: dict[str, Plugin] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}
        self.struck = 0

    async def _listen(self, plugin: Plugin) -> None:
        resource, endpoint = plugin.request.resource_name, plugin.request.endpoint
        self._known[resource] = plugin
        reading = self._reading[endpoint] = asyncio.create_task(super()._listen(plugin))
        try:
            await asyncio.wait([reading])
        finally:
            reading.cancel()
        if self._strikes:
            self._strikes -= 1
            await until(lambda: self._known.get(resource, plugin) is not plugin and self.live(resource))
        else:
            await asyncio.sleep(self._delay)
        known = self._known.pop(resource, None)
        if known is not None and known is not plugin:
            self.struck += 1
            self._reading[known.request.endpoint].cancel()

    def allocatable(self) -> set[str]:
        known = self._known.get(GPU)
        return set() if known is None or known.ended else known.healthy


PROPORTIONATE = replace(SHORT, retry_most=30 * SHORT.retry_first, stream_deadline=2)
"""The old stream's end may also come before the new stream is opened, which then never is: hence the deadline."""


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, 2.0])
async def test_09_race_with_the_end_of_the_old_stream_ends_with_one_live_stream(directory: Path, share: float) -> None:
    """The end is noticed up to twice the first wait late, as 0 to 2 s are to the real one of 1 s."""
    delay = share * SHORT.retry_first
    kubelet = LateKubelet(directory, delay=delay)
    async with kubelet, Daemon(directory, timing=PROPORTIONATE).running() as supervisor:
        await until(lambda: kubelet.live(GPU))
        [socket] = our_sockets(directory)
        (directory / socket).unlink()
        await until(lambda: supervisor.not_ready is not None)
        await settled(kubelet, supervisor, 2 * delay)


async def test_09_race_at_the_worst_moment_three_times_over_ends_with_one_live_stream(directory: Path) -> None:
    kubelet = LateKubelet(directory, strikes=3)
    async with kubelet, Daemon(directory, timing=PROPORTIONATE).running() as supervisor:
        await until(lambda: kubelet.live(GPU))
        [socket] = our_sockets(directory)
        (directory / socket).unlink()
        await until(lambda: kubelet.struck == 3)
        await settled(kubelet, supervisor, 0.1)


async def settled(kubelet: LateKubelet, supervisor: Supervisor, late: float) -> None:
    """All is well, and it still is when whatever comes `late` seconds late has come."""
    for wait in (late, 0.0):
        await until(lambda: supervisor.not_ready is None and kubelet.allocatable() == {"GPU-0", "GPU-1"})
        await asyncio.sleep(wait)
    assert len(kubelet.live(GPU)) == len(our_sockets(kubelet.directory)) == 1


async def test_25_many_streams_each_get_every_update_and_leave_nothing(directory: Path) -> None:
    healthy = offered(node(gpu(0), gpu(1)))
    sick = with_health(healthy, _0=False)
    async with serving(directory, healthy) as (service, calls):
        streams = [calls.list_and_watch(protocol.Empty(), timeout=30) for _ in range(STREAMS)]
        readers = [aiter(stream) for stream in streams]
        for update in (healthy, sick, healthy, sick):
            service.replace(update)
            lists = await asyncio.gather(*(anext(reader) for reader in readers))
            assert {each.SerializeToString() for each in lists} == {update.device_list}
            await calls.allocate(allocation(["GPU-1"]), timeout=10)
            await calls.get_device_plugin_options(protocol.Empty(), timeout=10)
        assert service.feed.streams == STREAMS
        for left, stream in reversed([*enumerate(streams)]):
            stream.cancel()
            await until(lambda left=left: service.feed.streams == left)  # type: ignore[misc] # the count of this turn
        assert service.feed.opened == STREAMS
