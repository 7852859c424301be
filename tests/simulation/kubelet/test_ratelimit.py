from hypothesis import given
from hypothesis import strategies as st

from gpustow.simulation.kubelet.ratelimit import BURST, RATE, TokenBucket
from tests.simulation.kubelet.core import FakeClock


def test_ten_requests_may_come_at_once_and_then_one_each_hundredth_of_a_second() -> None:
    clock = FakeClock()
    bucket = TokenBucket(clock)
    assert [bucket.take() for _ in range(12)] == [True] * 10 + [False] * 2
    clock.now += 0.0101
    assert [bucket.take() for _ in range(2)] == [True, False]


def test_a_long_pause_fills_no_more_than_the_bucket_holds() -> None:
    clock = FakeClock()
    bucket = TokenBucket(clock)
    clock.now += 3600
    assert [bucket.take() for _ in range(11)] == [True] * 10 + [False]


@given(st.lists(st.floats(0, 0.05), max_size=60))
def test_no_more_pass_than_the_rate_and_the_burst_allow(pauses: list[float]) -> None:
    clock = FakeClock()
    bucket = TokenBucket(clock)
    passed = 0
    for pause in pauses:
        clock.now += pause
        passed += bucket.take()
    assert passed <= BURST + RATE * clock.now
