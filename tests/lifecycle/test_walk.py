"""Many random walks through the life of a node, in this process under virtual time, and some with a real process."""

import logging
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.lifecycle.processes import walk_with_processes
from tests.lifecycle.walk import Outcome, shortest, walk

WALKS = 80
STEPS = 250
"""80 walks of 250 deeds are 20,000 steps."""

TOGETHER = 10
"""Walks of one test."""

PROCESS_STEPS = 100


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of lines of the daemon's log say nothing that the story of a walk does not."""
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


def check(outcome: Outcome, seconds: float) -> None:
    if outcome.violation is not None:
        pytest.fail(shortest(outcome, seconds).told() if seconds else outcome.told())


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, WALKS, TOGETHER))
def test_whatever_happens_no_device_is_given_twice_nor_a_sick_one_and_kubelet_knows_what_there_is(first: int) -> None:
    kinds: Counter[str] = Counter()
    admitted = checks = made = 0
    for seed in range(first, first + TOGETHER):
        outcome = walk(seed, steps=STEPS)
        check(outcome, 30)
        kinds += outcome.kinds
        made += len(outcome.deeds)
        admitted += outcome.admitted
        checks += outcome.checks
    assert made == TOGETHER * STEPS
    assert admitted > 100, "pods were admitted"
    assert checks > 100, "what kubelet knows was compared"
    assert len(kinds) > 15, "all kinds of things happened"


def test_a_walk_is_the_same_each_time() -> None:
    """But for the names of sockets, which are those of the instance."""
    first, again = walk(3, steps=60), walk(3, steps=60)
    for outcome in (first, again):
        outcome.story = [re.sub(r"gpustow-\S+\.sock", "its socket", line) for line in outcome.story]
    assert first == again


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_same_holds_for_a_daemon_in_a_process_of_its_own_that_is_killed_and_started(seed: int) -> None:
    outcome = walk_with_processes(seed, PROCESS_STEPS)
    check(outcome, 0)
    assert len(outcome.deeds) == PROCESS_STEPS
    assert outcome.admitted > 0
