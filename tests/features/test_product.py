import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.features.product import family, is_label_value, product, sanitised


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a space separated string", "a-space-separated-string"),
        (" input  with multiple   spaces   ", "input-with-multiple-spaces"),
        ("some(thing)else", "somethingelse"),
        ("some [ / thing / ]else", "some-thing-else"),
        ("some ( thing )else", "some-thing-else"),
        ("some / thing /else", "some-thing-else"),
        ("NVIDIA-TITAN-X-(Pascal)", "NVIDIA-TITAN-X-Pascal"),
        ("some-thing.else_new", "some-thing.else_new"),
        ("tab\tand\nline", "tabandline"),
        ("", ""),
    ],
)
def test_a_text_is_sanitised_as_v0_20_0_does(text: str, expected: str) -> None:
    assert sanitised(text) == expected


@given(st.text())
def test_nothing_that_a_label_cannot_hold_is_left(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9\-_.]*", sanitised(text))
    assert sanitised(sanitised(text)) == sanitised(text)


def test_parts_of_a_product_of_which_nothing_is_left_are_skipped() -> None:
    assert product("NVIDIA A30", "", "(/)", "SHARED") == "NVIDIA-A30-SHARED"


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ((1, 3), "tesla"),
        ((2, 0), "fermi"),
        ((3, 7), "kepler"),
        ((5, 2), "maxwell"),
        ((6, 1), "pascal"),
        ((7, 0), "volta"),
        ((7, 5), "turing"),
        ((8, 6), "ampere"),
        ((8, 9), "ada-lovelace"),
        ((9, 0), "hopper"),
        ((10, 0), "blackwell"),
        ((12, 0), "blackwell"),
        ((13, 0), "rubin"),
        ((4, 0), "undefined"),
        ((11, 0), "undefined"),
        ((14, 0), "undefined"),
        ((-1, -1), "undefined"),
    ],
)
def test_a_compute_capability_tells_the_family(capability: tuple[int, int], name: str) -> None:
    assert family(capability) == name


@pytest.mark.parametrize(
    ("value", "fits"),
    [("", True), ("a", True), ("a-b_c.d", True), ("-a", False), ("a.", False), ("a b", False), ("a" * 64, False)],
)
def test_a_label_value_is_what_kubernetes_takes(value: str, fits: bool) -> None:  # noqa: FBT001 - of a table
    assert is_label_value(value) is fits
