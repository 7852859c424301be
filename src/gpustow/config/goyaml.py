"""YAML as the Go library of v0.20.0 (sigs.k8s.io/yaml) reads it, so that a file means here what it means there.

PyYAML follows YAML 1.1 to the letter and reads `1:0` as sixty and `2026-12-01` as a date; the Go library reads both as
text, which matters for MIG indices and names. Booleans are `true`, `yes`, `on`, `y` and their opposites; numbers are
decimal, `0x`, `0o`, `0b`, or octal with a leading zero. There everything goes through JSON: so a float without a
fraction is a whole number, keys are texts, and what JSON has no word for is refused. Only the first document is read.

What passes there without a word is found here: keys that stand twice, and documents behind the first.

Limits: an anchor cannot be given twice, and in `{a: x:, b: y}` the colon behind `x` is refused, where that library
takes both.
"""

import re
from dataclasses import dataclass
from typing import Any

import yaml

from gpustow.errors import Problem
from gpustow.yamlfault import fault_in_words

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TRUE = frozenset(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
_FALSE = frozenset(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_BASES = (16, 2, 8, 10)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_LEAST, _MOST = -(2**63), 2**64 - 1

_PLAIN = "plain"
_YAML = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}


@dataclass(frozen=True, slots=True)
class Document:
    """What a file holds, and what stands in it without effect: keys that stand twice, further documents."""

    root: Any
    doubtful: tuple[Problem, ...] = ()


def parse(text: str) -> Document:
    """Read the first document of `text`. Raises ValueError, saying where, if it is not YAML that can be JSON."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_node() if loader.check_node() else None
            reading = _Reading()
            root = None if node is None else reading.value(node, "")
            if _another(loader):
                reading.doubtful.append(Problem("", "it holds several documents ('---'); only the first is read"))
        finally:
            loader.dispose()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except yaml.YAMLError as error:
        raise ValueError(fault_in_words(error, text)) from error
    return Document(root, tuple(reading.doubtful))


def go_integer(text: str) -> int | None:
    """The integer that Go reads in `text`, to the base that its prefix names; None if it is none or beyond 64 bits."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, *digits = match.groups()
    number = next(int(own, base) for own, base in zip(digits, _BASES, strict=True) if own is not None)
    number = -number if sign == "-" else number
    return number if _LEAST <= number <= _MOST else None


def _another(loader: Any) -> bool:
    """Whether something follows the first document; it need not be YAML, for nobody reads it."""
    try:
        return bool(loader.check_node())
    except yaml.YAMLError:
        return True


class _Loader(_Base):  # type: ignore[misc] # either of two base classes that PyYAML leaves untyped
    """Composes nodes, and marks the scalars that are plain, so that what they are is for `_plain` to say."""

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        """The tag of a node that names none."""
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        tag: str = super().resolve(kind, value, (False, True))
        return tag


class _Reading:
    """Makes values of nodes; every node once, however often aliases name it."""

    def __init__(self) -> None:
        self.doubtful: list[Problem] = []
        self._done: dict[int, Any] = {}
        self._under_way: set[int] = set()

    def value(self, node: yaml.Node, path: str) -> Any:
        """The value of a node at `path`. Raises ValueError."""
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node, path)
        key = id(node)
        if key in self._done:
            return self._done[key]
        if key in self._under_way:
            raise ValueError(f"{path}: an anchor contains itself")
        self._under_way.add(key)
        if isinstance(node, yaml.SequenceNode):
            made: Any = [self.value(item, f"{path}[{at}]") for at, item in enumerate(node.value)]
        else:
            made = self._mapping(node, path)
        self._under_way.remove(key)
        self._done[key] = made
        return made

    def _mapping(self, node: Any, path: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _PLAIN and key_node.value == "<<":
                self._merge(made, value_node, path)
                continue
            key = _key(key_node, path)
            below = f"{path}.{key}" if path else key
            line = key_node.start_mark.line + 1
            if key in lines:
                twice = f"it stands twice, in line {lines[key]} and in line {line}; the last counts"
                self.doubtful.append(Problem(below, twice))
            lines[key] = line
            made[key] = self.value(value_node, below)
        return made

    def _merge(self, made: dict[str, Any], node: yaml.Node, path: str) -> None:
        """What `<<` brings: one mapping, or several of which the first counts most."""
        value = self.value(node, f"{path}.<<" if path else "<<")
        mappings = value[::-1] if isinstance(value, list) else [value]
        for mapping in mappings:
            if not isinstance(mapping, dict):
                raise ValueError(f"{path or 'the top'}: what '<<' merges must be a mapping")  # noqa: TRY004 - of the file
            made.update(mapping)


def _key(node: yaml.Node, path: str) -> str:
    """A key as JSON has it. Raises ValueError if it is none."""
    if node.tag == _PLAIN and _NOT_FINITE.fullmatch(str(node.value)):
        return str(node.value)
    value = _scalar(node, path) if isinstance(node, yaml.ScalarNode) else None
    if value is None:
        line = node.start_mark.line + 1
        raise ValueError(f"line {line}: a key must be a text, a number or a boolean")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(node: yaml.ScalarNode, path: str) -> Any:
    """The value of a scalar. Raises ValueError if it is not what its tag says."""
    text = str(node.value)
    if node.tag == _PLAIN:
        return _plain(text, path)
    wanted = _TYPES.get(node.tag.removeprefix(_YAML))
    if wanted is None:
        return text
    value = _plain(text, path)
    if type(value) not in wanted:
        raise ValueError(f"{path}: {text!r} is not what {node.tag.replace(_YAML, '!!')} says")
    return value


def _plain(text: str, path: str) -> Any:
    """What a scalar without quotes and tag is."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text in _NULL:
        return None
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{path}: {text} cannot be used, because JSON has no such number")
    return _number(text) if text[0] in "-+.0123456789" else text


def _number(text: str) -> int | float | str:
    digits = text if text[0] == "." else text.replace("_", "")
    integer = go_integer(digits)
    if integer is not None:
        return integer
    if not _FLOAT.fullmatch(digits):
        return text
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        return text
    return int(number) if number.is_integer() else number
