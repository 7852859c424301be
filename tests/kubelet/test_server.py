import asyncio
import os
import stat
from pathlib import Path

import grpc
import pytest

from gpustow.errors import PluginServerError
from gpustow.kubelet import server as module
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import AllocateRequest, DevicePluginOptions, Empty
from gpustow.kubelet.protocol.services import Context, DevicePluginCalls, unix_channel
from gpustow.kubelet.server import PluginServer
from tests.kubelet.fakekubelet import until
from tests.kubelet.samples import EchoService, names


async def test_a_started_server_answers_on_a_socket_that_is_for_its_owner_alone(tmp_path: Path) -> None:
    server = PluginServer(EchoService(), tmp_path / "s")
    before = os.umask(0o022)
    os.umask(before)
    await server.start()
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
    assert os.umask(before) == before
    async with unix_channel(tmp_path / "s") as channel:
        await DevicePluginCalls(channel).allocate(AllocateRequest(), timeout=5)
    await server.stop()
    assert names(tmp_path) == []


async def test_a_server_knows_when_its_socket_is_gone_or_another_one(tmp_path: Path) -> None:
    server, other = PluginServer(EchoService(), tmp_path / "s"), PluginServer(EchoService(), tmp_path / "s")
    assert not server.intact()
    await server.start()
    assert server.intact()
    (tmp_path / "s").unlink()
    assert not server.intact()
    await other.start()
    assert not server.intact()
    assert other.intact()
    await other.stop()
    await server.stop()


async def test_a_path_that_cannot_be_bound_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PluginServerError, match=f"cannot serve on {tmp_path / 'file'}: .*EADDRINUSE") as error:
        await PluginServer(EchoService(), tmp_path / "file").start()
    assert "lies there already" in str(error.value)
    assert names(tmp_path) == ["file"]


async def test_a_server_that_does_not_answer_itself_is_stopped_and_told(tmp_path: Path) -> None:
    class Broken(EchoService):
        async def get_device_plugin_options(self, _request: Empty, context: Context) -> DevicePluginOptions:
            await context.abort(grpc.StatusCode.INTERNAL, "out of order")
            raise AssertionError

    with pytest.raises(PluginServerError, match=r"does not answer \(out of order\)"):
        await PluginServer(Broken(), tmp_path / "s").start()
    assert names(tmp_path) == []


async def test_calls_are_answered_while_streams_are_open_and_a_told_stream_ends_with_the_server(tmp_path: Path) -> None:
    service = EchoService(b"")
    server = PluginServer(service, tmp_path / "s")
    await server.start()
    async with unix_channel(tmp_path / "s") as channel:
        calls = DevicePluginCalls(channel)

        async def listen() -> int:
            return len([message async for message in calls.list_and_watch(Empty())])

        streams = [asyncio.create_task(listen()) for _ in range(8)]
        await until(lambda: service.feed.streams == 8)
        await calls.allocate(AllocateRequest(), timeout=5)
        service.feed.close()
        await server.stop()
        assert await asyncio.gather(*streams) == [1] * 8


async def test_a_cause_that_has_passed_is_told_in_grpcs_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(module, "bind_failure", lambda _: None)
    with pytest.raises(PluginServerError, match=r"cannot serve on .*: Failed to bind"):
        await PluginServer(EchoService(), tmp_path / "file").start()


@pytest.mark.parametrize("name", ["a%20b", "a b", "a?b#c", "ä", "100%"])
async def test_a_directory_of_any_name_is_served_in(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    directory.mkdir()
    server = PluginServer(EchoService(), directory / "s")
    await server.start()
    assert names(directory) == ["s"]
    assert server.intact()
    await server.stop()
    assert names(directory) == []
