"""What is done to a row is done to each of its numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.placement.lanes import Lanes

NARROW, WIDE = (1 << 31) - 1, (1 << 63) - 1


def row_of(lanes: Lanes, numbers: list[int]) -> int:
    return sum(lanes.moved(number, place) for place, number in enumerate(numbers))


@st.composite
def pairs_of_rows(draw: st.DrawFn) -> tuple[Lanes, list[int], list[int], list[int]]:
    """Lanes, the numbers of two rows that fit them, and a pattern."""
    largest = draw(st.sampled_from([NARROW, WIDE]))
    number = st.one_of(st.integers(0, 3), st.sampled_from([largest - 1, largest]), st.integers(0, largest))
    places = draw(st.lists(st.tuples(number, number, st.integers(0, 1)), max_size=8))
    one, other, pattern = ([place[at] for place in places] for at in range(3))
    return Lanes.up_to(largest), one, other, pattern


@given(pairs_of_rows())
def test_the_larger_and_the_smaller_number_are_found_in_every_lane(
    rows: tuple[Lanes, list[int], list[int], list[int]],
) -> None:
    lanes, one, other, _ = rows
    every = row_of(lanes, [1] * len(one))
    first, second = row_of(lanes, one), row_of(lanes, other)
    assert list(lanes.numbers(lanes.larger(first, second, every), len(one))) == list(map(max, one, other))
    assert list(lanes.numbers(lanes.smaller(first, second, every), len(one))) == list(map(min, one, other))


@given(pairs_of_rows())
def test_a_pattern_picks_numbers(rows: tuple[Lanes, list[int], list[int], list[int]]) -> None:
    lanes, one, _, pattern = rows
    picked = lanes.at(row_of(lanes, one), row_of(lanes, pattern))
    assert list(lanes.numbers(picked, len(one))) == [
        number * chosen for number, chosen in zip(one, pattern, strict=True)
    ]


def test_a_row_moves_by_places() -> None:
    lanes = Lanes.up_to(9)
    assert list(lanes.numbers(lanes.moved(row_of(lanes, [7, 9]), 2), 5)) == [0, 0, 7, 9, 0]


def test_lanes_are_as_narrow_as_their_numbers_allow() -> None:
    assert Lanes.up_to(NARROW).width == 32
    assert Lanes.up_to(NARROW + 1).width == 64
    with pytest.raises(ValueError, match="63 bits"):
        Lanes.up_to(WIDE + 1)
