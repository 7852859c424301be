import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpustow.cli import daemonclient
from gpustow.cli.daemonclient import fetch_status
from gpustow.errors import DaemonError, UsageError


@contextmanager
def answering(answer: bytes | None, host: str = "127.0.0.1") -> Iterator[int]:
    """A port where one connection gets these bytes and is closed; None is nothing at all."""
    with socket.create_server((host, 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                if answer is None:
                    done.wait(30)
                else:
                    connection.sendall(answer)

        done = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            done.set()
            thread.join()


def answer(body: bytes, first: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 " + first + b"\r\nConnection: close\r\n\r\n" + body


@pytest.mark.parametrize("host", ["", "0.0.0.0", "127.0.0.1", "localhost"])  # noqa: S104 - asked, not listened at
def test_the_answer_is_what_json_says(host: str) -> None:
    with answering(answer(b'{"at": 1}')) as port:
        assert fetch_status(f"{host}:{port}") == {"at": 1}


def test_every_address_of_the_machine_is_this_machine() -> None:
    assert daemonclient._EVERYWHERE[None] == "127.0.0.1"
    assert daemonclient._EVERYWHERE["::"] == "::1"


@pytest.mark.parametrize("address", ["", "9402", "host", "host:", "http://host:1", "a b:1"])
def test_what_is_no_address_is_a_usage_error(address: str) -> None:
    with pytest.raises(UsageError, match="is not HOST:PORT or :PORT"):
        fetch_status(address)


def test_where_nobody_listens_the_advice_is_to_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(DaemonError, match=r"nobody listens there\n.*--metrics-address") as refused:
        fetch_status(f"127.0.0.1:{port}")
    assert refused.value.address == f"127.0.0.1:{port}"
    assert refused.value.exit_code == 1


def test_a_host_that_is_none_cannot_be_reached() -> None:
    with pytest.raises(DaemonError, match="it cannot be reached"):
        fetch_status("no-such-host.invalid:1")


def test_one_that_says_nothing_is_not_waited_for() -> None:
    with answering(None) as port, pytest.raises(DaemonError, match="no answer in time"):
        fetch_status(f"127.0.0.1:{port}", seconds=0.05)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
        (b"", "does not speak HTTP"),
        (answer(b"", b"404 Not Found"), "the answer is 404 Not Found"),
        (answer(b"<html>"), "sends no JSON"),
        (answer(b"\xff"), "sends no JSON"),
        (answer(b"[" * 200_000), "sends no JSON"),
    ],
)
def test_what_is_no_daemon_of_ours_is_told_apart(data: bytes, reason: str) -> None:
    with answering(data) as port, pytest.raises(DaemonError, match=reason) as told:
        fetch_status(f"127.0.0.1:{port}")
    assert "Something else seems to listen there" in str(told.value)


def test_an_endless_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemonclient, "MOST_BYTES", 100)
    with answering(answer(b"x" * 1000)) as port, pytest.raises(DaemonError, match="larger than"):
        fetch_status(f"127.0.0.1:{port}")
