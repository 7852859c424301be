"""The same walk with the daemon in a process of its own, which is killed and started again, over true sockets."""

import pytest

from tests.lifecycle.processes import walk_with_processes

STEPS = 100


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [0, 2, 4])
def test_the_same_holds_for_a_daemon_in_a_process_of_its_own_that_is_killed_and_started(seed: int) -> None:
    outcome = walk_with_processes(seed, STEPS)
    assert outcome.violation is None, outcome.told()
    assert len(outcome.deeds) == STEPS
    assert outcome.admitted > STEPS / 10
    assert outcome.kinds["kill"] + outcome.kinds["kill_and_start"] > 0
