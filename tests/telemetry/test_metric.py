import math

from hypothesis import given
from hypothesis import strategies as st

from gpustow.telemetry import catalogue as known
from gpustow.telemetry.metric import PREFIX, Counters, Distribution, MetricKind, Sample


def test_a_counter_that_is_begun_is_there_with_nothing() -> None:
    counters = Counters()
    counters.begin(known.RELOADS, "ok")
    counters.add(known.LIST_BYTES, "nvidia.com/gpu", by=120)
    counters.begin(known.LIST_BYTES, "nvidia.com/gpu")
    assert set(counters.samples()) == {
        Sample(known.RELOADS, ("ok",), 0),
        Sample(known.LIST_BYTES, ("nvidia.com/gpu",), 120),
    }
    assert counters.value(known.RELOADS, "refused") == 0


@given(st.lists(st.floats(0, 1)))
def test_a_distribution_counts_every_observation_up_to_its_bound(values: list[float]) -> None:
    seen = Distribution.of(known.DECISION_SECONDS)
    for value in values:
        seen.observe(value)
    assert dict(seen.cumulative()) == {
        bound: sum(value <= bound for value in values) for bound in (*known.DECISION_SECONDS.buckets, math.inf)
    }
    assert math.isclose(seen.sum, math.fsum(values), abs_tol=1e-9)


def test_the_names_follow_the_rules() -> None:
    names = [metric.name for metric in known.CATALOGUE]
    assert len(set(names)) == len(names)
    for metric in known.CATALOGUE:
        assert metric.name.startswith(PREFIX)
        assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)
        assert bool(metric.buckets) == (metric.kind is MetricKind.HISTOGRAM)
        assert metric.help.endswith(".")
        assert not {"pod", "container", "namespace"} & set(metric.labels)
