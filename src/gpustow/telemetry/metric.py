"""What a metric is, and samples of it, apart from any library.

Names follow Prometheus' rules: one prefix, base units, `_total` for counters, `_info` for a gauge that is 1 and has its
content in labels. Labels are bounded by what the node and its configuration have: there are no pods among them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

PREFIX = "gpustow_"


class MetricKind(Enum):
    """The kinds that are used, by the names that Prometheus has for them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, its kind, what it says, and the names of its labels.

    `buckets` are the upper bounds of a histogram's. A summary has a count and a sum, and no quantiles.
    """

    name: str
    kind: MetricKind
    help: str
    labels: Labels = ()
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a counter or gauge; `labels` are the values, in the order of the metric's names."""

    metric: Metric
    labels: Labels
    value: float


class Counters:
    """Counters, by metric and labels. For one thread; one that nobody has begun is not there."""

    def __init__(self) -> None:
        self._values: dict[tuple[Metric, Labels], float] = {}

    def begin(self, metric: Metric, *labels: str) -> None:
        """Has the counter be there with 0, so that its first increase can be seen."""
        self._values.setdefault((metric, labels), 0.0)

    def add(self, metric: Metric, *labels: str, by: float = 1.0) -> None:
        """Counts."""
        key = (metric, labels)
        self._values[key] = self._values.get(key, 0.0) + by

    def value(self, metric: Metric, *labels: str) -> float:
        """The count; 0 if there is none."""
        return self._values.get((metric, labels), 0.0)

    def samples(self) -> Iterator[Sample]:
        """All of them."""
        for (metric, labels), value in self._values.items():
            yield Sample(metric, labels, value)


@dataclass(slots=True)
class Distribution:
    """The observations of a histogram or summary: how many up to each bound, the last one infinite, and their sum."""

    bounds: tuple[float, ...]
    counts: list[int]
    sum: float = 0.0

    @classmethod
    def of(cls, metric: Metric) -> "Distribution":
        """An empty one."""
        return cls(metric.buckets, [0] * (len(metric.buckets) + 1))

    def observe(self, value: float) -> None:
        """Takes one observation."""
        at = next((at for at, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        self.counts[at] += 1
        self.sum += value

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """How many observations were up to each bound; the last bound is infinite, and its number is that of all."""
        total = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            yield bound, total
