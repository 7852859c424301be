"""YAML in which every scalar is text, and what is expected decides how it is read.

YAML 1.1 guesses types from looks: `0000:07:00.0` becomes a number to base 60, `12.10` loses its zero, `010` is eight,
`no` is false. An input file whose every field has a declared type needs no guesses: here all scalars arrive as the text
that is written, and the model of the file turns them into what the field is. Keys that stand twice are refused,
because the reader of the file cannot see which one counts.
"""

from collections.abc import Hashable
from typing import Any

import yaml

from gpustow.yamlfault import fault_in_words

_Base: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class DuplicateKey(Exception):  # noqa: N818 - names the finding
    """A key stands twice in one mapping; `line` and `column` count from 1."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(f"line {line}: the key {key!r} stands twice in one place")
        self.key = key
        self.line = line


class _TextLoader(_Base):  # type: ignore[misc] # either of two base classes that PyYAML leaves untyped
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise DuplicateKey(key.value, key.start_mark.line + 1)
                seen.add(key.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def parse_plain_yaml(text: str) -> Any:
    """The document: mappings, lists and text. An empty value is the text ``""``.

    Raises:
        ValueError: the text is not YAML, or a key stands twice; the message says where.
    """
    try:
        return yaml.load(text, _TextLoader)  # noqa: S506 - builds nothing but mappings, lists and text
    except DuplicateKey as error:
        raise ValueError(str(error)) from error
    except yaml.YAMLError as error:
        raise ValueError(fault_in_words(error, text)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
