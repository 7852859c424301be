from random import Random

from hypothesis import given
from hypothesis import strategies as st

from gpustow.plugin.timing import Backoff, CrashBudget, Timing


@given(st.integers())
def test_waits_double_from_the_first_to_the_most_and_are_at_most_a_quarter_longer(seed: int) -> None:
    backoff = Backoff(1, 30, Random(seed))
    waits = [backoff.next() for _ in range(8)]
    for wait, floor in zip(waits, [1, 2, 4, 8, 16, 30, 30, 30], strict=True):
        assert floor <= wait <= min(1.25 * floor, 30)


@given(st.integers())
def test_a_dead_kubelet_is_tried_at_most_once_a_second_and_seldom_in_a_minute(seed: int) -> None:
    timing = Timing()
    backoff = Backoff(timing.retry_first, timing.retry_most, Random(seed))
    waited, tries = 0.0, 0
    while waited < 60:
        wait = backoff.next()
        assert wait >= 1
        waited += wait
        tries += 1
    assert tries <= 6


def test_after_a_reset_the_first_wait_comes_again() -> None:
    backoff = Backoff(1, 30, Random(0))
    for _ in range(5):
        backoff.next()
    backoff.reset()
    assert 1 <= backoff.next() <= 1.25


def test_register_leaves_kubelet_the_ten_seconds_of_its_dial_and_more() -> None:
    assert Timing().register >= 15


def test_five_crashes_are_within_the_budget_and_an_hour_without_one_starts_it_anew() -> None:
    budget = CrashBudget(0)
    assert [budget.spend(now) for now in (1, 2, 3, 4, 5, 6)] == [True] * 5 + [False]
    assert budget.spend(3600) is False
    assert [budget.spend(now) for now in (7201, 7202, 7203, 7204, 7205, 7206)] == [True] * 5 + [False]


@given(st.lists(st.integers(0, 3600), min_size=1))
def test_crashes_that_come_within_an_hour_of_each_other_all_count(gaps: list[int]) -> None:
    budget, now, allowed = CrashBudget(0), 0, []
    for gap in gaps:
        now += gap
        allowed.append(budget.spend(now))
    assert allowed == [number < 5 for number in range(len(gaps))]
