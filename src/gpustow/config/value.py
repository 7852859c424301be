"""Reading the value of a setting from where it was given: a flag, an environment variable, the file.

The words are those of Go's libraries, as v0.20.0 takes them. In flags and environment everything is text: lists are
split at commas and trimmed, and an environment variable that is set but empty counts as set: to false, to the empty
text, to a list with one empty item; a list of numbers is then left alone. In the file a value has a type, a text that
is no list is a list of one, and commas do not split.
"""

from collections.abc import Sequence
from typing import Any

from gpustow.config.settings import Kind, Setting, Value

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def read_words(setting: Setting, words: Sequence[str], *, empty_is_false: bool = False) -> Value | None:
    """The value of `setting` from the texts given for it; all count for a list, else the last.

    None means that the setting is left alone. Raises ValueError if a text is not of the setting's kind.
    """
    match setting.kind:
        case Kind.TEXT:
            return words[-1]
        case Kind.BOOLEAN:
            return _boolean(words[-1], empty_is_false=empty_is_false)
        case Kind.TEXTS:
            return tuple(item.strip() for word in words for item in word.split(","))
        case Kind.INTEGERS:
            items = [item.strip() for word in words if word.strip() for item in word.split(",")]
            return tuple(_integer(item) for item in items) if items else None


def _boolean(word: str, *, empty_is_false: bool) -> bool:
    if word in _TRUE:
        return True
    if word in _FALSE or (empty_is_false and not word):
        return False
    raise ValueError(f"{word!r} is not true or false")


def _integer(word: str) -> int:
    try:
        return int(word, 0)
    except ValueError:
        raise ValueError(f"{word!r} is not a number") from None


def read_node(setting: Setting, node: Any) -> Value | None:
    """The value of `setting` from the file; None (null) leaves the setting alone. Raises ValueError."""
    if node is None:
        return None
    match setting.kind:
        case Kind.TEXT:
            return _text(node)
        case Kind.BOOLEAN:
            if isinstance(node, bool):
                return node
            raise ValueError(f"{node!r} is not true or false")
        case Kind.TEXTS:
            return _texts(setting, node)
        case Kind.INTEGERS:
            if isinstance(node, list) and all(isinstance(item, int) and not isinstance(item, bool) for item in node):
                return tuple(node)
            raise ValueError(f"{node!r} is not a list of numbers")


def _text(node: Any) -> str:
    if isinstance(node, bool):
        return "true" if node else "false"
    if isinstance(node, (str, int, float)):
        return str(node)
    raise ValueError(f"{node!r} is not a text")


def _texts(setting: Setting, node: Any) -> tuple[str, ...]:
    name = setting.key.rpartition(".")[2]
    if isinstance(node, str):
        if "," in node:
            raise ValueError(f"{node!r} is one text; write a list: {name}: [{node}]")
        return (node,)
    if isinstance(node, list) and all(isinstance(item, str) for item in node):
        return tuple(node)
    raise ValueError(f"invalid {name}: {node!r} is not a text or a list of texts")


def check_allowed(setting: Setting, value: Value) -> None:
    """Raises ValueError if a word of the value is none that can be chosen."""
    if not setting.allowed:
        return
    words = (value,) if isinstance(value, (str, bool)) else value
    for word in words:
        if word not in setting.allowed:
            raise ValueError(f"{setting.refusal}: {word} (choose from {', '.join(setting.allowed)})")
