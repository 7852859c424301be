import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.hardware.plaintext import parse_plain_yaml


@pytest.mark.parametrize(
    "word", ["07:00.0", "1:0", "0x10", "010", "12.10", "no", "null", "~", "2001-01-01", "1_000", ".inf"]
)
def test_a_scalar_is_the_text_that_is_written(word: str) -> None:
    assert parse_plain_yaml(f"key: {word}") == {"key": word}


def test_an_empty_value_is_empty_text() -> None:
    assert parse_plain_yaml("key:") == {"key": ""}


def test_a_tag_that_would_build_an_object_builds_text() -> None:
    assert parse_plain_yaml("key: !!python/name:os.system") == {"key": ""}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: the key 'a' stands twice"),
        ("x: {y: 1, y: 1}", "line 1: the key 'y' stands twice"),
        ("a: [", "line 2, column 1: a value is missing"),
        ("a: \x00", "special characters|control characters|not allowed"),
        ("? [a, b]\n: 1", "unhashable"),
        ("a: 1\n---\nb: 2", "line 2, column 1: a second document"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_plain_yaml(text)


def test_endless_nesting_is_refused() -> None:
    with pytest.raises(ValueError, match=r"nest"):
        parse_plain_yaml("[" * 5000 + "]" * 5000)


@given(st.text())
def test_any_text_gives_a_document_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_plain_yaml(text)


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "a: *b", "a: \0", "--- a\n--- b"])
def test_what_is_no_yaml_is_told_without_the_words_of_the_library(text: str) -> None:
    with pytest.raises(ValueError, match=r"line \d+, column \d+: |a character that is not allowed") as refused:
        parse_plain_yaml(text)
    assert "<unicode string>" not in str(refused.value)
