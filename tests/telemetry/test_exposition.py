import shutil
import subprocess
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpustow.hardware.nvml.observer import CallResult
from gpustow.health.condition import Fitness, Transition
from gpustow.health.event import EventKind, HealthEvent
from gpustow.health.target import Target
from gpustow.telemetry.catalogue import CATALOGUE
from gpustow.telemetry.counting import HealthCounts, PluginCounts
from gpustow.telemetry.decisions import Decisions
from gpustow.telemetry.exposition import Exposition
from gpustow.telemetry.facts import Facts
from gpustow.telemetry.nvmlcounts import NvmlCounts
from tests.telemetry.samples import GPU, facts, hold
from tests.telemetry.test_counting import a_placement, taken


class Source:
    def __init__(self, known: Facts) -> None:
        self.known = known

    def facts(self, now: float) -> Facts:
        return replace(self.known, at=now)


def everything() -> Exposition:
    """One of each metric."""
    plugins, health, nvml = PluginCounts(Decisions()), HealthCounts(), NvmlCounts()
    placement = a_placement()
    plugins.moved(GPU, "registered", "")
    plugins.surveyed(None)
    plugins.preferred(GPU, placement, 0.0003)
    plugins.explained(GPU, placement, placement.explanation(), 0.0003)
    fault = HealthEvent(EventKind.XID, "GPU-1", xid=79)
    health.event(taken(fault))
    health.transition(Transition(Target("GPU-1", "GPU-1"), Fitness.HEALTHY, Fitness.UNHEALTHY, 1.0, fault, 0.0, ""))
    health.waited()
    nvml.called("nvmlInit", 0.5, CallResult.FAILED)
    return Exposition(lambda: hold(facts("t4-4", replicas=4), 0), plugins, health, nvml)


def test_all_metrics_of_the_catalogue_are_exposed_as_it_says_and_no_others() -> None:
    body, content_type = everything().render("text/plain")
    assert content_type.startswith("text/plain")
    families = {
        family.name + ("_total" if family.type == "counter" else ""): family
        for family in text_string_to_metric_families(body.decode())
        if not family.name.startswith("process_")
    }
    assert families.keys() == {metric.name for metric in CATALOGUE}
    for metric in CATALOGUE:
        family = families[metric.name]
        assert family.type == metric.kind.value
        assert family.documentation == metric.help
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels)


def test_a_histogram_has_its_buckets_sum_and_count() -> None:
    body, _ = everything().render("")
    [family] = [each for each in text_string_to_metric_families(body.decode()) if each.type == "histogram"]
    values = {(sample.name, sample.labels.get("le")): sample.value for sample in family.samples}
    assert values["gpustow_placement_decision_seconds_bucket", "0.00025"] == 0
    assert values["gpustow_placement_decision_seconds_bucket", "0.0005"] == 1
    assert values["gpustow_placement_decision_seconds_bucket", "+Inf"] == 1
    assert values["gpustow_placement_decision_seconds_count", None] == 1
    assert values["gpustow_placement_decision_seconds_sum", None] == 0.0003


def test_openmetrics_is_spoken_to_who_asks_for_it() -> None:
    body, content_type = everything().render("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_nothing_of_a_registry_that_others_use_is_told() -> None:
    body, _ = everything().render("")
    assert b"python_gc" not in body
    assert everything().registry is not everything().registry


def test_what_there_is_nothing_of_is_left_out() -> None:
    empty = Exposition(lambda: facts("t4-4"), PluginCounts(Decisions()), HealthCounts(), NvmlCounts())
    body, _ = empty.render("")
    assert b"nvml" not in body
    assert b"decision_seconds" not in body
    assert b"last_wait" not in body


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not there (Debian's package prometheus)")
def test_promtool_has_nothing_against_the_metrics() -> None:
    body, _ = everything().render("")
    linted = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, check=False, timeout=60)
    assert linted.returncode == 0, linted.stderr.decode()
