"""The connection to one plugin: limits, errors as gRPC for Go words them, what is read of an answer."""

import asyncio
from pathlib import Path

import pytest

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.simulation.kubelet.endpoint import EndpointError, PluginOptions
from gpustow.simulation.kubelet.pluginclient import MESSAGE_LIMIT, DialError, PluginClient
from tests.simulation.kubelet.core import THING
from tests.simulation.kubelet.fakeplugin import FakePlugin, devices, until


async def connected(plugin: FakePlugin, *, pre_start_timeout: float = 30.0) -> PluginClient:
    await plugin.serve()
    client = PluginClient(plugin.resource, plugin.socket, dial_timeout=5, pre_start_timeout=pre_start_timeout)
    await client.dial()
    return client


async def first_list(plugin: FakePlugin) -> list[str] | None:
    """The ids of the first list that comes through; None if the stream ends instead."""
    client = await connected(plugin)
    lists = client.lists()
    try:
        async for listed in lists:
            return [device.id for device in listed]
    finally:
        await lists.aclose()  # type: ignore[attr-defined]  # it is a generator
        await client.close()
        await plugin.stop()
    return None


def message_of(size: int) -> list[wire.Device]:
    """A list whose message has exactly so many bytes."""
    device = wire.Device(ID="x" * (size // 2), health="Healthy")
    rest = wire.Device(ID="y", health="Healthy")
    fill = size - wire.ListAndWatchResponse(devices=[device, rest]).ByteSize()
    rest.ID = "y" * (fill - 4)
    while (missing := size - wire.ListAndWatchResponse(devices=[device, rest]).ByteSize()) != 0:
        rest.ID += "y" * missing
    return [device, rest]


async def test_a_list_of_exactly_4_mib_comes_through(directory: Path) -> None:
    listed = message_of(MESSAGE_LIMIT)
    assert wire.ListAndWatchResponse(devices=listed).ByteSize() == 4_194_304
    received = await first_list(FakePlugin(THING, directory, listed))
    assert received == [device.ID for device in listed]


async def test_one_byte_more_ends_the_stream(directory: Path) -> None:
    assert await first_list(FakePlugin(THING, directory, message_of(MESSAGE_LIMIT + 1))) is None


async def test_nobody_behind_the_socket_is_a_dial_error(directory: Path) -> None:
    client = PluginClient(THING, directory / "absent.sock", dial_timeout=0.05)
    with pytest.raises(DialError, match="failed to dial device plugin: context deadline exceeded"):
        await client.dial()


async def test_only_the_first_answer_is_read_and_an_empty_one_is_no_preference(directory: Path) -> None:
    plugin = FakePlugin(THING, directory, empty_answers=True)
    client = await connected(plugin)
    assert tuple(await client.preferred(["d0"], [], 1)) == ()
    assert await client.allocate(["d0"]) is None
    plugin.empty_answers = False
    assert tuple(await client.preferred(["d1", "d0"], [], 1)) == ("d0",)
    answer = await client.allocate(["d0"])
    assert answer is not None
    assert answer.envs == {"DEVICES": "d0"}
    await client.close()
    await plugin.stop()


async def test_errors_are_worded_as_gomessages(directory: Path) -> None:
    plugin = FakePlugin(THING, directory, allocate_error="no such device", prefer_error="lost")
    client = await connected(plugin)
    with pytest.raises(EndpointError, match=r"^rpc error: code = Unknown desc = no such device$"):
        await client.allocate(["d0"])
    with pytest.raises(EndpointError, match=r"^rpc error: code = Unknown desc = lost$"):
        await client.preferred(["d0"], [], 1)
    await client.close()
    await plugin.stop()


async def test_pre_start_has_a_time_limit(directory: Path) -> None:
    plugin = FakePlugin(THING, directory, hold_pre_start=asyncio.Event())
    assert plugin.hold_pre_start is not None
    client = await connected(plugin, pre_start_timeout=0.05)
    with pytest.raises(EndpointError, match=r"^rpc error: code = DeadlineExceeded desc"):
        await client.pre_start(["d0"])
    plugin.hold_pre_start.set()
    await client.close()
    await plugin.stop()


async def test_a_call_under_way_fails_when_the_connection_is_closed(directory: Path) -> None:
    plugin = FakePlugin(THING, directory, hold_allocate=asyncio.Event())
    assert plugin.hold_allocate is not None
    client = await connected(plugin)
    call = asyncio.create_task(client.allocate(["d0"]))
    await until(lambda: plugin.allocations)
    await client.close()
    with pytest.raises(EndpointError, match="code = Canceled desc = grpc: the client connection is closing"):
        await call
    plugin.hold_allocate.set()
    await plugin.stop()


async def test_a_cancelled_caller_is_cancelled(directory: Path) -> None:
    plugin = FakePlugin(THING, directory, hold_allocate=asyncio.Event())
    assert plugin.hold_allocate is not None
    client = await connected(plugin)
    call = asyncio.create_task(client.allocate(["d0"]))
    await until(lambda: plugin.allocations)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    plugin.hold_allocate.set()
    await client.close()
    await plugin.stop()


async def test_a_closed_connection_has_no_lists_and_refuses_calls(directory: Path) -> None:
    plugin = FakePlugin(THING, directory, devices("d0"))
    client = await connected(plugin)
    assert await client.options() == PluginOptions(get_preferred_allocation_available=True)
    await client.close()
    await client.close()
    assert [listed async for listed in client.lists()] == []
    with pytest.raises(EndpointError, match="has been stopped"):
        await client.allocate(["d0"])
    await plugin.stop()


async def test_closing_ends_a_watched_list(directory: Path) -> None:
    plugin = FakePlugin(THING, directory, devices("d0"))
    client = await connected(plugin)
    seen = []

    async def watch() -> None:
        seen.extend([listed async for listed in client.lists()])

    watching = asyncio.create_task(watch())
    await until(lambda: plugin.open_streams)
    await client.close()
    await watching
    await plugin.stop()


async def test_a_dial_that_is_given_up_leaves_nothing_open(directory: Path) -> None:
    client = PluginClient(THING, directory / "absent.sock", dial_timeout=30)
    dialling = asyncio.create_task(client.dial())
    await asyncio.sleep(0.01)
    dialling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dialling
