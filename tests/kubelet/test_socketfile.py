import os
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.errors import KubeletDirectoryError
from gpustow.kubelet.socketfile import (
    MAX_PATH_BYTES,
    SocketFacts,
    check_directory,
    directory_is_dead,
    is_served,
    remove_stale_sockets,
    sockets_of,
    unique_socket,
)
from tests.kubelet.samples import abandon, bind


def test_a_socket_has_the_same_facts_until_it_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "s"
    abandon(path)
    facts = SocketFacts.of(path)
    assert facts is not None
    assert SocketFacts.of(path) == facts
    path.unlink()
    abandon(path)
    assert SocketFacts.of(path) != facts


def test_what_is_no_socket_or_not_there_has_no_facts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert SocketFacts.of(tmp_path / "file") is None
    assert SocketFacts.of(tmp_path / "nothing") is None
    assert SocketFacts.of(tmp_path / "file" / "below") is None


def test_a_good_directory_passes(tmp_path: Path) -> None:
    check_directory(tmp_path)


def test_a_directory_that_is_missing_or_a_file_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(KubeletDirectoryError, match="does not exist") as missing:
        check_directory(tmp_path / "missing")
    assert str(tmp_path / "missing") in str(missing.value)
    assert missing.value.exit_code == 7
    (tmp_path / "file").touch()
    with pytest.raises(KubeletDirectoryError, match="is not a directory"):
        check_directory(tmp_path / "file")


def test_a_directory_that_cannot_be_written_to_is_told_to_root_as_well() -> None:
    with pytest.raises(KubeletDirectoryError, match="/proc/self is not writable: "):
        check_directory(Path("/proc/self"))


def test_a_directory_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may list everything.
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(KubeletDirectoryError, match="is not readable"):
        check_directory(tmp_path)


def test_checking_a_directory_leaves_nothing_in_it(tmp_path: Path) -> None:
    check_directory(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_whose_path_leaves_no_room_for_a_socket_is_told(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * MAX_PATH_BYTES)
    deep.mkdir()
    with pytest.raises(KubeletDirectoryError, match="path too long"):
        check_directory(deep)


def test_a_directory_that_was_deleted_under_an_open_handle_is_dead(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    handle = os.open(directory, os.O_RDONLY)
    seen = Path(f"/proc/self/fd/{handle}")
    try:
        assert not directory_is_dead(seen)
        directory.rmdir()
        assert directory_is_dead(seen)
        assert not directory_is_dead(directory)
    finally:
        os.close(handle)


def test_two_sockets_of_one_resource_have_different_names() -> None:
    random = Random(1)
    first, second = (unique_socket(Path("/d"), "nvidia.com/mig-1g.5gb", random) for _ in range(2))
    assert first != second
    assert first.name.startswith("gpustow-mig-1g.5gb-")
    assert first.suffix == ".sock"


@given(st.integers(0, 80), st.text("abc-.", min_size=1, max_size=63), st.integers())
def test_a_socket_always_fits_the_path_that_a_directory_leaves(depth: int, name: str, seed: int) -> None:
    directory = Path("/" + "d" * depth)
    path = unique_socket(directory, f"nvidia.com/{name}", Random(seed))
    assert path.parent == directory
    assert len(os.fsencode(path)) <= MAX_PATH_BYTES


def test_only_our_own_sockets_that_nobody_serves_are_removed(tmp_path: Path) -> None:
    abandon(tmp_path / "gpustow-gpu-1.sock")
    abandon(tmp_path / "other.sock")
    abandon(tmp_path / "kubelet.sock")
    (tmp_path / "gpustow-gpu-file.sock").touch()
    (tmp_path / "kubelet_internal_checkpoint").touch()
    served = bind(tmp_path / "gpustow-gpu-2.sock")
    served.listen()
    assert remove_stale_sockets(tmp_path) == (tmp_path / "gpustow-gpu-1.sock",)
    served.close()
    assert {path.name for path in tmp_path.iterdir()} == {
        "other.sock",
        "kubelet.sock",
        "gpustow-gpu-file.sock",
        "kubelet_internal_checkpoint",
        "gpustow-gpu-2.sock",
    }


def test_a_socket_that_cannot_be_examined_stays(tmp_path: Path) -> None:
    # A datagram socket refuses the connection with another error than "nobody is there".
    other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    other.bind(os.fspath(tmp_path / "gpustow-gpu-1.sock"))
    assert remove_stale_sockets(tmp_path) == ()
    other.close()
    assert (tmp_path / "gpustow-gpu-1.sock").is_socket()


def test_the_sockets_of_a_resource_are_known_by_their_names(tmp_path: Path) -> None:
    ours = [unique_socket(tmp_path, "nvidia.com/gpu", Random(seed)) for seed in range(2)]
    theirs = tmp_path / "nvidia-gpu.sock"
    others = [
        unique_socket(tmp_path, "nvidia.com/gpu-0123456789", Random(1)),
        unique_socket(tmp_path, "nvidia.com/mig-1g.5gb", Random(1)),
        tmp_path / "nvidia-gpu.shared.sock",
        tmp_path / "gpustow-gpu-0123456789.sock.old",
        tmp_path / "kubelet.sock",
    ]
    for path in (*ours, theirs, *others):
        path.touch()
    assert set(sockets_of(tmp_path, "nvidia.com/gpu")) == {*ours, theirs}
    assert sockets_of(tmp_path / "none", "nvidia.com/gpu") == ()


def test_a_socket_is_served_if_somebody_accepts_there_even_if_many_wait(tmp_path: Path) -> None:
    assert not is_served(tmp_path / "none")
    abandon(tmp_path / "dead")
    assert not is_served(tmp_path / "dead")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server, ExitStack() as stack:
        server.bind(str(tmp_path / "full"))
        server.listen(0)
        assert is_served(tmp_path / "full")
        for _ in range(5):
            client = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
            with suppress(BlockingIOError):
                client.connect(str(tmp_path / "full"))
        assert is_served(tmp_path / "full")
