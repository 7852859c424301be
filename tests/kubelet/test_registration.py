import asyncio
import socket
from pathlib import Path

import grpc
import pytest

from gpustow.errors import ApiVersionRefused, RegistrationError, RegistrationRefused
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import RegisterRequest
from gpustow.kubelet.registration import Registration, register
from gpustow.kubelet.server import PluginServer
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.kubelet.samples import OPTIONS, EchoService

REGISTRATION = Registration("nvidia.com/gpu", "s", OPTIONS)


async def refused(directory: Path, text: str) -> RegistrationError:
    async def refusal(_request: RegisterRequest) -> str:
        return text

    async with FakeKubelet(directory) as kubelet:
        kubelet.refusal = refusal
        with pytest.raises(RegistrationError) as error:
            await register(kubelet.socket, REGISTRATION)
    return error.value


async def test_a_kubelet_that_dials_back_inside_register_takes_the_registration(tmp_path: Path) -> None:
    async with FakeKubelet(tmp_path) as kubelet:
        service = EchoService()
        server = PluginServer(service, tmp_path / "s")
        await server.start()
        await register(kubelet.socket, REGISTRATION)
        request = RegisterRequest(version="v1beta1", endpoint="s", resource_name="nvidia.com/gpu", options=OPTIONS)
        assert kubelet.requests == [request]
        assert kubelet.plugins[0].options == OPTIONS
        await until(lambda: kubelet.plugins[0].lists)
        service.feed.close()
        await server.stop()


async def test_a_name_that_kubelet_finds_invalid_is_refused_for_ever(tmp_path: Path) -> None:
    error = await refused(tmp_path, 'the ResourceName "nvidia.com/gpu" is invalid')
    assert type(error) is RegistrationRefused
    assert error.resource == "nvidia.com/gpu"


async def test_an_api_version_that_kubelet_does_not_know_is_refused_for_all(tmp_path: Path) -> None:
    error = await refused(
        tmp_path, 'requested API version "v1beta1" is not supported by kubelet. Supported version is v2'
    )
    assert type(error) is ApiVersionRefused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("failed to dial device plugin: context deadline exceeded", "cannot reach the plugin's socket"),
        ("failed to get device plugin options: EOF", "failed to get device plugin options: EOF"),
        ("something else", "something else"),
    ],
)
async def test_any_other_refusal_may_pass(tmp_path: Path, text: str, said: str) -> None:
    error = await refused(tmp_path, text)
    assert type(error) is RegistrationError
    assert said in str(error)


async def test_a_socket_that_nobody_serves_may_be_served_later(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "kubelet.sock"))
    for path in (tmp_path / "kubelet.sock", tmp_path / "nothing"):
        with pytest.raises(RegistrationError, match="does not answer on its socket") as error:
            await register(path, REGISTRATION)
        assert type(error.value) is RegistrationError


async def test_a_kubelet_that_hangs_is_given_up_after_the_deadline(tmp_path: Path) -> None:
    async def hang(_request: RegisterRequest) -> None:
        await asyncio.Event().wait()

    async with FakeKubelet(tmp_path) as kubelet:
        kubelet.refusal = hang
        with pytest.raises(RegistrationError, match="did not answer in time"):
            await register(kubelet.socket, REGISTRATION, seconds=0.1)


async def test_a_refusal_without_a_text_is_told(tmp_path: Path) -> None:
    server = grpc.aio.server()  # serves no method at all, and says only UNIMPLEMENTED
    server.add_insecure_port(f"unix:{tmp_path / 'kubelet.sock'}")
    await server.start()
    with pytest.raises(RegistrationError, match=r"kubelet did not register 'nvidia.com/gpu': \w"):
        await register(tmp_path / "kubelet.sock", REGISTRATION)
    await server.stop(None)
