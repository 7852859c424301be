"""The configuration file, version v1: one pass over its tree, with everything that is wrong collected.

The file is shared by several programs; what it says to feature discovery is read here as well, and is for that program.
Whether a value may be is not decided here, since a flag may take its place: only that it is of its kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpustow.config.filekeys import keys_below
from gpustow.config.goyaml import parse
from gpustow.config.health import HealthConfig, read_health
from gpustow.config.patterns import ResourcePattern, read_patterns
from gpustow.config.placement import ResourcePlacement, read_placement
from gpustow.config.section import Findings, Section
from gpustow.config.setting import Setting, Value
from gpustow.config.settings import BY_FORMER_KEY, BY_KEY
from gpustow.config.sharing import ReplicatedResources, read_sharing
from gpustow.config.value import read_node
from gpustow.errors import ConfigError, Problem

VERSION = "v1"

_SECTIONS = ("flags", "flags.plugin", "flags.gfd", "imex", "gpus", "cdi", "telemetry")
"""The sections that hold settings, each after the one that it is in."""


@dataclass(slots=True)
class FileContent:
    """What a file says: values by the path of their setting, names, sharing, placement, health, and the findings."""

    values: dict[str, Value] = field(default_factory=dict)
    gpu_patterns: tuple[ResourcePattern, ...] = ()
    mig_patterns: tuple[ResourcePattern, ...] = ()
    time_slicing: ReplicatedResources | None = None
    mps: ReplicatedResources | None = None
    placement: tuple[ResourcePlacement, ...] = ()
    health: HealthConfig = field(default_factory=HealthConfig)
    findings: Findings = field(default_factory=Findings)


def read_file(text: str, source: str) -> FileContent:
    """The content of the configuration file `source`, and in its findings what of it cannot be used.

    Raises ConfigError if it is no YAML.
    """
    try:
        document = parse(text)
    except ValueError as error:
        raise ConfigError(f"file {source}", [Problem("", str(error))]) from error
    content = FileContent()
    content.findings.unknown.extend(document.doubtful)
    top = Section({} if document.root is None else document.root, "", content.findings)
    if _is_config_map(document.root):
        content.findings.unknown.append(Problem("", _config_map(document.root)))
        return content
    if top.is_mapping():
        _read_top(top.folded(keys_below("")), content)
    return content


def _is_config_map(root: Any) -> bool:
    return isinstance(root, dict) and root.get("kind") == "ConfigMap" and "apiVersion" in root


def _config_map(root: Mapping[str, Any]) -> str:
    data = root.get("data")
    keys = [f"data.{key}" for key in data] if isinstance(data, dict) else []
    where = f"the text under its {' or '.join(keys)}" if keys else "a text under its data, which has none"
    return (
        f"this is the manifest of a ConfigMap, which has no effect here; the configuration is {where}: give that as a "
        "file of its own"
    )


def _read_top(top: Section, content: FileContent) -> None:
    _check_version(top.child("version"))
    sections: dict[str, Section] = {"": top}
    for path in _SECTIONS:
        parent, _, key = path.rpartition(".")
        sections[path] = sections[parent].mapping(key, keys_below(path))
        _read_settings(sections[path], content)
    content.gpu_patterns, content.mig_patterns = read_patterns(top)
    content.time_slicing, content.mps = read_sharing(top)
    if top.value("placement") is not None:
        content.placement = read_placement(top.child("placement"))
    if top.value("health") is not None:
        content.health = read_health(top.child("health"))


def _by_former_key(section: Section, child: Section) -> Setting | None:
    """The setting that is given by a key that is no more, unless its own key stands there too; tells of it."""
    setting = BY_FORMER_KEY.get(child.path)
    if setting is None:
        return None
    right = setting.key.rpartition(".")[2]
    if section.value(right) is not None:
        child.warn(f"it is without effect, because of {right!r}")
        return None
    child.warn(f"it is read as {right!r}; write it so")
    return setting


def _check_version(version: Section) -> None:
    text = "" if version.node is None else str(version.node).strip()
    if text and version.node != VERSION:
        version.refuse(f"unknown version: {text} (only {VERSION} is known)")


def _read_settings(section: Section, content: FileContent) -> None:
    for key in section.keys():  # noqa: SIM118 - a method, not a mapping
        child = section.child(key)
        setting = BY_KEY.get(child.path) or _by_former_key(section, child)
        if setting is None:
            continue
        try:
            value = read_node(setting, child.node)
        except ValueError as error:
            child.refuse(str(error))
            continue
        if value is not None:
            content.values[setting.key] = value
