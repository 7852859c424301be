"""What a source tells."""

import pytest

from gpustow.config.filekeys import HEALTH_EVENT_KEYS, HEALTH_STATE_KEYS
from gpustow.health.event import EventKind, RecoveryAction


@pytest.mark.parametrize(("number", "action"), [(0, "NONE"), (1, "GPU_RESET"), (7, "SYSTEM_REBOOT"), (8, "UNKNOWN")])
def test_an_action_is_known_by_its_number_and_what_is_not_known_is_not_nothing(number: int, action: str) -> None:
    assert RecoveryAction.of(number).name == action
    assert bool(RecoveryAction.of(number)) is (number != 0)


def test_the_keys_of_the_file_are_kinds_of_events() -> None:
    assert {*HEALTH_EVENT_KEYS, *HEALTH_STATE_KEYS} <= {kind.value for kind in EventKind}
