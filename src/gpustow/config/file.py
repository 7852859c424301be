"""The configuration file, version v1: one pass over its tree, with everything that is wrong collected.

The file is shared by several programs: what it says to feature discovery (`flags.gfd`) is none of the plugin's
business and passed over. `resources` (patterns) is dropped with a warning, as in v0.20.0.
"""

from dataclasses import dataclass, field

from gpustow.config.goyaml import parse
from gpustow.config.section import Findings, Section
from gpustow.config.settings import BY_KEY, Value
from gpustow.config.sharing import ReplicatedResources, read_replicated
from gpustow.config.value import check_allowed, read_node
from gpustow.errors import ConfigError, Problem

VERSION = "v1"

_TOP = ("version", "flags", "resources", "sharing", "imex")
_SHARING = ("timeSlicing", "mps")
_GFD = ("oneshot", "noTimestamp", "outputFile", "sleepInterval", "machineTypeFile")
_RESOURCES = ("gpus", "mig")


def _keys_below(path: str) -> tuple[str, ...]:
    """The keys of settings directly in the section at `path`."""
    return tuple(key.rpartition(".")[2] for key in BY_KEY if key.rpartition(".")[0] == path)


_FLAGS = (*_keys_below("flags"), "useNodeFeatureAPI", "plugin", "gfd")
_PLUGIN = _keys_below("flags.plugin")
_IMEX = _keys_below("imex")


@dataclass(slots=True)
class FileContent:
    """What a file says: values by the path of their setting, sharing, and the findings.

    `unacted` are the paths of sections that say something and have no effect yet.
    """

    values: dict[str, Value] = field(default_factory=dict)
    time_slicing: ReplicatedResources | None = None
    unacted: list[str] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)


def read_file(text: str, source: str) -> FileContent:
    """The content of the configuration file `source`. Raises ConfigError if it cannot be used."""
    try:
        document = parse(text)
    except ValueError as error:
        raise ConfigError(f"file {source}", [Problem("", str(error))]) from error
    content = FileContent()
    content.findings.unknown.extend(document.doubtful)
    top = Section({} if document.root is None else document.root, "", content.findings)
    if top.is_mapping():
        _read_top(top.folded(_TOP), content)
    if content.findings.refused:
        raise ConfigError(f"file {source}", content.findings.refused)
    return content


def _read_top(top: Section, content: FileContent) -> None:
    _check_version(top.child("version"))
    flags = _mapping(top, "flags", _FLAGS)
    _read_settings(flags, _keys_below("flags"), content)
    _read_settings(_mapping(flags, "plugin", _PLUGIN), _PLUGIN, content)
    _mapping(flags, "gfd", _GFD)
    _read_settings(_mapping(top, "imex", _IMEX), _IMEX, content)
    resources = _mapping(top, "resources", _RESOURCES)
    if any(resources.value(key) for key in _RESOURCES):
        resources.warn("choosing resource names by pattern is not supported yet and ignored")
    _read_sharing(_mapping(top, "sharing", _SHARING), content)


def _mapping(parent: Section, key: str, known: tuple[str, ...]) -> Section:
    """The section under `key`, empty if there is none; refuses what is no section."""
    child = parent.child(key)
    if child.node is None or not child.is_mapping():
        return Section({}, child.path, child.findings)
    return child.folded(known)


def _check_version(version: Section) -> None:
    text = "" if version.node is None else str(version.node).strip()
    if text and version.node != VERSION:
        version.refuse(f"unknown version: {text} (only {VERSION} is known)")


def _read_settings(section: Section, keys: tuple[str, ...], content: FileContent) -> None:
    for key in keys:
        child = section.child(key)
        setting = BY_KEY[child.path]
        try:
            value = read_node(setting, child.node)
            if value is not None:
                check_allowed(setting, value)
                content.values[setting.key] = value
        except ValueError as error:
            child.refuse(str(error))


def _read_sharing(sharing: Section, content: FileContent) -> None:
    if "timeSlicing" in sharing.keys():  # noqa: SIM118 - a method, not a mapping
        content.time_slicing = read_replicated(sharing.child("timeSlicing"))
    mps = sharing.child("mps")
    if mps.node is not None:
        read_replicated(mps)
        content.unacted.append(mps.path)
