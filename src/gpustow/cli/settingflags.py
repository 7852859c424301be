"""The flags of the table of settings, for the commands that take them, so that flag and table cannot differ.

What is given is passed on as text; what it means is the configuration's business.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from gpustow.cli.arguments import Flag
from gpustow.config import SETTINGS, Kind, Setting

SETTING_FLAGS: Sequence[Flag] = [Flag(setting.names, boolean=setting.kind is Kind.BOOLEAN) for setting in SETTINGS]
"""For rewriting a command line: the names of every flag, and which may stand alone."""


FlagWords = Annotated[
    list[str] | None,
    typer.Option("--flag", metavar="NAME=VALUE", help="A flag that the plugin would have as well; repeatable."),
]
"""An option of commands that ask what the plugin would do; `flags_of` reads it."""


def flags_of(words: Sequence[str]) -> dict[str, object]:
    """The flags in words NAME=VALUE, by name. Raises typer.BadParameter for one that the plugin does not have."""
    known = {name: own for own in SETTING_FLAGS for name in own.names}
    flags: dict[str, list[str]] = {}
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if name not in known:
            raise typer.BadParameter(f"the plugin has no flag {name!r}{_meant(name, known)}", param_hint="--flag")
        if not equals:
            like = f"{name}=true" if known[name].boolean else f"{name}=VALUE"
            raise typer.BadParameter(f"{word!r} lacks a value; write {like}", param_hint="--flag")
        flags.setdefault(known[name].names[0], []).append(value)
    return dict(flags)


def _meant(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else "; `gpustow plugin --help` lists those that it has"


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
    """The help text: what the setting does, its default, and where else it can be set."""
    places = [f"env {env}" for env in setting.envs] + ([f"file {setting.key}"] if setting.key else [])
    return f"{setting.help} [{'; '.join([f'default {_shown(setting.default)}', *places])}]"


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
