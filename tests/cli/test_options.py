from importlib import import_module

import pytest
import typer
from typer.testing import CliRunner

from gpustow.cli import COMMANDS
from gpustow.cli.arguments import Flag
from gpustow.cli.options import PLUGIN_OPTIONS, ROOT, NodeModelName, Output, SystemRoot, own_flags


def test_what_the_daemon_takes_beside_its_settings_is_one_table() -> None:
    assert own_flags() == [
        Flag(("node-model",)),
        Flag(("system-root",)),
        Flag(("log-format",)),
        Flag(("log-level",)),
        Flag(("version", "v"), switch=True),
        Flag(("help", "h"), switch=True),
    ]
    assert [flag.names[0].replace("-", "_") for flag in own_flags()[:-1]] == list(PLUGIN_OPTIONS)


def test_options_that_are_given_empty_are_not_given() -> None:
    app = typer.Typer()
    seen: list[object] = []

    @app.command()
    def command(node_model: NodeModelName = None, system_root: SystemRoot = ROOT) -> None:
        seen.append((node_model, system_root))

    for words in ([], ["--node-model=", "--system-root="]):
        assert CliRunner().invoke(app, words).exit_code == 0
    assert seen == [(None, "/"), (None, "/")]


@pytest.mark.parametrize("command", ["simulate", "explain", "models", "config"])
def test_a_result_has_the_same_forms_in_every_command(command: str) -> None:
    assert import_module(COMMANDS[command]).Output is Output


def test_only_commands_that_change_their_words_say_so() -> None:
    changing = {name for name, path in COMMANDS.items() if hasattr(import_module(path), "prepare")}
    assert changing == {"plugin", "config"}
