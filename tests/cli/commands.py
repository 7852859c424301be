"""Runs our commands as programs of their own, as an operator does."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has ended: exit code, and what it wrote."""

    code: int
    out: str
    err: str


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would configure the plugin, and `more`."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")
    return {name: os.environ[name] for name in kept if name in os.environ} | dict(more or {})


def run(program: str, *words: str, env: Mapping[str, str] | None = None, limit: float = 60) -> Ended:
    """Runs one of our programs to its end."""
    ended = subprocess.run(
        [str(BIN / program), *words], capture_output=True, text=True, env=environment(env), timeout=limit, check=False
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)
