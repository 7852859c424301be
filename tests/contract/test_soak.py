import os

import pytest

from tests.contract.soak import RELOAD_EVERY, RESTART_EVERY, soak

SECONDS = float(os.environ.get("GPUSTOW_SOAK_SECONDS", "60"))
MOST_MORE_MEMORY = 6.0
"""MiB that a process may take more for no reason that lasts, as allocators and the records of the test's log do."""


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS + 120)
async def test_no_admission_fails_and_nothing_grows_through_reloads_and_restarts_of_kubelet() -> None:
    outcome = await soak(SECONDS)
    assert not outcome.failures, outcome.summary()
    assert not outcome.dips, outcome.summary()
    assert outcome.reloads >= SECONDS / RELOAD_EVERY / 2
    assert outcome.restarts >= SECONDS / RESTART_EVERY / 2
    assert outcome.admitted >= SECONDS
    grown = outcome.growth()
    assert max(grown.files, grown.threads, grown.tasks) <= 3, outcome.summary()
    assert grown.memory <= MOST_MORE_MEMORY, outcome.summary()
