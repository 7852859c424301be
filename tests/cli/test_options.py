import typer
from typer.testing import CliRunner

from gpustow.cli.arguments import Flag
from gpustow.cli.options import PLUGIN_OPTIONS, ROOT, NodeModelName, SystemRoot, own_flags


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
