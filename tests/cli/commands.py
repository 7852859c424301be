"""Runs our commands as programs of their own, as an operator does, and keeps them off the machine that we test on.

That machine may be a node: its driver is hidden behind files that are no libraries, and the daemon never starts without
a kubelet socket of the test's own, since it would register with the node's kubelet.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent

NO_DRIVER = Path(__file__).parent / "nodriver"
"""Has a file in the place of each library by which a driver is found."""

_ENDS_AT_ONCE = frozenset({"help", "h", "version", "v"})


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has ended: exit code, and what it wrote."""

    code: int
    out: str
    err: str


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would configure the plugin and without a driver, and `more`."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")
    here = {name: os.environ[name] for name in kept if name in os.environ}
    return here | {"LD_LIBRARY_PATH": str(NO_DRIVER)} | dict(more or {})


def no_driver(folder: Path) -> tuple[str, str]:
    """The daemon's flags for a machine without any driver, on whatever machine; `folder` is an empty one."""
    return f"--driver-root-ctr-path={folder}", f"--system-root={folder}"


def check_safe(program: str, words: Sequence[str]) -> None:
    """Raises AssertionError where the daemon would look for the kubelet of this machine.

    The socket has to come first: a word that is no flag ends the flags, and those after it are ignored.
    """
    if program == "gpustow" and words[:1] == ("plugin",):
        words = words[1:]
    elif program != "nvidia-device-plugin":
        return
    ends = any(word.lstrip("-").partition("=")[0] in _ENDS_AT_ONCE for word in words[:1])
    assert ends or (words and words[0].startswith("--kubelet-socket=")), f"{program} {words} needs a socket, and first"


def run(program: str, *words: str, env: Mapping[str, str] | None = None, limit: float = 60) -> Ended:
    """Runs one of our programs to its end."""
    check_safe(program, words)
    ended = subprocess.run(
        [str(BIN / program), *words], capture_output=True, text=True, env=environment(env), timeout=limit, check=False
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)
