"""packed: the cap, the division of slots among GPUs, and more GPUs than sets can be enumerated for."""

import pytest

from gpustow.hardware.links import Link
from gpustow.placement import Policy
from gpustow.placement.packed import keeps_cap
from gpustow.placement.state import State
from tests.placement.cards import ask, counts, free_after, linked, replicas
from tests.placement.fabrics import links_of
from tests.placement.test_search import state_of


def capped(totals: list[int], used: list[int], size: int, cap: int | None) -> list[int]:
    devices = replicas(totals)
    placement = ask("packed", devices, size, available=free_after(devices, dict(enumerate(used))), cap=cap)
    return counts(placement, len(totals))


@pytest.mark.parametrize(
    ("used", "size", "cap", "expected"),
    [
        ([0, 0, 0], 3, 1, [1, 1, 1]),
        ([0, 0, 0], 3, 2, [2, 1, 0]),
        ([0, 0, 0], 3, None, [3, 0, 0]),
        ([2, 1, 0], 1, 2, [0, 1, 0]),
        ([2, 2, 0], 1, 2, [0, 0, 1]),
        # All at the cap: on as packed.
        ([2, 2, 2], 3, 2, [2, 1, 0]),
        ([2, 2, 1], 4, 2, [2, 0, 2]),
        ([3, 2, 1], 2, 2, [0, 0, 2]),
        ([1, 1, 1], 6, 2, [3, 2, 1]),
    ],
)
def test_no_gpu_goes_above_the_cap_while_another_is_below(
    used: list[int], size: int, cap: int | None, expected: list[int]
) -> None:
    assert capped([4, 4, 4], used, size, cap) == expected


def test_the_runner_up_under_a_cap_keeps_the_cap() -> None:
    devices = replicas([4, 4, 4])
    explanation = ask("packed", devices, 2, cap=1).explanation()
    assert explanation.winner.per_gpu == {0: 1, 1: 1}
    assert explanation.runner_up is not None
    assert explanation.runner_up.per_gpu == {0: 1, 2: 1}


def test_a_cap_that_leaves_one_answer_has_no_runner_up() -> None:
    explanation = ask("packed", replicas([2, 2]), 2, cap=1).explanation()
    assert explanation.winner.per_gpu == {0: 1, 1: 1}
    assert explanation.runner_up is None


@pytest.mark.parametrize(
    ("answer", "keeps"), [((1, 1), True), ((2, 0), False), ((2, 1), True), ((0, 0), True), ((3, 1), True)]
)
def test_a_cap_is_kept_if_nothing_is_above_or_nothing_below_can_take_a_slot(
    answer: tuple[int, int], *, keeps: bool
) -> None:
    state = _two_gpus()
    assert keeps_cap(state, answer, 1) is keeps


def _two_gpus() -> State:
    links = linked(2, [])
    state = state_of(2, links)
    return state.limited((3, 3))


def test_slots_of_the_larger_share_go_first_since_that_leaves_least_free() -> None:
    assert capped([2, 8], [0, 0], 9, None) == [2, 7]
    assert capped([8, 2], [0, 0], 9, None) == [7, 2]


def test_must_includes_gpus_cost_nothing() -> None:
    devices = replicas([4, 4, 4])
    placement = ask("packed", devices, 3, available=free_after(devices, {2: 1}), must_include=["gpu1::0"])
    assert counts(placement, 3) == [0, 3, 0]


def test_seventeen_different_gpus_are_packed_by_the_roomiest() -> None:
    links = links_of(17, lambda a, b: Link(None, (a * 5 + b * 3) % 7))
    totals = list(range(3, 20))
    placement = ask("packed", replicas(totals), 50, links=links)
    assert not placement.exact
    assert sum(placement.per_gpu.values()) == 50
    assert len(placement.per_gpu) == 3
    assert ask("packed", replicas(totals), 50, links=links) == placement


def test_a_placement_says_that_it_is_proven_and_what_it_weighed() -> None:
    placement = ask("packed", replicas([4] * 4), 5)
    assert placement.exact
    assert placement.weighed == 1  # four GPUs that are alike: one set of two
    assert placement.policy == Policy.named("packed")
