"""YAML as Go's library reads it."""

import math

import pytest

from gpustow.config.goyaml import parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:0", "1:0"),
        ("2026-12-01", "2026-12-01"),
        ("12:30:45", "12:30:45"),
        ("0777", 511),
        ("0o17", 15),
        ("-0x1F", -31),
        ("0b101", 5),
        ("08", "08"),
        ("1_000", 1000),
        ("2.0", 2),
        ("2.5", 2.5),
        ("1e3", 1000),
        (".5", 0.5),
        ("yes", True),
        ("Off", False),
        ("y", True),
        ("yEs", "yEs"),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ("0000:07:00.0", "0000:07:00.0"),
        ("=", "="),
    ],
)
def test_a_scalar_is_what_go_takes_it_for(text: str, value: object) -> None:
    read = parse(f"key: {text}").root["key"]
    assert read == value
    assert type(read) is type(value)


def test_infinity_and_not_a_number_stay_floats() -> None:
    root = parse("[.inf, -.Inf, .nan]").root
    assert root[:2] == [math.inf, -math.inf]
    assert math.isnan(root[2])


def test_anchors_and_merge_keys_work() -> None:
    assert parse("base: &b {a: 1}\nmore: {<<: *b, c: 2}").root["more"] == {"a": 1, "c": 2}


def test_keys_that_stand_twice_are_found_with_their_line() -> None:
    document = parse("a: 1\nb:\n  c: 1\n  c: 2\na: 2")
    assert document.root == {"a": 2, "b": {"c": 2}}
    assert sorted(problem.path for problem in document.duplicates) == ["line 4", "line 5"]


@pytest.mark.parametrize("text", ["a: [", "{a: b", "- a\nb: c", "a: !!python/object:os.system x", "? [a]\n: b", "\x00"])
def test_what_is_not_plain_yaml_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse(text)


def test_a_document_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse("[" * 5000)


def test_two_documents_are_refused() -> None:
    with pytest.raises(ValueError, match="document"):
        parse("a: 1\n---\nb: 2")
