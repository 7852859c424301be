import errno
import os
import socket
from pathlib import Path

import pytest

from gpustow.kubelet.bindfailure import BindFailure, bind_failure
from tests.kubelet.samples import names


def test_where_a_socket_can_be_bound_nothing_is_told_and_nothing_left(tmp_path: Path) -> None:
    assert bind_failure(tmp_path / "s") is None
    assert names(tmp_path) == []


def told(path: Path) -> tuple[str, str]:
    failure = bind_failure(path)
    assert failure is not None
    return failure.reason, failure.advice or ""


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    reason, advice = told(tmp_path / "none" / "s")
    assert reason == "No such file or directory (ENOENT)"
    assert "Mount the host's" in advice


def test_a_file_in_the_way_is_told_and_stays(tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    reason, advice = told(tmp_path / "s")
    assert reason == "Address already in use (EADDRINUSE)"
    assert "lies there already" in advice
    assert names(tmp_path) == ["s"]


def test_a_path_that_is_too_long_is_told(tmp_path: Path) -> None:
    reason, advice = told(tmp_path / ("s" * 200))
    assert "too long" in reason
    assert "shorter path" in advice


@pytest.mark.parametrize(
    ("number", "advice"), [(errno.EACCES, "SELinux"), (errno.EROFS, "without readOnly"), (errno.EIO, None)]
)
def test_the_error_is_named_with_what_to_do_where_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str | None
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    class Failing(socket.socket):
        bind = fail

    monkeypatch.setattr(socket, "socket", Failing)
    failure = bind_failure(tmp_path / "s")
    assert isinstance(failure, BindFailure)
    assert failure.reason == f"{os.strerror(number)} ({errno.errorcode[number]})"
    assert failure.advice is None if advice is None else advice in str(failure.advice)
