"""The same walk with the daemon in a process of its own, which is killed and started again, over true sockets."""

from collections import Counter

import pytest

from tests.lifecycle.processes import walk_with_processes

WALKS, STEPS = 3, 100


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_same_holds_for_a_daemon_in_a_process_of_its_own_that_is_killed_and_started() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(1, WALKS + 1):
        outcome = walk_with_processes(seed, STEPS)
        assert outcome.violation is None, outcome.told()
        assert len(outcome.deeds) == STEPS
        assert outcome.admitted > STEPS / 10
        kinds += outcome.kinds
    assert kinds["kill"] + kinds["kill_and_start"] > WALKS / 2
    assert kinds["restart_kubelet"] > WALKS / 2
