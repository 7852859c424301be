"""From flags, environment and file to the configuration that holds: flag > environment > file > default.

A key that stands in the file with a value is kept even if the value is empty, so that it is checked and refused like
any other; null counts as absent. Whether a value may be is decided for the one that holds; one that cannot be and that
a flag or variable takes the place of is told. Everything that is wrong is told at once. What is accepted and has no
effect is told in warnings: one for each key that is unknown, one for each pair of settings that go together badly.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from gpustow.config.config import Config, ConfigFile, LoadedConfig, Origin
from gpustow.config.file import FileContent, read_file
from gpustow.config.given import Given, former_names, read_given, visible_devices
from gpustow.config.interplay import interplay
from gpustow.config.settings import BY_KEY, FEATURE_SETTINGS, SETTINGS
from gpustow.config.strategies import DeviceDiscoveryStrategy, DeviceIdStrategy, DeviceListStrategy, MigStrategy
from gpustow.config.xidswitches import XidSwitches, read_switches
from gpustow.errors import ConfigError, Problem

_WORDS: Mapping[str, type[Enum]] = {
    "mig-strategy": MigStrategy,
    "device-id-strategy": DeviceIdStrategy,
    "device-discovery-strategy": DeviceDiscoveryStrategy,
}
"""The settings whose words `Config` has as members of an enumeration."""


def _read_text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def load_config(
    flags: Mapping[str, object], environ: Mapping[str, str], read_text: Callable[[str], str] = _read_text
) -> LoadedConfig:
    """The configuration from the flags that were given (by long name, one text or several), environment and file.

    Raises ConfigError if any of the three is refused or the file cannot be read.
    """
    given, problems = read_given(flags, environ)
    if problems:
        raise ConfigError("from flags and environment", problems)
    path = str(given["config-file"].value) if "config-file" in given else ""
    strict = "strict-config" in given and given["strict-config"].value is True
    text = _read(path, read_text) if path else ""
    content = read_file(text, path) if path else FileContent()
    warnings = [*former_names(given), *_tell_findings(content, path, strict=strict)]
    warnings += [f"{path}: {problem}" for problem in _merge(given, content)]
    switches, left_out = read_switches(environ)
    warnings += left_out
    config = _config(given, content, environ, switches)
    if problems := [*content.findings.refused, *_misfits(given), *_clashes(config, given)]:
        raise ConfigError(_source(problems, given, path), problems, warnings=warnings)
    warnings += interplay(config)
    return LoadedConfig(
        config=config,
        origins={
            setting.flag: given[setting.flag].origin if setting.flag in given else Origin.DEFAULT
            for setting in SETTINGS
        },
        warnings=tuple(warnings),
        file=ConfigFile(path, hashlib.sha256(text.encode()).hexdigest()) if path else None,
    )


def _read(path: str, read_text: Callable[[str], str]) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        reason = "it is not a text file" if isinstance(error, UnicodeError) else str(error)
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror
        raise ConfigError(
            f"file {path}",
            [Problem("", f"it cannot be read: {reason}")],
            advice="Give the path of a file that can be read here.",
        ) from error


def _tell_findings(content: FileContent, path: str, *, strict: bool) -> list[str]:
    """The warnings about the file; with `strict`, keys without effect raise ConfigError instead."""
    if strict and content.findings.unknown:
        raise ConfigError(f"file {path}", content.findings.unknown, advice="--strict-config refuses such keys.")
    return [f"{path}: {problem}" for problem in (*content.findings.unknown, *content.findings.warnings)]


def _merge(given: dict[str, Given], content: FileContent) -> list[Problem]:
    """Adds what the file gives where nothing else does. What could not be and need not is returned."""
    harmless = []
    for key, value in content.values.items():
        setting = BY_KEY[key]
        if setting.flag not in given:
            given[setting.flag] = Given(value, Origin.FILE, key)
            continue
        try:
            setting.check(value)
        except ValueError as error:
            harmless.append(Problem(key, f"{error}; without effect, because of {given[setting.flag].name}"))
    return harmless


def _misfits(given: Mapping[str, Given]) -> list[Problem]:
    """The values that cannot be."""
    problems = []
    for setting in (*SETTINGS, *FEATURE_SETTINGS):
        if setting.flag in given:
            try:
                setting.check(given[setting.flag].value)
            except ValueError as error:
                problems.append(Problem(given[setting.flag].name, str(error)))
    return problems


def _clashes(config: Config, given: Mapping[str, Given]) -> list[Problem]:
    """The values that can be, but not together."""
    problems = []
    if config.mps is not None and config.mig_strategy is MigStrategy.MIXED:
        problems.append(Problem("sharing.mps", "using --mig-strategy=mixed is not supported with MPS"))
    if config.mps is not None and not config.mps_root:
        problems.append(Problem("sharing.mps", "using MPS requires --mps-root to be specified"))
    if config.select_gpus and config.exclude_gpus:
        problems.append(
            Problem(given["exclude-gpus"].name, f"it cannot be used together with {given['select-gpus'].name}")
        )
    return problems


def _source(problems: Sequence[Problem], given: Mapping[str, Given], path: str) -> str:
    """Where the problems are: in the file alone, or not."""
    elsewhere = {each.name for each in given.values() if each.origin is not Origin.FILE}
    if path and not any(problem.path in elsewhere for problem in problems):
        return f"file {path}"
    return f"from flags, environment and file {path}" if path else "from flags and environment"


def _config(
    given: Mapping[str, Given], content: FileContent, environ: Mapping[str, str], switches: XidSwitches
) -> Config:
    """The configuration; words that cannot be are left at their default, for they are refused anyway."""
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        value = given[setting.flag].value if setting.flag in given else setting.default
        words = _WORDS.get(setting.flag)
        if words is not None:
            values[setting.attribute] = words(value if value in setting.allowed else setting.default)
        else:
            values[setting.attribute] = value
    values["device_list_strategies"] = _list_strategies(values["device_list_strategies"])
    values["dev_root"] = values["dev_root"] or values["driver_root"]
    return Config(
        **values,
        visible_devices=visible_devices(environ),
        gpu_patterns=content.gpu_patterns,
        mig_patterns=content.mig_patterns,
        time_slicing=content.time_slicing,
        mps=content.mps,
        placement=content.placement,
        health=content.health,
        xid_switches=switches,
    )


def _list_strategies(words: Sequence[str]) -> tuple[DeviceListStrategy, ...]:
    """The strategies in the order given, each once."""
    known = {strategy.value: strategy for strategy in DeviceListStrategy}
    return tuple(known[word] for word in dict.fromkeys(words) if word in known)
