"""The programs, and which commands they have.

Nothing of weight is imported here, so that the daemon can take its signals in hand first; the rest is in `application`.

Limits: the command's name is looked for here before the command library parses anything, so no option of `gpustow`
itself may take a value.
"""

import sys
from collections.abc import Sequence

from gpustow.cli.earlysignals import end_well_from_now_on

COMMANDS = {
    "plugin": "gpustow.cli.plugin",
    "status": "gpustow.cli.status",
    "simulate": "gpustow.cli.simulate",
    "explain": "gpustow.cli.explain",
    "allocate": "gpustow.cli.allocate",
    "inspect": "gpustow.cli.inspect",
    "models": "gpustow.cli.models",
    "xid": "gpustow.cli.xid",
    "config": "gpustow.cli.config",
}
"""The module of each command, in the order of the help."""

DAEMON = "plugin"
"""The command that runs until it is told to end."""


def main() -> None:
    """`gpustow`."""
    _run("gpustow", sys.argv[1:])


def plugin_main() -> None:
    """`nvidia-device-plugin`: `gpustow plugin` under the name that v0.20.0's image starts."""
    _run("nvidia-device-plugin", sys.argv[1:], only=DAEMON)


def command_at(words: Sequence[str]) -> int | None:
    """Which of the words is the command; None if there is none."""
    return next((number for number, word in enumerate(words) if word in COMMANDS), None)


def _run(program: str, words: Sequence[str], only: str | None = None) -> None:
    at = command_at(words)
    if DAEMON in {only, None if at is None else words[at]}:
        end_well_from_now_on()
        from gpustow.cli.processtitle import be_called  # noqa: PLC0415 - only a daemon is looked for by its name

        be_called(program)
    from gpustow.cli.application import run  # noqa: PLC0415 - it takes long, and a signal must not be lost meanwhile

    run(program, words, only)
