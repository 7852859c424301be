"""Runs a program of the host's that may do anything: fail, hang, talk for ever, leave children behind.

It gets no input, no shell, its own group of processes, and only those variables that it is given. A program that takes
too long or says too much is killed with all of its group. One that cannot even be killed, as happens in a driver that
hangs, is left to itself.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

MOST_BYTES = 16 << 20
"""How much it may say. The specification of 16 GPUs with 7 MIG devices each has some 100 KiB."""

_PIECE = 1 << 16
_AFTER_KILL = 5.0


class OutputTooLong(ValueError):  # noqa: N818 - says what it is
    """The program said more than anybody wants to know."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a program ended (a negative code is a signal) and what it said."""

    code: int
    output: str
    errors: str


def run_program(words: Sequence[str], environ: Mapping[str, str], seconds: float) -> Result:
    """Runs the program that `words` begins with.

    Raises OSError if it cannot be started, TimeoutError if it takes longer than `seconds`, and OutputTooLong if it says
    more than MOST_BYTES.
    """
    process = subprocess.Popen(  # noqa: S603 - a list of words, no shell; which program is the caller's care
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environ),
        cwd="/",
        start_new_session=True,
    )
    try:
        output, errors = _said(process, time.monotonic() + seconds)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"it has not ended after {seconds:g} s") from error
    finally:
        _end(process)
    return Result(process.returncode, output, errors)


def _said(process: "subprocess.Popen[bytes]", deadline: float) -> list[str]:
    """What it wrote to its output and to its errors until it ended. Raises TimeoutExpired and OutputTooLong."""
    streams = [stream.fileno() for stream in (process.stdout, process.stderr) if stream is not None]
    said = {stream: bytearray() for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            rest = deadline - time.monotonic()
            ready = selector.select(rest) if rest > 0 else []
            if not ready:
                raise subprocess.TimeoutExpired(process.args, rest)
            for key, _ in ready:
                data = os.read(key.fd, _PIECE)
                said[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
            if sum(map(len, said.values())) > MOST_BYTES:
                raise OutputTooLong(f"it has said more than {MOST_BYTES >> 20} MiB")
    process.wait(max(0.0, deadline - time.monotonic()))
    return [said[stream].decode(errors="replace") for stream in streams]


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kills what is left of the group, and waits for the program a little."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in filter(None, (process.stdout, process.stderr)):
        stream.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_AFTER_KILL)
