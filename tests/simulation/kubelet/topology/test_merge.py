from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.simulation.kubelet.topology.hints import Hint
from gpustow.simulation.kubelet.topology.masks import Mask
from gpustow.simulation.kubelet.topology.merge import Distance, flatten, merge_hints, no_distance

MACHINE = Mask.of((0, 1, 2, 3))


def test_a_provider_or_resource_without_preference_prefers_everything() -> None:
    assert flatten([{}, {"a": None}]) == [(Hint(None, preferred=True),), (Hint(None, preferred=True),)]


def test_a_resource_that_cannot_be_served_prefers_nothing() -> None:
    assert flatten([{"a": ()}]) == [(Hint(None, preferred=False),)]


def test_each_resource_of_a_provider_is_a_list_of_its_own() -> None:
    on_0, on_1 = Hint(Mask.of((0,)), preferred=True), Hint(Mask.of((1,)))
    assert flatten([{"a": (on_0, on_1), "b": (on_1,)}]) == [(on_0, on_1), (on_1,)]


def test_two_resources_on_disjoint_nodes_get_all_nodes_without_preference() -> None:
    lists = [[Hint(Mask.of((0,)), preferred=True)], [Hint(Mask.of((1,)), preferred=True)]]
    assert merge_hints(lists, MACHINE) == Hint(MACHINE, preferred=False)


def test_no_preference_anywhere_is_all_nodes_preferred() -> None:
    assert merge_hints([[Hint(None, preferred=True)]], MACHINE) == Hint(MACHINE, preferred=True)


MASKS = st.none() | st.sets(st.integers(0, 3), min_size=1).map(Mask.of)
HINTS = st.builds(Hint, MASKS, st.booleans())
LISTS = st.lists(st.lists(HINTS, max_size=4), min_size=1, max_size=3)
ROWS = st.lists(st.lists(st.integers(10, 13), min_size=4, max_size=4), min_size=4, max_size=4)


def mean_distance(rows: Sequence[Sequence[int]]) -> Distance:
    def distance(mask: Mask) -> float:
        return sum(rows[a][b] for a in mask.nodes for b in mask.nodes) / mask.count**2

    return distance


def combine(combination: Sequence[Hint]) -> Hint:
    common = MACHINE
    for hint in combination:
        common = common if hint.mask is None else common & hint.mask
    masks = {hint.mask for hint in combination if hint.mask is not None}
    return Hint(common, all(hint.preferred for hint in combination) and len(masks) <= 1)


def narrower(candidate: Mask, current: Mask, distance: Distance) -> bool:
    ranks = [(mask.count, distance(mask), mask.word) for mask in (candidate, current)]
    return ranks[0] < ranks[1]


def better(candidate: Hint, current: Hint | None, wanted: int, distance: Distance) -> bool:  # noqa: PLR0911 - a list of cases
    """Whether a candidate replaces the best so far, case by case."""
    assert candidate.mask is not None
    if candidate.mask.count == 0:
        return False
    if current is None or current.mask is None:
        return True
    if candidate.preferred != current.preferred:
        return candidate.preferred
    if candidate.preferred:
        return narrower(candidate.mask, current.mask, distance)
    had, has = current.mask.count, candidate.mask.count
    if had > wanted:
        return has < had or (has == had and narrower(candidate.mask, current.mask, distance))
    if had == wanted:
        return has == wanted and narrower(candidate.mask, current.mask, distance)
    if has > wanted:
        return False
    return has > had or (has == had and narrower(candidate.mask, current.mask, distance))


def pairwise(lists: Sequence[Sequence[Hint]], distance: Distance) -> Hint:
    """Every combination, compared one by one."""
    wanted = max((min((h.mask.count for h in hints if h.mask is not None), default=0) for hints in lists), default=0)
    best: Hint | None = None
    for combination in product(*lists):
        candidate = combine(combination)
        if better(candidate, best, wanted, distance):
            best = candidate
    return best or Hint(MACHINE, preferred=False)


@given(LISTS)
def test_the_closed_form_equals_the_pairwise_comparison(lists: list[list[Hint]]) -> None:
    assert merge_hints(lists, MACHINE) == pairwise(lists, no_distance)


@given(LISTS, ROWS)
def test_the_closed_form_equals_the_pairwise_comparison_with_distances(
    lists: list[list[Hint]], rows: list[list[int]]
) -> None:
    distance = mean_distance(rows)
    assert merge_hints(lists, MACHINE, distance) == pairwise(lists, distance)


@pytest.mark.parametrize(("preferred", "near"), [*product((True, False), ((0, 1), (1, 2)))])
def test_of_masks_with_equally_many_nodes_the_nearest_wins_preferred_or_not(
    near: tuple[int, int], *, preferred: bool
) -> None:
    def distance(mask: Mask) -> float:
        return 10.0 if mask == Mask.of(near) else 20.0

    hints = [Hint(Mask.of((0, 1)), preferred), Hint(Mask.of((1, 2)), preferred)]
    assert merge_hints([hints], MACHINE, distance) == Hint(Mask.of(near), preferred)


@given(LISTS, st.randoms())
def test_the_order_of_lists_and_hints_does_not_matter(lists: list[list[Hint]], random: st.DataObject) -> None:
    shuffled = [[*hints] for hints in lists]
    for hints in (shuffled, *shuffled):
        random.shuffle(hints)  # type: ignore[attr-defined]  # hypothesis gives a Random
    assert merge_hints(shuffled, MACHINE) == merge_hints(lists, MACHINE)
