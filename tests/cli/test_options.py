import json
import sys
from importlib import import_module

import pytest
import typer
import yaml
from typer.testing import CliRunner

from gpustow.cli import COMMANDS, main
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


@pytest.mark.parametrize("command", ["simulate", "explain", "allocate", "models", "xid", "config"])
def test_a_result_has_the_same_forms_in_every_command(command: str) -> None:
    assert import_module(COMMANDS[command]).Output is Output


def test_only_commands_that_change_their_words_say_so() -> None:
    changing = {name for name, path in COMMANDS.items() if hasattr(import_module(path), "prepare")}
    assert changing == {"plugin", "config"}


@pytest.mark.parametrize("words", [["models"], ["inspect", "--node-model=t4-4"], ["explain", "--node-model=t4-4"]])
def test_results_can_be_had_as_yaml_and_a_wrong_word_is_told_with_those_that_are_right(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(form: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["gpustow", *words, "-o", form])
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr()

    assert yaml.safe_load(call("yaml")[0]) == json.loads(call("json")[0])
    assert "Invalid value for '--output' / '-o': 'xml' is none of table, json, yaml" in call("xml")[1]


def test_lists_of_commands_cut_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["config"], ["models"]):
        monkeypatch.setattr(sys, "argv", ["gpustow", *words, "--help"])
        with pytest.raises(SystemExit):
            main()
        commands = capsys.readouterr().out.partition("Commands:")[2]
        assert commands.strip()
        assert "..." not in commands
