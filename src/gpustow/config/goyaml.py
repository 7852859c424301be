"""YAML as the Go library of v0.20.0 reads it, so that a file means here what it means there.

PyYAML follows YAML 1.1 to the letter and reads `1:0` as sixty and `2026-12-01` as a date; the Go library reads both as
text, which matters for MIG indices and names. Booleans are `true`, `yes`, `on`, `y` and their opposites; numbers are
decimal, `0x`, `0o`, `0b`, or octal with a leading zero. A float without a fraction is an integer, because the Go side
goes through JSON.

A key that stands twice is not an error there: the last one counts. Here it is found and told (`Document.duplicates`).
"""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import yaml

from gpustow.errors import Problem

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_BOOLEAN = re.compile(r"^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$")
_TRUE = frozenset({"y", "yes", "true", "on"})
_INTEGER = re.compile(r"^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_FLOAT = re.compile(
    r"^(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)


@dataclass(frozen=True, slots=True)
class Document:
    """What a file holds, and the keys that stand twice in it."""

    root: Any
    duplicates: tuple[Problem, ...] = ()


def parse(text: str) -> Document:
    """Read the one document of `text`. Raises ValueError, saying where, if it is not YAML."""
    loader = _Loader(text)
    try:
        root = loader.get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise ValueError(" ".join(str(error).split()) or "it is nested too deeply") from error
    finally:
        loader.dispose()
    return Document(root, tuple(loader.duplicates))


class _Loader(_Base):  # type: ignore[misc] # either of two base classes that PyYAML leaves untyped
    """Builds mappings, lists and scalars, nothing else."""

    yaml_implicit_resolvers: dict[str | None, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's name

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.duplicates: list[Problem] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    self.duplicates.append(
                        Problem(f"line {line}", f"the key {key.value!r} stands twice; the last counts")
                    )
                seen.add(key.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping

    def boolean(self, node: yaml.ScalarNode) -> bool:
        """A boolean by any of its words."""
        return node.value.lower() in _TRUE

    def integer(self, node: yaml.ScalarNode) -> int:
        """An integer to the base that its prefix names."""
        text = node.value.replace("_", "")
        digits = text.lstrip("+-")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        return int(text, 8) if octal else int(text, 0)

    def number(self, node: yaml.ScalarNode) -> float | int:
        """A float, or an integer if it has no fraction."""
        value: float = self.construct_yaml_float(node)
        return int(value) if value.is_integer() else value


_FIRST_OF_NUMBERS = list("-+.0123456789")
_TAGS: tuple[tuple[str, re.Pattern[str], list[str]], ...] = (
    ("tag:yaml.org,2002:bool", _BOOLEAN, list("yYnNtTfFoO")),
    ("tag:yaml.org,2002:int", _INTEGER, _FIRST_OF_NUMBERS),
    ("tag:yaml.org,2002:float", _FLOAT, _FIRST_OF_NUMBERS),
    ("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:merge", re.compile(r"^<<$"), ["<"]),
)
for _tag, _pattern, _first in _TAGS:
    _Loader.add_implicit_resolver(_tag, _pattern, _first)
_Loader.add_constructor("tag:yaml.org,2002:bool", _Loader.boolean)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.number)
