"""The JSON schema of the configuration file, made from the table of settings: for editors and for checks in CI.

It says what acts without a warning. The daemon itself takes more: keys in another case, and whatever v0.20.0 ignores.
"""

from collections.abc import Mapping
from typing import Any

from gpustow.config.devicechoice import INDEX_PATTERN, UUID_PATTERN
from gpustow.config.faultrule import RULE_PATTERN
from gpustow.config.filekeys import HEALTH_EVENT_KEYS, HEALTH_STATE_KEYS, PATTERNS_KEYS, SHARING_KEYS
from gpustow.config.health import XID_PATTERN, XidPolicy
from gpustow.config.setting import Kind, Setting
from gpustow.config.settings import BY_KEY
from gpustow.config.strategies import SHARED_POLICIES

_TYPES: Mapping[Kind, dict[str, Any]] = {
    Kind.TEXT: {"type": "string"},
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.INTEGERS: {"type": "array", "items": {"type": "integer"}},
    Kind.DURATION: {"type": ["string", "integer"]},
}
_NAME = {
    "type": "string",
    "description": "A resource; nvidia.com/ is added where it is missing.",
    "pattern": r"^(nvidia\.com/)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
    "maxLength": 63,
}


def file_schema() -> dict[str, Any]:
    """The schema, draft 2020-12."""
    root = _section("The configuration of NVIDIA's device plugin v0.20.0 and of gpustow.")
    root["properties"]["version"] = {"const": "v1"}
    for key, setting in BY_KEY.items():
        *sections, name = key.split(".")
        node = root
        for section in sections:
            node = node["properties"].setdefault(section, _section())
        node["properties"][name] = _setting(setting)
    root["properties"] |= {
        "resources": _object({kind: _list(_pattern_entry()) for kind in PATTERNS_KEYS}),
        "sharing": _object({kind: _replicated() for kind in SHARING_KEYS}) | {"maxProperties": 1},
        "placement": _object({"resources": _list(_placement_entry(), least=1)}, required=["resources"]),
        "health": _health(),
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "gpustow configuration", **root}


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": ["object", "null"], "properties": properties, "additionalProperties": False}
    return schema | ({"type": "object", "required": required} if required else {})


def _section(description: str = "") -> dict[str, Any]:
    return ({"description": description} if description else {}) | _object({})


def _list(items: dict[str, Any], *, least: int = 0) -> dict[str, Any]:
    if least:
        return {"type": "array", "items": items, "minItems": least}
    return {"type": ["array", "null"], "items": items}


def _setting(setting: Setting) -> dict[str, Any]:
    default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
    about = {"description": setting.help, "default": default}
    if setting.whole:
        return about | {"enum": [list(value) if isinstance(value, tuple) else value for value in setting.whole]}
    if setting.kind is Kind.TEXTS:
        item = {"enum": list(setting.allowed)} if setting.allowed else {"type": ["string", "integer"]}
        return about | {"oneOf": [item, {"type": "array", "items": item, "minItems": setting.least}]}
    if setting.pattern:
        return about | {"type": "string", "pattern": f"^{setting.pattern}$"}
    return about | ({"enum": list(setting.allowed)} if setting.allowed else _TYPES[setting.kind])


def _pattern_entry() -> dict[str, Any]:
    pattern = {"type": "string", "description": "A model or profile; * is any run of characters."}
    return _object({"pattern": pattern, "name": _NAME}, required=["pattern", "name"])


def _replicated() -> dict[str, Any]:
    references = {
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": f"^({INDEX_PATTERN}|{UUID_PATTERN})$"},
        ]
    }
    entry = _object(
        {
            "name": _NAME,
            "rename": _NAME,
            "devices": {
                "description": "Which devices of the resource: all, a number of them, or a list of indices and UUIDs.",
                "oneOf": [{"const": "all"}, {"type": "integer", "minimum": 1}, {"type": "array", "items": references}],
            },
            "replicas": {"type": "integer", "minimum": 2},
        },
        required=["name", "replicas"],
    )
    booleans = {key: {"type": "boolean"} for key in ("renameByDefault", "failRequestsGreaterThanOne")}
    return _object(booleans | {"resources": _list(entry, least=1)}, required=["resources"])


def _placement_entry() -> dict[str, Any]:
    return _object(
        {
            "name": _NAME,
            "policy": {"enum": list(SHARED_POLICIES)},
            "cap": {"type": "integer", "minimum": 1},
            "distinct": {"const": "required"},
            "together": {"const": "required"},
        },
        required=["name"],
    )


def _health() -> dict[str, Any]:
    rule = {"type": "string", "pattern": RULE_PATTERN, "description": "ignore, fatal, or such as 3 in 24h."}
    duration = {"type": "string"}
    xids = {"type": ["object", "null"], "patternProperties": {XID_PATTERN: rule}, "additionalProperties": False}
    return _object(
        {
            "xidPolicy": {"enum": [policy.value for policy in XidPolicy]},
            "xids": xids,
            "unknownXids": rule,
            "events": _object(
                dict.fromkeys(HEALTH_EVENT_KEYS, rule)
                | {key: {"enum": ["ignore", "fatal"]} for key in HEALTH_STATE_KEYS}
            ),
            "checkInterval": duration,
            "rescanInterval": duration,
            "recovery": _object(
                {
                    "enabled": {"type": "boolean"},
                    "holdTime": duration,
                    "unknownIsProof": {"type": "boolean"},
                    "flapCount": {"type": "integer", "minimum": 1, "maximum": 1000},
                    "flapWindow": duration,
                    "flapHoldTime": duration,
                }
            ),
        }
    )
