"""How much of a GPU that is cut for MIG cannot become a MIG device."""

from hypothesis import given
from hypothesis import strategies as st

from gpustow.hardware.mig import MigProfile
from gpustow.placement.fragmentation import fragmentation, placeable


def profile(gpu_slices: int, size: int | None, *starts: int) -> MigProfile:
    return MigProfile(gpu_slices, gpu_slices, 5, 4864, memory_slices=size, placements=starts)


A100 = (
    profile(1, 1, 0, 1, 2, 3, 4, 5, 6),
    profile(1, 2, 0, 2, 4, 6),
    profile(2, 2, 0, 2, 4),
    profile(3, 4, 0, 4),
    profile(4, 4, 0),
    profile(7, 8, 0),
)


def test_an_empty_card_and_a_full_one_are_not_fragmented() -> None:
    assert fragmentation(A100, 8, range(8)) == 0
    assert fragmentation(A100, 8, ()) == 0


def test_devices_that_lie_apart_fragment_more_than_those_that_lie_together() -> None:
    apart = fragmentation(A100, 8, {2, 3, 4, 6, 7})
    together = fragmentation(A100, 8, {3, 4, 5, 6, 7})
    # Apart: no 3g (4 slices). Together: one of two 2g (2 slices), no 4g at 0 (4 slices) either way.
    assert apart > together


def test_each_profile_that_finds_no_place_counts_in_slices() -> None:
    assert fragmentation([profile(3, 4, 0, 4)], 8, {2, 3, 4, 6, 7}) == 4
    assert fragmentation([profile(2, 2, 0, 2, 4)], 8, {1, 2, 5, 6}) == 4
    assert fragmentation([profile(2, 2, 0, 2, 4)], 8, {0, 1, 2, 5}) == 2


def test_what_even_the_empty_card_cannot_place_is_not_counted() -> None:
    assert fragmentation([profile(2, 2, 0, 2, 4)], 8, range(8)) == 0
    assert fragmentation([profile(4, 4, 0)], 8, range(8)) == 0


def test_profiles_of_one_shape_count_once_and_unknown_ones_not_at_all() -> None:
    same = [profile(3, 4, 0, 4), profile(3, 4, 0, 4)]
    assert fragmentation(same, 8, {2, 3, 4, 6, 7}) == 4
    assert fragmentation([profile(3, None, 0, 4), profile(3, 4)], 8, {2, 3, 4, 6, 7}) == 0


def test_devices_are_placed_side_by_side_from_the_lowest_start() -> None:
    assert placeable((0, 2, 4, 6), 2, range(8)) == 4
    assert placeable((0, 1, 2), 2, range(4)) == 2
    assert placeable((0, 4), 4, {0, 1, 2, 4, 5, 6, 7}) == 1


@given(st.sets(st.integers(0, 7)))
def test_it_is_never_negative_nor_more_than_all_profiles_together(free: set[int]) -> None:
    assert 0 <= fragmentation(A100, 8, free) <= len(A100) * len(free)
