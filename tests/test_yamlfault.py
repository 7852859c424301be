"""Faults of YAML in words, with their place, from either scanner."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config.goyaml import parse
from gpustow.yamlfault import fault_in_words

CASES = [
    ("flags:\n\tmigStrategy: mixed\n", "line 2, column 1: a tab; indent with spaces"),
    ("\ufeff\tflags:\n", "line 1, column 1: a tab; indent with spaces"),
    ("a: @x", "line 1, column 4: '@' cannot begin a text; put it in quotes"),
    ("a:\n  b: c: d\n", "line 2, column 7: ':' cannot stand here; indent differently, or put the text in quotes"),
    ("a:\n  b: 1\n c: 2\n", "line 3, column 2: this fits into nothing above; look at the indentation"),
    ("a:\n  b: 1\n  c\n  d: 3\n", "line 3, column 3: ':' is missing behind a key"),
    ("a: {b: c\nx: y\n", "line 1, column 4: a '{' that is not closed"),
    ("a: [1, 2\n", "line 1, column 4: a '[' that is not closed"),
    ('a:\n  b: "1\n', "line 2, column 6: a quote that is not closed"),
    ("a: *x\n", "line 1, column 4: an alias (*) without its anchor (&)"),
    ("a: [\n", "line 2, column 1: a value is missing"),
    ("a: \x01\n", "it holds a character that is not allowed in YAML"),
]


@pytest.mark.parametrize(("text", "words"), CASES)
def test_a_fault_is_told_in_words_with_line_and_column(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as refusal:
        parse(text)
    assert str(refusal.value) == words


@pytest.mark.parametrize(("text", "words"), [case for case in CASES if not case[0].startswith("\ufeff")])
def test_pyyamls_own_scanner_is_understood_as_well(text: str, words: str) -> None:
    with pytest.raises(yaml.YAMLError) as fault:
        yaml.load(text, yaml.SafeLoader)
    assert fault_in_words(fault.value, text) == words


def test_what_nobody_has_thought_of_keeps_the_librarys_words() -> None:
    with pytest.raises(ValueError, match=r"^line 1, column \d+: .*escape") as refusal:
        parse('a: "\\q"')
    assert "<unicode" not in str(refusal.value)


@given(st.text(alphabet="ab:-[]{}\"'\n\t @*&|>?!%#,\\"))
def test_no_fault_leaks_the_library(text: str) -> None:
    try:
        parse(text)
    except ValueError as error:
        assert str(error)
        assert "<unicode" not in str(error)
        assert "\n" not in str(error)
