"""From flags, environment and file to the configuration that holds: flag > environment > file > default.

A key that stands in the file with a value is kept even if the value is empty, so that it is checked and refused like
any other; null counts as absent. Everything that is wrong in one place is told at once. What is accepted and has no
effect is told in warnings: one for keys that are unknown, one for settings of v0.20.0 that do not act yet.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpustow.config.config import Config, LoadedConfig, Origin
from gpustow.config.file import FileContent, read_file
from gpustow.config.settings import BY_FLAG, SETTINGS, Setting, Value
from gpustow.config.strategies import DeviceIdStrategy, DeviceListStrategy, MigStrategy
from gpustow.config.value import check_allowed, read_words
from gpustow.errors import ConfigError, Problem

Given = dict[str, tuple[Value, Origin]]
"""Values by the long name of their flag, and where they come from."""

_ACTING_LIST_STRATEGIES = (DeviceListStrategy.ENVVAR,)


def _read_text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def load_config(
    flags: Mapping[str, object], environ: Mapping[str, str], read_text: Callable[[str], str] = _read_text
) -> LoadedConfig:
    """The configuration from the flags that were given (by long name, one text or several), environment and file.

    Raises ConfigError if any of the three is refused or the file cannot be read.
    """
    given = _from_words(flags, environ)
    path = str(given.get("config-file", ("",))[0])
    strict = given.get("strict-config", (False,))[0] is True
    content = _read(path, read_text) if path else FileContent()
    warnings = _tell_findings(content, path, strict=strict)
    for key, value in content.values.items():
        setting = next(setting for setting in SETTINGS if setting.key == key)
        given.setdefault(setting.flag, (value, Origin.FILE))
    values = {
        setting.flag: given[setting.flag][0] if setting.flag in given else setting.default for setting in SETTINGS
    }
    if idle := _without_effect(given, content):
        warnings.append(f"accepted, but without effect in this version: {', '.join(idle)}")
    origins = {
        setting.flag: given[setting.flag][1] if setting.flag in given else Origin.DEFAULT for setting in SETTINGS
    }
    return LoadedConfig(_config(values, content), origins, tuple(warnings))


def _from_words(flags: Mapping[str, object], environ: Mapping[str, str]) -> Given:
    """What flags and environment say. Raises ConfigError with all that is wrong there."""
    given: Given = {}
    problems: list[Problem] = []
    words_of_flags = {BY_FLAG[name].flag: _words(value) for name, value in flags.items()}
    for setting in SETTINGS:
        name, words, origin = _source(setting, words_of_flags, environ)
        if not words:
            continue
        try:
            value = read_words(setting, words, empty_is_false=origin is Origin.ENVIRONMENT)
            if value is not None:
                check_allowed(setting, value)
                given[setting.flag] = (value, origin)
        except ValueError as error:
            problems.append(Problem(name, str(error)))
    if problems:
        raise ConfigError("from flags and environment", problems)
    return given


def _source(
    setting: Setting, flags: Mapping[str, Sequence[str]], environ: Mapping[str, str]
) -> tuple[str, Sequence[str], Origin]:
    """What names the setting, the words given for it, and where they come from."""
    if setting.flag in flags:
        return f"--{setting.flag}", flags[setting.flag], Origin.FLAG
    for variable in setting.envs:
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


def _read(path: str, read_text: Callable[[str], str]) -> FileContent:
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(
            f"file {path}",
            [Problem("", f"it cannot be read: {reason}")],
            advice="Set --config-file to a readable file.",
        ) from error
    return read_file(text, path)


def _tell_findings(content: FileContent, path: str, *, strict: bool) -> list[str]:
    """The warnings about the file; with `strict`, keys without effect raise ConfigError instead."""
    if strict and content.findings.unknown:
        raise ConfigError(f"file {path}", content.findings.unknown, advice="--strict-config refuses such keys.")
    return [f"{path}: {problem}" for problem in (*content.findings.unknown, *content.findings.warnings)]


def _without_effect(given: Given, content: FileContent) -> list[str]:
    """What was set to something else than its default, and does not act."""
    idle = []
    for setting in SETTINGS:
        if setting.flag not in given:
            continue
        value, origin = given[setting.flag]
        name = {Origin.FILE: setting.key, Origin.FLAG: f"--{setting.flag}"}.get(origin) or " or ".join(setting.envs)
        if setting.flag == "device-list-strategy":
            words = value if isinstance(value, tuple) else ()
            idle += [f"{name} {word}" for word in words if DeviceListStrategy(word) not in _ACTING_LIST_STRATEGIES]
        elif not setting.acts and value != setting.default:
            idle.append(name)
    return idle + content.unacted


def _config(values: Mapping[str, Value], content: FileContent) -> Config:
    strategies = tuple(DeviceListStrategy(word) for word in dict.fromkeys(_texts(values["device-list-strategy"])))
    acting = tuple(strategy for strategy in strategies if strategy in _ACTING_LIST_STRATEGIES)
    return Config(
        config_file=str(values["config-file"]),
        strict_config=values["strict-config"] is True,
        mig_strategy=MigStrategy(values["mig-strategy"]),
        fail_on_init_error=values["fail-on-init-error"] is True,
        device_list_strategies=acting or _ACTING_LIST_STRATEGIES,
        device_id_strategy=DeviceIdStrategy(values["device-id-strategy"]),
        shared_devices_allocation_policy=str(values["shared-devices-allocation-policy"]),
        kubelet_socket=str(values["kubelet-socket"]),
        time_slicing=content.time_slicing,
    )


def _texts(value: Value) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, tuple) else (str(value),)
