"""Options that several commands have: one meaning, one help text, one environment variable each.

What the daemon takes beside the settings of its configuration is the table `PLUGIN_OPTIONS`, which everything else
about these flags is derived from.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, get_args

import typer

from gpustow.cli.arguments import Flag
from gpustow.cli.logs import LogFormat, LogLevel
from gpustow.version import __version__

ROOT = "/"

HELP_FLAGS = {"help_option_names": ["-h", "--help"]}
"""For `context_settings`: what asks for help."""


VERSION_FLAGS = frozenset({"--version", "-v"})


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the command library calls it so
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


def _or_unset(value: str | None) -> str | None:
    """An option that is given empty, as by a template that has nothing to put there, is not given."""
    return value or None


def _or_root(value: str) -> str:
    return value or ROOT


Version = Annotated[
    bool, typer.Option(*sorted(VERSION_FLAGS), help="Print the version.", callback=_print_version, is_eager=True)
]


class Output(StrEnum):
    """The forms of a result."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def output_option(forms: type[StrEnum]) -> Any:
    """The option that chooses one of these forms."""

    def form(word: str) -> StrEnum:
        try:
            return forms(word)
        except ValueError:
            raise typer.BadParameter(f"{word!r} is none of {', '.join(forms)}") from None

    return typer.Option("--output", "-o", metavar="|".join(forms), parser=form, help="How the result is written.")


OutputForm = Annotated[Output, output_option(Output)]

NodeModelName = Annotated[
    str | None,
    typer.Option(
        "--node-model",
        metavar="NAME|FILE",
        envvar="GPUSTOW_NODE_MODEL",
        callback=_or_unset,
        help="A simulated node in place of this machine: the name of a shipped node model, or a file.",
    ),
]

ConfigFileName = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The plugin's configuration file, v1. Where not given: its defaults, with MIG devices served.",
    ),
]

SystemRoot = Annotated[
    str,
    typer.Option(
        "--system-root",
        metavar="DIRECTORY",
        envvar="GPUSTOW_SYSTEM_ROOT",
        callback=_or_root,
        help="Where the host's /sys and /proc are found, if they are mounted elsewhere.",
    ),
]

LogFormatName = Annotated[
    LogFormat, typer.Option("--log-format", envvar="GPUSTOW_LOG_FORMAT", help="The form of log lines, on stderr.")
]

LogLevelName = Annotated[
    LogLevel, typer.Option("--log-level", envvar="GPUSTOW_LOG_LEVEL", help="The least grave log lines that are shown.")
]

PLUGIN_OPTIONS: Mapping[str, tuple[Any, object]] = {
    "node_model": (NodeModelName, None),
    "system_root": (SystemRoot, ROOT),
    "log_format": (LogFormatName, LogFormat.TEXT),
    "log_level": (LogLevelName, LogLevel.INFO),
    "version": (Version, False),
}
"""The daemon's own options: type and default of each, by the parameter that it is."""


def own_flags() -> Sequence[Flag]:
    """The daemon's own options, and what asks for help, for rewriting a command line."""
    return [
        *(_flag(annotation) for annotation, _ in PLUGIN_OPTIONS.values()),
        Flag(_bare(reversed(HELP_FLAGS["help_option_names"])), switch=True),
    ]


def _flag(annotation: Any) -> Flag:
    kind, option = get_args(annotation)
    # In an annotation, typer keeps the first name where a default would stand.
    return Flag(_bare([option.default, *option.param_decls]), switch=kind is bool)


def _bare(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.lstrip("-") for name in names)
