"""Counting faults within a time."""

from hypothesis import given
from hypothesis import strategies as st

from gpustow.config.faultrule import SAME_FAULT_SECONDS, FaultRule
from gpustow.health.event import EventKind
from gpustow.health.faultcount import FaultCount, FaultKey

KEY: FaultKey = ("GPU-0", EventKind.XID, 94)
RULE = FaultRule(3, 100.0)


def counts(*times: float) -> list[int]:
    count = FaultCount()
    return [count.add(KEY, RULE, at) for at in times]


def test_faults_within_the_time_are_counted() -> None:
    assert counts(0, 50, 100) == [1, 2, 3]
    assert counts(0, 50, 101) == [1, 2, 2]
    assert counts(0, 200, 400) == [1, 1, 1]


def test_events_of_one_fault_are_counted_once() -> None:
    assert counts(0, 1, 4.9, 5, 6) == [1, 1, 1, 2, 2]


def test_a_stream_of_events_is_many_faults() -> None:
    assert counts(*range(12))[-1] == 3


def test_kinds_and_devices_are_counted_apart_and_can_be_forgotten() -> None:
    count = FaultCount()
    other: FaultKey = ("GPU-0", EventKind.XID, 95)
    elsewhere: FaultKey = ("GPU-1", EventKind.XID, 94)
    assert [count.add(key, RULE, 0) for key in (KEY, other, elsewhere)] == [1, 1, 1]
    count.forget("GPU-0")
    assert [count.add(key, RULE, 10) for key in (KEY, other, elsewhere)] == [1, 1, 2]


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(2, 5), st.integers(5, 200))
def test_the_count_is_that_of_a_plain_look_at_all_times(steps: list[int], faults: int, seconds: int) -> None:
    rule = FaultRule(faults, float(max(seconds, (faults - 1) * 5)))
    count = FaultCount()
    separate: list[float] = []
    now = 0.0
    for step in steps:
        now += step
        if not separate or now - separate[-1] >= SAME_FAULT_SECONDS:
            separate.append(now)
        within = [at for at in separate if now - at <= rule.seconds]
        assert count.add(KEY, rule, now) == min(len(within), faults)
