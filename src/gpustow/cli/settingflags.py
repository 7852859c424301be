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
    """A keyword parameter for each setting, as the command library reads them."""
    return [_parameter(setting) for setting in SETTINGS]


def keyword(name: str, annotation: Any, default: object) -> inspect.Parameter:
    """A keyword parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def given_settings(given: Mapping[str, Any]) -> dict[str, object]:
    """Those of the parameters that were given, by the long name of the flag."""
    return {
        setting.flag: given[_parameter_name(setting)]
        for setting in SETTINGS
        if given[_parameter_name(setting)] not in (None, [])
    }


def setting_help(setting: Setting) -> str:
    """The help text: what the setting does, whether it acts, its default, and where else it can be set."""
    acts = "" if setting.acts else " Does not act yet."
    places = [f"env {env}" for env in setting.envs] + ([f"file {setting.key}"] if setting.key else [])
    return f"{setting.help}{acts} [{'; '.join([f'default {_shown(setting.default)}', *places])}]"


def _parameter_name(setting: Setting) -> str:
    return setting.flag.replace("-", "_")


def _parameter(setting: Setting) -> inspect.Parameter:
    several = setting.kind in {Kind.TEXTS, Kind.INTEGERS}
    option = typer.Option(
        None,
        *(f"--{name}" for name in setting.names),
        metavar="true|false"
        if setting.kind is Kind.BOOLEAN
        else "|".join(setting.allowed) or setting.kind.value.upper(),
        help=setting_help(setting),
        show_default=False,
    )
    return keyword(_parameter_name(setting), list[str] | None if several else str | None, option)


def _shown(default: object) -> str:
    """The default as it would be written."""
    if isinstance(default, bool):
        return str(default).lower()
    return (",".join(str(item) for item in default) if isinstance(default, tuple) else str(default)) or "empty"
