"""Metrics on the wire: what was counted and what is known now, in Prometheus' text form or in OpenMetrics.

The library gets a registry of its own, with one collector that makes everything at the moment of a scrape; its own
counters are not used, so that what counts needs no lock and no library. Beside ours are the metrics of the process that
every client library has (`process_...`), by their usual names.
"""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from gpustow.telemetry import catalogue as known
from gpustow.telemetry.counting import HealthCounts, PluginCounts
from gpustow.telemetry.facts import Facts
from gpustow.telemetry.gauges import gauges
from gpustow.telemetry.metric import Metric, MetricKind, Sample
from gpustow.telemetry.nvmlcounts import NvmlCounts


class Exposition(Collector):
    """Renders what `facts` says and what was counted."""

    def __init__(
        self, facts: Callable[[], Facts], plugins: PluginCounts, health: HealthCounts, nvml: NvmlCounts
    ) -> None:
        self._facts = facts
        self._plugins = plugins
        self._health = health
        self._nvml = nvml
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    def render(self, accept: str) -> tuple[bytes, str]:
        """The metrics now, in the form that a client accepts, and the content type of that form."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def collect(self) -> Iterator[Family]:
        """The families, for the library; a metric of which there is nothing is left out."""
        yield from families(self._samples())
        yield from self._decision_seconds()
        yield from self._nvml_calls()

    def describe(self) -> Iterable[Family]:
        """Nothing: the library asks when it registers, and there is nothing to know yet."""
        return ()

    def _samples(self) -> Iterator[Sample]:
        yield from gauges(self._facts())
        yield from self._plugins.counters.samples()
        yield from self._health.samples()
        yield from self._nvml.samples()

    def _decision_seconds(self) -> Iterator[Family]:
        metric = known.DECISION_SECONDS
        if not self._plugins.decision_seconds:
            return
        family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, seen in self._plugins.decision_seconds.items():
            buckets = [("+Inf" if bound == float("inf") else repr(bound), count) for bound, count in seen.cumulative()]
            family.add_metric(labels, buckets, seen.sum)
        yield family

    def _nvml_calls(self) -> Iterator[Family]:
        metric, calls = known.NVML_SECONDS, self._nvml.calls()
        if not calls:
            return
        family = SummaryMetricFamily(metric.name, metric.help, labels=metric.labels)
        for call, (count, seconds) in sorted(calls.items()):
            family.add_metric((call,), count, seconds)
        yield family


def families(samples: Iterable[Sample]) -> Iterator[Family]:
    """Counters and gauges by metric, in the order of the catalogue."""
    by_metric: dict[Metric, list[Sample]] = {}
    for sample in samples:
        by_metric.setdefault(sample.metric, []).append(sample)
    for metric in known.CATALOGUE:
        if metric in by_metric:
            is_counter = metric.kind is MetricKind.COUNTER
            make = CounterMetricFamily if is_counter else GaugeMetricFamily
            family = make(metric.name, metric.help, labels=metric.labels)
            for sample in by_metric[metric]:
                family.add_metric(sample.labels, float(sample.value))
            yield family
