from gpustow.simulation.kubelet.journal import PREFERENCES_LENGTH, Journal, PreferenceAsked
from tests.simulation.kubelet.core import THING


def asked(size: int) -> PreferenceAsked:
    return PreferenceAsked(THING, (), (), size)


def test_a_long_run_keeps_the_last_entries() -> None:
    journal = Journal()
    journal.preferences.extend(asked(size) for size in range(PREFERENCES_LENGTH + 5))
    assert len(journal.preferences) == PREFERENCES_LENGTH
    assert journal.preferences[0] == asked(5)


def test_a_cleared_journal_is_empty() -> None:
    journal = Journal()
    journal.preferences.append(asked(1))
    journal.clear()
    assert journal == Journal()
