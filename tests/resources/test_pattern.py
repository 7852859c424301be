"""Patterns for models and profiles."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.resources.pattern import matches


@pytest.mark.parametrize(
    ("pattern", "text", "match"),
    [
        ("1g.24gb", "1g.24gb", True),
        ("1g.24gb", "2g.48gb", False),
        ("1g.24gb", "1g.24gb-me", False),
        ("1g.24gb", "1g.24gb+me.all", False),
        ("1g.24gb", "x1g.24gb", False),
        ("1g.24gb-me", "1g.24gb-me", True),
        ("1g.24gb+me.all", "1g.24gb+me.all", True),
        ("*", "1g.24gb-me", True),
        ("1g.*", "1g.24gb", True),
        ("1g.*", "2g.48gb", False),
        ("1g.24gb+gfx", "1g.24gb+gfx", True),
        ("1g.24gb", "1g.24gb+gfx", False),
        ("1g.24gb+gfx", "1g.24gb", False),
        ("1g.24gb+gfx", "1g.24gb-me", False),
        ("2g.48gb+gfx", "2g.48gb+gfx", True),
        ("2g.48gb", "2g.48gb+gfx", False),
        ("*gb", "1g.24gb", True),
        ("*gb", "1g.24gb-me", False),
        ("NVIDIA *A100*-40GB", "NVIDIA A100-SXM4-40GB", True),
        ("a*a", "a", False),
        ("", "", True),
    ],
)
def test_a_pattern_matches_the_whole_text(pattern: str, text: str, match: bool) -> None:  # noqa: FBT001 - a column
    assert matches(pattern, text) is match


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="ab", max_size=10))
def test_a_pattern_matches_what_the_regular_expression_does(pattern: str, text: str) -> None:
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert matches(pattern, text) is (re.fullmatch(expression, text) is not None)


def test_many_stars_cost_nothing() -> None:
    assert not matches("*a" * 50 + "*b", "a" * 5000)
