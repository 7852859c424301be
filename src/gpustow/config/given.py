"""What flags and environment say: the words for each setting, made values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpustow.config.config import Origin
from gpustow.config.setting import Setting, Value
from gpustow.config.settings import BY_FLAG, SETTINGS
from gpustow.config.value import read_words
from gpustow.errors import Problem

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
"""The variable by which NVIDIA's container runtime gives our own container its GPUs."""

_NOT_A_LIST = frozenset({"", "all", "none", "void"})


@dataclass(frozen=True, slots=True)
class Given:
    """A value that was given, where, and what names it there (`--flag`, the variable, the key)."""

    value: Value
    origin: Origin
    name: str


def read_given(flags: Mapping[str, object], environ: Mapping[str, str]) -> tuple[dict[str, Given], list[Problem]]:
    """What flags (by any of their names) and environment give, by the long name of the flag, and what is wrong."""
    given: dict[str, Given] = {}
    problems: list[Problem] = []
    words_of_flags = {name: _words(value) for name, value in flags.items()}
    for setting in SETTINGS:
        name, words, origin = _source(setting, words_of_flags, environ)
        if not words:
            continue
        try:
            value = read_words(setting, words, empty_is_unset=origin is Origin.ENVIRONMENT)
        except ValueError as error:
            problems.append(Problem(name, str(error)))
            continue
        if value is not None:
            given[setting.flag] = Given(value, origin, name)
    return given, problems


def former_names(given: Mapping[str, Given]) -> list[str]:
    """A notice for each value that was given by a name that is no more, by the long names of the flags."""
    notices = []
    for flag, value in given.items():
        setting = BY_FLAG[flag]
        if setting.former and value.name == f"--{setting.former.flag}":
            notices.append(f"{value.name} is read as --{flag}; write it so")
        elif setting.former and value.name == setting.former.env:
            notices.append(f"{value.name} is read as {setting.envs[0]}; write it so")
    return notices


def visible_devices(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The devices that our own container was given by name; empty if it was given all, or none in this way."""
    text = environ.get(VISIBLE_DEVICES, "").strip()
    if text in _NOT_A_LIST or text.startswith("/"):
        return ()
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _source(
    setting: Setting, flags: Mapping[str, Sequence[str]], environ: Mapping[str, str]
) -> tuple[str, Sequence[str], Origin]:
    """What names the setting, the words given for it, and where they come from."""
    for name in setting.names:
        if name in flags:
            return f"--{name}", flags[name], Origin.FLAG
    for variable in (*setting.envs, *([setting.former.env] if setting.former else [])):
        if variable in environ:
            return variable, [environ[variable]], Origin.ENVIRONMENT
    return "", [], Origin.DEFAULT


def _words(value: object) -> Sequence[str]:
    """The words of one flag as the command line gives them."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, (list, tuple)):
        return [str(word) for word in value]
    return [str(value)]
