"""What is wrong with a text that is no YAML, in words for the one who wrote it, with line and column.

PyYAML tells what its scanner was about when it met with what it cannot read, and its two scanners, that of libyaml and
its own, do not use the same words. So a fault is recognised by a part that both have.

Limits: a fault that nobody here has thought of keeps the library's words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import yaml


@dataclass(frozen=True, slots=True)
class _Fault:
    """A fault by what stands in the library's words, our words for it, and whether it is told where it began."""

    part: str
    words: str
    at_start: bool = False


_FAULTS: Sequence[_Fault] = (
    _Fault("mapping values are not allowed", "':' cannot stand here; indent differently, or put the text in quotes"),
    _Fault("could not find expected ':'", "':' is missing behind a key", at_start=True),
    _Fault("find expected key", "this fits into nothing above; look at the indentation"),
    _Fault("but found '<block", "this fits into nothing above; look at the indentation"),
    _Fault("',' or '}'", "a '{' that is not closed", at_start=True),
    _Fault("',' or ']'", "a '[' that is not closed", at_start=True),
    _Fault("unexpected end of stream", "a quote that is not closed", at_start=True),
    _Fault("but found another document", "a second document; there can be one alone"),
    _Fault("node content", "a value is missing"),
    _Fault("undefined alias", "an alias (*) without its anchor (&)"),
)


def fault_in_words(error: yaml.YAMLError, text: str) -> str:
    """The fault in `text` as `line 2, column 1: a tab; indent with spaces`."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return "it holds a character that is not allowed in YAML"
    problem = str(error.problem)
    if "cannot start any token" in problem:
        return f"{_place(error.problem_mark)}: {_stranger(error.problem_mark, text)}"
    for fault in _FAULTS:
        if fault.part in problem:
            mark = error.context_mark if fault.at_start and error.context_mark else error.problem_mark
            return f"{_place(mark)}: {fault.words}"
    return f"{_place(error.problem_mark)}: {problem}"


def _place(mark: yaml.Mark) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _stranger(mark: yaml.Mark, text: str) -> str:
    """What a character that nothing begins with is about."""
    character = text.removeprefix("\ufeff").splitlines()[mark.line][mark.column]
    if character == "\t":
        return "a tab; indent with spaces"
    return f"{character!r} cannot begin a text; put it in quotes"
