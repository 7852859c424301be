"""JSON read strictly, as CDI's library does: a key that is not known, or of the wrong type, or there twice is an error.

The library refuses a whole file for one such fault, with all devices in it; so neither do we take what it would not.
"""

import json
from collections.abc import Iterator, Mapping

from gpustow.errors import Problem


class Malformed(ValueError):  # noqa: N818 - says what the text is
    """The text is not what is expected; `problem` says where and what."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(path, message)
        self.problem = Problem(path, message)


class JsonObject:
    """One JSON object while it is read: each key is taken once, and `done` complains of those that were not."""

    def __init__(self, value: object, path: str = "") -> None:
        if not isinstance(value, dict):
            raise Malformed(path, f"should be an object, and is {_kind(value)}")
        self._rest: dict[str, object] = dict(value)
        self.path = path

    def at(self, key: str) -> str:
        """The path of a key, as in `devices[0].name`."""
        return f"{self.path}.{key}" if self.path else key

    def text(self, key: str) -> str:
        """The text at `key`, empty if there is none."""
        return _text(self._rest.pop(key, ""), self.at(key))

    def number(self, key: str) -> int | None:
        """The whole number at `key`, None if there is none."""
        return _number(self._rest.pop(key), self.at(key)) if key in self._rest else None

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of texts at `key`."""
        return tuple(_text(item, path) for item, path in self._items(key))

    def numbers(self, key: str) -> tuple[int, ...]:
        """The list of whole numbers at `key`."""
        return tuple(_number(item, path) for item, path in self._items(key))

    def objects(self, key: str) -> Iterator["JsonObject"]:
        """The list of objects at `key`."""
        for item, path in self._items(key):
            yield JsonObject(item, path)

    def inner(self, key: str) -> "JsonObject":
        """The object at `key`, an empty one if there is none."""
        return JsonObject(self._rest.pop(key, {}), self.at(key))

    def mapping(self, key: str) -> Mapping[str, str]:
        """The object at `key` whose values are all texts."""
        inner = self.inner(key)
        return {name: inner.text(name) for name in inner.left()}

    def left(self) -> tuple[str, ...]:
        """The keys that nobody has asked for yet."""
        return tuple(self._rest)

    def done(self) -> None:
        """Raises Malformed if there is a key that nobody asked for."""
        for key in self._rest:
            raise Malformed(self.at(key), "is not known")

    def _items(self, key: str) -> Iterator[tuple[object, str]]:
        value = self._rest.pop(key, [])
        if not isinstance(value, list):
            raise Malformed(self.at(key), f"should be a list, and is {_kind(value)}")
        for number, item in enumerate(value):
            yield item, f"{self.at(key)}[{number}]"


def parse_object(text: str) -> JsonObject:
    """The JSON object that `text` is. Raises Malformed."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_not_json)
    except json.JSONDecodeError as error:
        raise Malformed("", f"is not JSON: {error}") from error
    except RecursionError as error:
        raise Malformed("", "is nested too deeply") from error
    return JsonObject(value)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise Malformed(key, "is there twice")
        found[key] = value
    return found


def _not_json(word: str) -> object:
    raise Malformed("", f"is not JSON: {word}")


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise Malformed(path, f"should be a text, and is {_kind(value)}")
    return value


def _number(value: object, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(path, f"should be a whole number, and is {_kind(value)}")
    return value


def _kind(value: object) -> str:
    """What a JSON value is, in a word."""
    if value is None:
        return "null"
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names[type(value)]
