import socket
from pathlib import Path

import grpc
import pytest

from gpustow.errors import KubeletDirectoryError
from gpustow.kubelet.protocol.services import registration_handler
from gpustow.simulation.kubelet.sockets import Sockets, serve


def handler() -> grpc.GenericRpcHandler:
    class Nobody:
        async def register(self, *_: object) -> None:
            raise NotImplementedError

    return registration_handler(Nobody())  # type: ignore[arg-type]  # it is never called


def test_paths_are_those_below_var_lib_kubelet() -> None:
    sockets = Sockets(Path("/var/lib/kubelet"))
    assert sockets.registration == Path("/var/lib/kubelet/device-plugins/kubelet.sock")
    assert sockets.pod_resources == Path("/var/lib/kubelet/pod-resources/kubelet.sock")


def test_a_start_makes_the_directory_for_kubelet_alone(directory: Path) -> None:
    sockets = Sockets(directory / "root")
    sockets.prepare()
    assert sockets.plugin_directory.stat().st_mode & 0o777 == 0o750


def test_a_start_removes_sockets_and_leaves_everything_else(directory: Path) -> None:
    sockets = Sockets(directory)
    sockets.prepare()
    below = sockets.plugin_directory / "sub"
    below.mkdir()
    for path in (sockets.plugin_directory / "plugin.sock", below / "deep.sock"):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
    (sockets.plugin_directory / "kubelet_internal_checkpoint").write_text("{}")
    sockets.prepare()
    assert {path.name for path in sockets.plugin_directory.rglob("*")} == {
        "sub",
        "deep.sock",
        "kubelet_internal_checkpoint",
    }


def test_a_socket_that_its_plugin_removes_at_the_same_moment_does_not_matter(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sockets = Sockets(directory)
    monkeypatch.setattr(Path, "iterdir", lambda path: iter([path / "just-removed.sock"]))
    sockets.prepare()


def test_a_path_that_is_too_long_for_a_socket_is_refused(directory: Path) -> None:
    with pytest.raises(KubeletDirectoryError, match="at most 107 bytes"):
        Sockets(directory / ("x" * 100)).prepare()


def test_a_directory_that_cannot_be_made_is_refused(directory: Path) -> None:
    (directory / "root").write_text("")
    with pytest.raises(KubeletDirectoryError, match="cannot be made: Not a directory"):
        Sockets(directory / "root").prepare()


def test_a_killed_kubelet_leaves_sockets_that_refuse(directory: Path) -> None:
    sockets = Sockets(directory)
    sockets.prepare()
    sockets.leave_dead()
    for path in (sockets.registration, sockets.pod_resources):
        with socket.socket(socket.AF_UNIX) as caller, pytest.raises(ConnectionRefusedError):
            caller.connect(str(path))


async def test_a_dead_socket_is_taken_over(directory: Path) -> None:
    sockets = Sockets(directory)
    sockets.prepare()
    sockets.leave_dead()
    server = await serve(handler(), sockets.registration)
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(sockets.registration))
    await server.stop(None)
    assert not sockets.registration.exists()


async def test_a_file_in_the_sockets_place_is_refused(directory: Path) -> None:
    path = directory / "kubelet.sock"
    path.write_text("")
    with pytest.raises(KubeletDirectoryError, match=r"does not take the socket kubelet\.sock"):
        await serve(handler(), path)
