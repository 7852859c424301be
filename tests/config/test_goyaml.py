"""YAML as Go's library reads it; the values are what sigs.k8s.io/yaml 1.6 made of the same texts."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config.goyaml import go_integer, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:0", "1:0"),
        ("2026-12-01", "2026-12-01"),
        ("12:30:45", "12:30:45"),
        ("0000:07:00.0", "0000:07:00.0"),
        ("0777", 511),
        ("0o17", 15),
        ("0O17", 15),
        ("-0x1F", -31),
        ("0x_1F", 31),
        ("0b101", 5),
        ("-0b11", -3),
        ("08", 8),
        ("+5", 5),
        ("1_000", 1000),
        ("1__", 1),
        ("_1", "_1"),
        ("0x", "0x"),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2**64),
        ("2.0", 2),
        ("2.5", 2.5),
        ("5.", 5),
        (".5", 0.5),
        (".5_0", ".5_0"),
        ("1e3", 1000),
        ("1e500", "1e500"),
        ("yes", True),
        ("Off", False),
        ("y", True),
        ("yEs", "yEs"),
        ("~", None),
        ("Null", None),
        ("", None),
        ("'1'", "1"),
        ('"yes"', "yes"),
        ("=", "="),
        ("!!int '3'", 3),
        ("!!str 3", "3"),
        ("!!float 3", 3),
        ("!!bool on", True),
        ("!!null ~", None),
        ("!foo 3", "3"),
    ],
)
def test_a_scalar_is_what_go_takes_it_for(text: str, value: object) -> None:
    read = parse(f"key: {text}").root["key"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "key"),
    [("1", "1"), ("'1'", "1"), ("true", "true"), ("No", "false"), ("0x10", "16"), ("1.5", "1.5"), (".inf", ".inf")],
)
def test_a_key_is_a_text(text: str, key: str) -> None:
    assert parse(f"{text}: 1").root == {key: 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{<<: *b, c: 2}", {"a": 1, "c": 2}),
        ("{a: 0, <<: *b}", {"a": 1}),
        ("{<<: *b, a: 0}", {"a": 0}),
        ("{<<: [*b, {a: 5, z: 1}]}", {"a": 1, "z": 1}),
        ("{'<<': 3}", {"<<": 3}),
    ],
)
def test_merge_keys_bring_what_they_name(text: str, value: object) -> None:
    assert parse(f"base: &b {{a: 1}}\nmore: {text}").root["more"] == value


def test_keys_that_stand_twice_are_found_with_their_path_and_lines() -> None:
    document = parse("a: 1\nb:\n- c: 1\n  c: 2\na: 2")
    assert document.root == {"a": 2, "b": [{"c": 2}]}
    assert [str(problem) for problem in document.doubtful] == [
        "b[0].c: it stands twice, in line 3 and in line 4; the last counts",
        "a: it stands twice, in line 1 and in line 5; the last counts",
    ]


@pytest.mark.parametrize("more", ["b: 2", "[", ""])
def test_of_several_documents_the_first_counts_and_the_others_are_told(more: str) -> None:
    document = parse(f"a: 1\n---\n{more}")
    assert document.root == {"a": 1}
    assert "only the first is read" in document.doubtful[0].message


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "{a: b",
        "- a\nb: c",
        "? [a]\n: b",
        "~: 1",
        "a: .inf",
        "a: [-.Inf]",
        "a: .nan",
        "a: !!int x",
        "a: &a [*a]",
        "a: *b",
        "{<<: 3}",
        "{<<: [{a: 1}, 3]}",
        "\x00",
        "\ud800",
    ],
)
def test_what_is_not_plain_yaml_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse(text)


def test_a_document_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse("[" * 5000)


def test_aliases_of_aliases_cost_nothing() -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    root = parse("\n".join(lines)).root
    assert root["a29"][0] is root["a28"]


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("-0", 0), ("010", 8), ("0x0", 0), ("9", 9), ("", None), ("1.0", None), ("٣", None), (" 1", None)],
)
def test_an_integer_has_the_base_that_its_prefix_names(text: str, number: int | None) -> None:
    assert go_integer(text) == number


@given(st.text(alphabet=string.printable, max_size=40) | st.text(max_size=40))
def test_any_text_is_a_document_or_refused(text: str) -> None:
    try:
        document = parse(text)
    except ValueError as error:
        assert str(error)
    else:
        assert document.root is None or isinstance(document.root, (str, bool, int, float, list, dict))
