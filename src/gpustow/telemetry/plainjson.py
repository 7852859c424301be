"""From frozen values to plain data for JSON: the names of fields in camel case, enumerations by their values.

Own keys of mappings are data and stay as they are.
"""

from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

_ATOMS = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """The value as numbers, texts, lists and dictionaries."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if is_dataclass(kind):
        return {key: plain(getattr(value, name)) for name, key in _keys(kind)}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value.value if isinstance(value, Enum) else value


@cache
def _keys(kind: Any) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, camel_case(field.name)) for field in fields(kind))


def camel_case(name: str) -> str:
    """`memory_bytes` as `memoryBytes`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
