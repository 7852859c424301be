"""Options that several commands have: one meaning, one help text, one environment variable each."""

from typing import Annotated

import typer

from gpustow.cli.logs import LogFormat, LogLevel
from gpustow.version import __version__

HELP_FLAGS = {"help_option_names": ["-h", "--help"]}
"""For `context_settings`: what asks for help."""


VERSION_FLAGS = frozenset({"--version", "-v"})


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the command library calls it so
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


Version = Annotated[
    bool, typer.Option(*sorted(VERSION_FLAGS), help="Print the version.", callback=_print_version, is_eager=True)
]

NodeModelName = Annotated[
    str | None,
    typer.Option(
        "--node-model",
        metavar="NAME|FILE",
        envvar="GPUSTOW_NODE_MODEL",
        help="A simulated node in place of this machine: the name of a shipped node model, or a file.",
    ),
]

SystemRoot = Annotated[
    str,
    typer.Option(
        "--system-root",
        metavar="DIRECTORY",
        envvar="GPUSTOW_SYSTEM_ROOT",
        help="Where the host's /sys and /proc are found, if they are mounted elsewhere.",
    ),
]

LogFormatName = Annotated[
    LogFormat, typer.Option("--log-format", envvar="GPUSTOW_LOG_FORMAT", help="The form of log lines, on stderr.")
]

LogLevelName = Annotated[
    LogLevel, typer.Option("--log-level", envvar="GPUSTOW_LOG_LEVEL", help="The least grave log lines that are shown.")
]
