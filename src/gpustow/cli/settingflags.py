"""The flags of the table of settings, for the commands that take them, so that flag and table cannot differ.

What is given is passed on as text; what it means is the configuration's business.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from gpustow.cli.arguments import Flag
from gpustow.config import SETTINGS, Kind, Setting

SETTING_FLAGS: Sequence[Flag] = [Flag(setting.names, boolean=setting.kind is Kind.BOOLEAN) for setting in SETTINGS]
"""For rewriting a command line: the names of every flag, and which may stand alone."""


def setting_parameters() -> list[inspect.Parameter]:
    """A keyword parameter for each setting, as the command library reads them; former names are not shown."""
    former = [
        keyword(_field(setting.former.flag), str | None, typer.Option(None, f"--{setting.former.flag}", hidden=True))
        for setting in SETTINGS
        if setting.former
    ]
    return [*(_parameter(setting) for setting in SETTINGS), *former]


def keyword(name: str, annotation: Any, default: object) -> inspect.Parameter:
    """A keyword parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def given_settings(given: Mapping[str, Any]) -> dict[str, object]:
    """Those of the parameters that were given, by the long name of the flag, or its former name if that was used."""
    names = [setting.flag for setting in SETTINGS] + [setting.former.flag for setting in SETTINGS if setting.former]
    return {name: given[_field(name)] for name in names if given[_field(name)] not in (None, [])}


def setting_help(setting: Setting) -> str:
    """The help text: what the setting does, whether it acts, its default, and where else it can be set."""
    acts = "" if setting.acts else " Does not act yet."
    places = [f"env {env}" for env in setting.envs] + ([f"file {setting.key}"] if setting.key else [])
    return f"{setting.help}{acts} [{'; '.join([f'default {_shown(setting.default)}', *places])}]"


def _field(flag: str) -> str:
    return flag.replace("-", "_")


def _parameter(setting: Setting) -> inspect.Parameter:
    several = setting.kind in {Kind.TEXTS, Kind.INTEGERS}
    option = typer.Option(
        None,
        *(f"--{name}" for name in (setting.flag, *setting.aliases)),
        metavar="true|false"
        if setting.kind is Kind.BOOLEAN
        else "|".join(setting.allowed) or setting.kind.value.upper(),
        help=setting_help(setting),
        show_default=False,
    )
    return keyword(_field(setting.flag), list[str] | None if several else str | None, option)


def _shown(default: object) -> str:
    """The default as it would be written."""
    if isinstance(default, bool):
        return str(default).lower()
    return (",".join(str(item) for item in default) if isinstance(default, tuple) else str(default)) or "empty"
