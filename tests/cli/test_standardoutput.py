"""What a command writes to stdout, where nobody reads it and where it cannot be written."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import BIN, environment

COMMANDS = [
    ("simulate", "--policy=packed"),
    ("simulate", "--policy=packed", "-o", "json"),
    ("models",),
    ("models", "-o", "json"),
    ("models", "show", "t4-4"),
    ("models", "schema"),
    ("inspect", "--node-model=t4-4"),
]


def _into(stdout: int, *words: str) -> tuple[int, str]:
    ended = subprocess.run(
        [str(BIN / "gpustow"), *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("words", COMMANDS)
def test_a_reader_that_has_seen_enough_ends_a_command_in_silence(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert _into(writing, *words) == (141, "")
    finally:
        os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_disk_is_told_in_one_line(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        assert _into(full.fileno(), *words) == (
            1,
            "gpustow: the output cannot be written: No space left on device\n",
        )
