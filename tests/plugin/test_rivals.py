import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpustow.plugin import rivals as module
from gpustow.plugin.rivals import Rivals
from tests.kubelet.samples import abandon
from tests.plugin.samples import GPU
from tests.plugin.test_occupancy import Clock

OURS = "gpustow-gpu-00000000aa.sock"
THEIRS = "gpustow-gpu-00000000bb.sock"


class Sockets:
    """Makes sockets that are served until `end`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open: dict[str, socket.socket] = {}

    def serve(self, name: str) -> Path:
        self._open[name] = server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(str(self.directory / name))
        server.listen()
        return self.directory / name

    def end(self, name: str, *, leaves_file: bool = False) -> None:
        self._open.pop(name).close()
        if not leaves_file:
            (self.directory / name).unlink()

    def end_all(self) -> None:
        for name in list(self._open):
            self.end(name)


@pytest.fixture
def sockets(tmp_path: Path) -> Iterator[Sockets]:
    made = Sockets(tmp_path)
    with ExitStack() as stack:
        stack.callback(made.end_all)
        yield made


def test_without_a_rival_nobody_is_alone_again(sockets: Sockets) -> None:
    rivals = Rivals(sockets.serve(OURS), GPU, Clock())
    sockets.serve("gpustow-mig-1g.5gb-00000000bb.sock")
    sockets.end("gpustow-mig-1g.5gb-00000000bb.sock")
    assert rivals.alone_for() is None


@pytest.mark.parametrize("name", [THEIRS, "nvidia-gpu.sock"])
@pytest.mark.parametrize("leaves_file", [False, True])
def test_the_time_since_the_last_rival_ended_is_told(sockets: Sockets, name: str, leaves_file: bool) -> None:  # noqa: FBT001 - a parameter of the test
    clock = Clock()
    rivals = Rivals(sockets.serve(OURS), GPU, clock)
    sockets.serve(name)
    assert rivals.alone_for() is None
    sockets.end(name, leaves_file=leaves_file)
    assert rivals.alone_for() == 0
    clock.now += 7
    assert rivals.alone_for() == 7
    sockets.serve("gpustow-gpu-00000000cc.sock")
    assert rivals.alone_for() is None


def test_one_that_is_dead_already_is_no_rival(sockets: Sockets) -> None:
    rivals = Rivals(sockets.serve(OURS), GPU, Clock())
    abandon(sockets.directory / THEIRS)
    assert rivals.alone_for() is None
    (sockets.directory / THEIRS).unlink()
    assert rivals.alone_for() is None


def test_one_that_was_there_long_before_does_not_count(sockets: Sockets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONG_BEFORE_NS", 0)
    sockets.serve(THEIRS)
    while (sockets.directory / THEIRS).stat().st_ctime_ns >= _now_ns(sockets.directory):
        pass
    rivals = Rivals(sockets.serve(OURS), GPU, Clock())
    assert rivals.alone_for() is None
    sockets.end(THEIRS)
    assert rivals.alone_for() is None


def _now_ns(directory: Path) -> int:
    """The time that a file gets that is made now."""
    (directory / "now").touch()
    return (directory / "now").stat().st_ctime_ns


def test_a_socket_of_our_own_that_is_gone_is_for_others_to_notice(sockets: Sockets) -> None:
    own = sockets.serve(OURS)
    sockets.end(OURS)
    assert Rivals(own, GPU, Clock()).alone_for() is None
