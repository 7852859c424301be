"""Runs a program of the host's that may do anything: fail, hang, talk for ever, leave children behind.

It gets no input, no shell, its own group of processes, and only those variables that it is given. A program that takes
too long is killed with all of its group. One that cannot even be killed, as happens in a driver that hangs, is left to
itself.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

_AFTER_KILL = 5.0


@dataclass(frozen=True, slots=True)
class Result:
    """How a program ended (a negative code is a signal) and what it said."""

    code: int
    output: str
    errors: str


def run_program(words: Sequence[str], environ: Mapping[str, str], seconds: float) -> Result:
    """Runs the program that `words` begins with.

    Raises OSError if it cannot be started, and TimeoutError if it takes longer than `seconds`.
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
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"it has not ended after {seconds:g} s") from error
    finally:
        _end(process)
    return Result(process.returncode, output.decode(errors="replace"), errors.decode(errors="replace"))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kills what is left of the group, and waits for the program a little."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in filter(None, (process.stdout, process.stderr)):
        stream.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_AFTER_KILL)
