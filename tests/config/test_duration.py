"""Durations; the values are what Go's time.ParseDuration and Duration.String made of the same texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config.duration import INFINITE, format_duration, parse_duration

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        ("5ns", 5, "5ns"),
        ("60s", 60 * SECOND, "1m0s"),
        ("300ms", 300 * 10**6, "300ms"),
        ("1h30m", 5400 * SECOND, "1h30m0s"),
        ("1.5h", 5400 * SECOND, "1h30m0s"),
        ("1m30.5s", 90_500_000_000, "1m30.5s"),
        (".5s", SECOND // 2, "500ms"),
        ("1.s", SECOND, "1s"),
        ("1500us", 1_500_000, "1.5ms"),
        ("2µs", 2000, "2µs"),
        ("-1m", -60 * SECOND, "-1m0s"),
        ("+2s", 2 * SECOND, "2s"),
        ("infinite", INFINITE, "infinite"),
        ("9223372036854775807ns", INFINITE, "infinite"),
    ],
)
def test_a_duration_is_what_go_takes_it_for(text: str, nanoseconds: int, printed: str) -> None:
    assert parse_duration(text) == nanoseconds
    assert format_duration(nanoseconds) == printed


@pytest.mark.parametrize("text", ["", "30", "s", ".s", "1d", "1h 30m", "1hour", "-", "--1s", "Infinite", "٣s", "1,5s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


def test_a_duration_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="write infinite"):
        parse_duration("9223372036854775808ns")


@given(st.integers(-INFINITE, INFINITE))
def test_what_is_printed_is_read_back(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


@given(st.text(alphabet="0123456789.hmsnuµ+-", max_size=12))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        assert abs(parse_duration(text)) <= INFINITE
    except ValueError as error:
        assert text in str(error)
