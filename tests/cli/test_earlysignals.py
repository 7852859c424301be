"""Signals that come while the daemon still starts, held there by a command library that takes for ever to import."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpustow.cli import earlysignals
from tests.cli.commands import environment

UNSHARE = ("unshare", "--pid", "--fork", "--kill-child")
SLOW = "import pathlib, time; pathlib.Path({!r}).touch(); time.sleep(600)"
STARTS = {
    "gpustow plugin": ("main", "plugin"),
    "gpustow plugin with flags": ("main", "plugin", "--mig-strategy=none"),
    "nvidia-device-plugin": ("plugin_main",),
}

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program with some words, under another if `under` is given, and waits until it imports."""
    (tmp_path / "typer.py").write_text(SLOW.format(str(tmp_path / "imports")), encoding="utf-8")
    started = []

    def starting(entry: str, *words: str, under: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        code = f"from gpustow.cli import {entry}; {entry}()"
        process = subprocess.Popen(
            [*under, sys.executable, "-c", code, *words], env=environment({"PYTHONPATH": str(tmp_path)})
        )
        started.append(process)
        end = time.monotonic() + 60
        while not (tmp_path / "imports").exists():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.01)
        return process

    yield starting
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("words", "name"), [(("main", "plugin"), "gpustow"), (("plugin_main",), "nvidia-device-plugin")]
)
def test_a_config_manager_finds_the_daemon_by_its_exact_name(start: Start, words: tuple[str, ...], name: str) -> None:
    process = start(*words, "--mig-strategy=none")
    proc = Path(f"/proc/{process.pid}")
    assert (proc / "cmdline").read_bytes().split(b"\0")[0] == name.encode()
    assert (proc / "comm").read_text(encoding="ascii").strip() == name[:15]


@pytest.mark.parametrize("words", STARTS.values(), ids=STARTS.keys())
def test_a_sigterm_while_the_daemon_starts_ends_it_well_and_a_sighup_does_nothing(
    start: Start, words: tuple[str, ...]
) -> None:
    process = start(*words)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def can_be_process_1() -> bool:
    """Whether this user may make a namespace of processes, as in a container; most users and containers may not."""
    return shutil.which(UNSHARE[0]) is not None and subprocess.run([*UNSHARE, "true"], check=False).returncode == 0


@pytest.mark.skipif(not can_be_process_1(), reason="a namespace of processes cannot be made here")
def test_as_process_1_of_a_container_too(start: Start) -> None:
    process = start("plugin_main", under=UNSHARE)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    os.kill(int(children), signal.SIGTERM)
    assert process.wait(60) == 0


def test_other_commands_end_by_signals_as_programs_do(start: Start) -> None:
    process = start("main", "simulate")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM


def test_each_signal_that_stops_ends_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = (signal.SIGHUP, *earlysignals.STOP_SIGNALS)
    before = [signal.getsignal(number) for number in numbers]
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    try:
        earlysignals.end_well_from_now_on()
        for number in numbers:
            signal.raise_signal(number)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    assert codes == [0, 0, 0]
