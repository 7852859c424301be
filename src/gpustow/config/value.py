"""Reading the value of a setting from where it was given: a flag, an environment variable, the file.

The words are those of Go's libraries, as v0.20.0 takes them. In flags and environment everything is text: lists are
split at commas and trimmed, and an environment variable that is set but empty counts as set: to false, to the empty
text, to a list with one empty item; a list of numbers is then left alone. In the file a value has a type, a text that
is no list is a list of one, and commas do not split.
"""

from collections.abc import Sequence
from typing import Any, assert_never

from gpustow.config.duration import INFINITE, parse_duration
from gpustow.config.goyaml import go_integer
from gpustow.config.setting import Kind, Setting, Value

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def read_words(setting: Setting, words: Sequence[str], *, empty_is_unset: bool = False) -> Value | None:
    """The value of `setting` from the texts given for it; all count for a list, else the last, but none may be wrong.

    With `empty_is_unset`, as in the environment, an empty text is no fault where it cannot be a value. None means that
    the setting is left alone. Raises ValueError if a text is not of the setting's kind.
    """
    match setting.kind:
        case Kind.TEXT:
            return words[-1]
        case Kind.BOOLEAN:
            return [_boolean(word, empty_is_false=empty_is_unset) for word in words][-1]
        case Kind.TEXTS:
            return tuple(item.strip() for word in words for item in word.split(","))
        case Kind.INTEGERS:
            if empty_is_unset and not any(word.strip() for word in words):
                return None
            return tuple(_integer(item.strip()) for word in words for item in word.split(","))
        case Kind.DURATION:
            return None if empty_is_unset and not words[-1] else [parse_duration(word) for word in words][-1]
        case _:
            assert_never(setting.kind)


def _boolean(word: str, *, empty_is_false: bool) -> bool:
    if word in _TRUE:
        return True
    if word in _FALSE or (empty_is_false and not word):
        return False
    raise ValueError(f"{word!r} is not true or false")


def _integer(word: str) -> int:
    number = go_integer(word.replace("_", ""))
    if number is None:
        raise ValueError(f"{word!r} is not a number")
    return number


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
        case Kind.DURATION:
            return _duration(node)
        case _:
            assert_never(setting.kind)


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
    if _is_item(node, setting):
        return (str(node),)
    if isinstance(node, list) and all(_is_item(item, setting) for item in node):
        return tuple(str(item) for item in node)
    raise ValueError(f"invalid {name}: {node!r} is not a text or a list of texts")


def _is_item(item: Any, setting: Setting) -> bool:
    """Whether a list of texts may hold this; numbers it may where they name something, as indices do."""
    return isinstance(item, str) or (isinstance(item, int) and not isinstance(item, bool) and not setting.allowed)


def _duration(node: Any) -> int:
    if isinstance(node, str):
        return parse_duration(node)
    if isinstance(node, (int, float)) and not isinstance(node, bool) and abs(node) <= INFINITE:
        return int(node)
    raise ValueError(f"{node!r} is not a duration")
