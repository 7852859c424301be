"""Observers of health."""

import logging
from collections.abc import Callable

import pytest

from gpustow.config.health import RecoveryConfig
from gpustow.health.condition import Condition, struck, transition
from gpustow.health.nodehealth import NodeHealth
from gpustow.health.observer import GuardedHealthObserver, HealthObserver, SilentHealthObserver
from gpustow.health.policy import HealthPolicy
from gpustow.health.target import Target
from tests.health.machines import xid

TAKEN = NodeHealth(HealthPolicy(), RecoveryConfig()).take(xid(79), 0.0)
BEFORE = Condition(Target("GPU-0", "GPU-0"))
CHANGE = transition(BEFORE, struck(BEFORE, xid(79), 0.0, RecoveryConfig()), 0.0)


class Failing:
    """Fails at everything."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def fail(*_: object) -> None:
            raise ValueError(name)

        return fail


def tell(observer: HealthObserver) -> None:
    assert CHANGE is not None
    observer.event(TAKEN)
    observer.transition(CHANGE)
    observer.source_failed("gone")
    observer.waited()


def test_an_observer_that_fails_is_logged_and_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        tell(GuardedHealthObserver(Failing()))
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "event",
        "transition",
        "source_failed",
        "waited",
    ]


def test_a_silent_observer_hears_everything() -> None:
    tell(GuardedHealthObserver(SilentHealthObserver()))
