import asyncio
from contextlib import aclosing

import pytest

from gpustow.kubelet.devicefeed import DeviceFeed, device_list
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import ListAndWatchResponse
from tests.kubelet.samples import device


def nodes_sent(*numa_nodes: int | None) -> list[list[int] | None]:
    devices = [device(number, numa_node=node) for number, node in enumerate(numa_nodes)]
    sent = ListAndWatchResponse.FromString(device_list(devices)).devices
    return [[node.ID for node in each.topology.nodes] if each.HasField("topology") else None for each in sent]


def test_the_list_has_ids_and_health_in_the_order_of_the_devices() -> None:
    sent = ListAndWatchResponse.FromString(device_list([device(1, healthy=False), device(0)])).devices
    assert [(each.ID, each.health) for each in sent] == [("GPU-1", "Unhealthy"), ("GPU-0", "Healthy")]


def test_numa_nodes_are_sent_when_every_device_has_one() -> None:
    assert nodes_sent(0, 1) == [[0], [1]]


@pytest.mark.parametrize("other", [None, -1])
def test_a_device_without_a_numa_node_takes_the_nodes_from_all(other: int | None) -> None:
    assert nodes_sent(0, other) == [None, None]


class Reader:
    """Reads a stream of a feed in a task, as a call does."""

    def __init__(self, feed: DeviceFeed) -> None:
        self.messages: list[bytes] = []
        self._feed = feed
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async with aclosing(self._feed.stream()) as stream:
            async for message in stream:
                self.messages.append(message)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_stream_gets_the_list_at_once_even_an_empty_one() -> None:
    feed = DeviceFeed(b"", lambda: None)
    reader = Reader(feed)
    await settle()
    assert reader.messages == [b""]
    feed.close()
    await reader.task


async def test_every_stream_gets_every_change_and_nothing_without_a_change() -> None:
    feed = DeviceFeed(b"a", lambda: None)
    readers = [Reader(feed) for _ in range(8)]
    await settle()
    feed.publish(b"a")
    await settle()
    feed.publish(b"b")
    await settle()
    feed.publish(b"b")
    feed.close()
    await asyncio.gather(*(reader.task for reader in readers))
    assert [reader.messages for reader in readers] == [[b"a", b"b"]] * 8


async def test_a_slow_stream_gets_the_newest_list_and_none_of_those_before() -> None:
    feed = DeviceFeed(b"a", lambda: None)
    async with aclosing(feed.stream()) as stream:
        assert await anext(stream) == b"a"
        feed.publish(b"b")
        feed.publish(b"c")
        assert await anext(stream) == b"c"


async def test_a_closed_feed_sends_the_last_list_before_it_ends() -> None:
    feed = DeviceFeed(b"a", lambda: None)
    reader = Reader(feed)
    await settle()
    feed.publish(b"")
    feed.close()
    await reader.task
    late = Reader(feed)
    await late.task
    assert reader.messages == [b"a", b""]
    assert late.messages == [b""]


async def test_opening_and_ending_a_stream_is_told_and_counted() -> None:
    told: list[tuple[int, int]] = []
    feed = DeviceFeed(b"a", lambda: told.append((feed.opened, feed.streams)))
    readers = [Reader(feed) for _ in range(2)]
    await settle()
    readers[0].task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await readers[0].task
    assert told == [(1, 1), (2, 2), (2, 1)]
    feed.close()
    await readers[1].task
    assert (feed.opened, feed.streams) == (2, 0)
