"""Rules: how often a fault may come, in words and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config.faultrule import FATAL, IGNORE, FaultRule, parse_rule, written_seconds


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("ignore", IGNORE),
        ("fatal", FATAL),
        ("3 in 24h", FaultRule(3, 86400.0)),
        ("2 in 10m", FaultRule(2, 600.0)),
        ("3 in 1h30m", FaultRule(3, 5400.0)),
        ("2 in 5s", FaultRule(2, 5.0)),
    ],
)
def test_a_rule_is_read_and_written_alike(text: str, rule: FaultRule) -> None:
    assert parse_rule(text) == rule
    assert str(rule) == text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "'' is not ignore, fatal, or a number of faults in a time"),
        ("Fatal", "'Fatal' is not ignore"),
        ("3 times in 24h", "is not ignore"),
        ("0 in 1h", "is not ignore"),
        ("1 in 24h", "one fault is written fatal"),
        ("1001 in 24h", "2 to 1000"),
        ("3 in 24", "'24' is not a duration"),
        ("3 in 9s", "faults within 5s are one, so the time is 10s or more"),
        ("2 in infinite", "and not infinite"),
        ("2 in -1h", "5s or more"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_rule(text)


@given(st.integers(2, 1000), st.integers(5000, 10**6))
def test_every_rule_comes_back_from_its_words(faults: int, seconds: int) -> None:
    rule = FaultRule(faults, float(seconds))
    assert parse_rule(str(rule)) == rule
    assert rule.counts


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0s"), (0.5, "500ms"), (60.0, "1m"), (90.0, "1m30s"), (3600.0, "1h"), (36010.0, "10h0m10s"), (600.0, "10m")],
)
def test_times_are_written_as_short_as_they_can_be(seconds: float, text: str) -> None:
    assert written_seconds(seconds) == text
