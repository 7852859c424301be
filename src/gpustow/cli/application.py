"""The commands: how they are found and run, and what happens to an error.

A command is a module here with the function `register(app)`, which adds it to an application. Where it takes words that
the command library does not, it has `prepare(words)` as well, which brings those after its name into the form that is
understood. Only the module of the command that is asked for is imported, so that the daemon starts without what draws
tables and simulates. Data goes to stdout, talk to stderr. An error of ours ends the command with its text on stderr and
its exit code; anything else is a fault of ours and ends it with a traceback and 1.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

import typer

from gpustow.cli import COMMANDS, command_at
from gpustow.cli.options import HELP_FLAGS, VERSION_FLAGS, Version
from gpustow.errors import GpustowError

_HELP = """A Kubernetes device plugin suite for NVIDIA GPUs that decides well which devices a request gets.

\b
Examples:
  gpustow simulate                             the plugin at work on a simulated node, here and now
  gpustow plugin --mig-strategy=mixed          serve this node's GPUs to kubelet
  gpustow plugin --node-model=a100-4-mig-5     serve GPUs that are not there, on a cluster without any
"""


def run(program: str, words: Sequence[str], only: str | None = None) -> None:
    """Runs a command to its end: the one that the words name, or `only`, of which the words are the arguments."""
    try:
        app, prepared = _with_all(words) if only is None else _with_one(only, words)
        _summarise_whole(app)
        app(prepared, prog_name=program)
    except GpustowError as error:
        print(f"{program}: {error}", file=sys.stderr)  # noqa: T201 - this is how a command tells its error
        sys.exit(error.exit_code)


def _application() -> typer.Typer:
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, context_settings=HELP_FLAGS
    )


def _with_all(words: Sequence[str]) -> tuple[typer.Typer, list[str]]:
    """`gpustow` with the command that the words name, or with all if they name none; and the words, prepared."""
    app = _application()
    app.callback(help=_HELP, no_args_is_help=True, context_settings=HELP_FLAGS)(_options)
    at = command_at(words)
    if at is None:
        for path in () if VERSION_FLAGS & set(words) else COMMANDS.values():
            import_module(path).register(app)
        return app, list(words)
    module = import_module(COMMANDS[words[at]])
    module.register(app)
    return app, [*words[: at + 1], *_prepared(module, words[at + 1 :])]


def _with_one(name: str, words: Sequence[str]) -> tuple[typer.Typer, list[str]]:
    """A program that is one command, and the words, prepared."""
    app = _application()
    module = import_module(COMMANDS[name])
    module.register(app)
    return app, _prepared(module, words)


def _summarise_whole(app: typer.Typer) -> None:
    """Has lists of commands show the first sentence of each whole; the command library would cut it at one line."""
    for command in app.registered_commands:
        command.short_help = _first_sentence(command.help)
    for group in app.registered_groups:
        below = group.typer_instance
        if below is not None:
            told = below.info.help if below.registered_callback is None else below.registered_callback.help
            group.short_help = _first_sentence(told)
            _summarise_whole(below)


def _first_sentence(text: object) -> str:
    sentence, dot, _ = " ".join(str(text).split()).partition(". ")
    return sentence + dot.strip()


def _prepared(module: ModuleType, words: Sequence[str]) -> list[str]:
    return list(module.prepare(words) if hasattr(module, "prepare") else words)


def _options(*, version: Version = False) -> None:
    """The options of `gpustow` itself: they act while they are read."""
