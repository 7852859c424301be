import threading
from dataclasses import replace

from gpustow.config.faultrule import FATAL
from gpustow.errors import AllocationRefused, InfeasibleRequest
from gpustow.hardware.nvml.observer import CallResult
from gpustow.health.condition import Fitness, Transition
from gpustow.health.event import EventKind, HealthEvent
from gpustow.health.nodehealth import Taken
from gpustow.health.target import MONITOR, Scope, Target
from gpustow.placement import Inventory, Placement, Policy, Request, place
from gpustow.telemetry import catalogue as known
from gpustow.telemetry.counting import HealthCounts, PluginCounts
from gpustow.telemetry.decisions import Decisions
from gpustow.telemetry.metric import Counters, Labels, Metric
from gpustow.telemetry.nvmlcounts import NvmlCounts
from tests.telemetry.samples import GPU, facts


def counted(counters: Counters, metric: Metric) -> dict[Labels, float]:
    return {sample.labels: sample.value for sample in counters.samples() if sample.metric is metric}


def a_placement() -> Placement:
    node = facts("t4-4", replicas=4)
    assert node.node is not None
    inventory = Inventory.of(node.served[0].resource.devices, node.node.links)
    return place(Request(inventory.ids, (), 2), inventory, Policy.named("packed"))


def test_a_resource_begins_with_zeros_so_that_its_first_failure_is_an_increase() -> None:
    counts = PluginCounts(Decisions())
    counts.moved(GPU, "init", "")
    assert counted(counts.counters, known.ALLOCATION_ERRORS) == {(GPU, "refused"): 0, (GPU, "fault"): 0}
    assert counted(counts.counters, known.REGISTRATIONS) == {(GPU,): 0}
    assert counted(counts.counters, known.RELOADS) == {("ok",): 0, ("refused",): 0}


def test_registrations_and_states_are_counted() -> None:
    counts = PluginCounts(Decisions())
    for state in ("init", "registered", "streaming", "init", "registered"):
        counts.moved(GPU, state, "why")
    assert counts.counters.value(known.REGISTRATIONS, GPU) == 2
    assert counts.counters.value(known.STATE_CHANGES, GPU, "streaming") == 1


def test_a_decision_is_counted_by_policy_and_by_what_decided() -> None:
    decisions = Decisions()
    counts = PluginCounts(decisions)
    placement = a_placement()
    counts.preferred(GPU, placement, 0.0004)
    counts.preferred(GPU, placement, 0.0006)
    counts.explained(GPU, placement, placement.explanation(), 0.0004)
    assert counted(counts.counters, known.PLACEMENTS) == {(GPU, "packed", "GPU index"): 1}
    assert sum(counts.decision_seconds[GPU, "packed"].counts) == 2
    assert [decision.seconds for decision in decisions] == [0.0004]


def test_what_is_less_than_the_best_answer_is_counted_by_cause() -> None:
    counts = PluginCounts(Decisions())
    placement = a_placement()
    counts.preferred(GPU, replace(placement, hurried=True, exact=False), 0.02)
    counts.preferred(GPU, replace(placement, exact=False), 0.001)
    counts.preference_failed(GPU, InfeasibleRequest("too few"))
    counts.preference_failed(GPU, RuntimeError("oops"))
    assert counted(counts.counters, known.FALLBACKS) == {
        (GPU, "hurried"): 1,
        (GPU, "inexact"): 1,
        (GPU, "infeasible"): 1,
        (GPU, "fault"): 1,
    }


def test_allocations_lists_and_reloads_are_counted() -> None:
    counts = PluginCounts(Decisions())
    counts.allocated(GPU, ("a", "b"))
    counts.allocation_failed(GPU, AllocationRefused(GPU, "no"))
    counts.allocation_failed(GPU, RuntimeError("oops"))
    counts.list_sent(GPU, 300)
    counts.surveyed(None)
    counts.surveyed("the driver is gone")
    counts.reloaded(None)
    counts.reloaded("bad file")
    value = counts.counters.value
    assert (value(known.ALLOCATIONS, GPU), value(known.ALLOCATED_DEVICES, GPU)) == (1, 2)
    assert counted(counts.counters, known.ALLOCATION_ERRORS) == {(GPU, "refused"): 1, (GPU, "fault"): 1}
    assert (value(known.LIST_SENDS, GPU), value(known.LIST_BYTES, GPU)) == (1, 300)
    assert (value(known.NODE_READINGS, "ok"), value(known.NODE_READINGS, "trouble")) == (1, 1)
    assert (value(known.RELOADS, "ok"), value(known.RELOADS, "refused")) == (1, 1)


def taken(event: HealthEvent, *, again: bool = False) -> Taken:
    return Taken(event, FATAL, (), (), "", again)


def test_xids_are_counted_by_gpu_and_code_and_lasting_events_once() -> None:
    counts = HealthCounts()
    counts.event(taken(HealthEvent(EventKind.XID, "GPU-1", xid=79)))
    counts.event(taken(HealthEvent(EventKind.XID, None, xid=48)))
    counts.event(taken(HealthEvent(EventKind.LOST, "GPU-1")))
    counts.event(taken(HealthEvent(EventKind.LOST, "GPU-1"), again=True))
    assert counted(counts.counters, known.XIDS) == {("GPU-1", "79"): 1, ("", "48"): 1}
    assert counted(counts.counters, known.HEALTH_EVENTS)["GPU-1", "lost"] == 1


def test_transitions_are_counted_by_what_why_and_into_what() -> None:
    counts = HealthCounts()
    mig = Target("MIG-1", "GPU-1", Scope.MIG_DEVICE)
    fault = HealthEvent(EventKind.XID, "GPU-1", xid=94)
    counts.transition(Transition(mig, Fitness.HEALTHY, Fitness.UNHEALTHY, 1.0, fault, 0.0, ""))
    broken = HealthEvent(EventKind.SOURCE_FAILED)
    counts.transition(Transition(MONITOR, Fitness.HEALTHY, Fitness.UNHEALTHY, 1.0, broken, 0.0, ""))
    counts.transition(Transition(MONITOR, Fitness.RECOVERING, Fitness.HEALTHY, 1.0, None, 0.0, ""))
    assert counted(counts.counters, known.TRANSITIONS) == {
        ("GPU-1", "mig_device", "unhealthy", "xid 94"): 1,
        ("", "monitor", "unhealthy", "sourceFailed"): 1,
        ("", "monitor", "healthy", ""): 1,
    }


def test_the_last_good_wait_is_told_once_there_was_one() -> None:
    counts = HealthCounts(clock=lambda: 17.0)
    counts.source_failed("NVML is broken")
    assert [sample.metric for sample in counts.samples()] == [known.SOURCE_FAILURES]
    counts.waited()
    assert {sample.metric: sample.value for sample in counts.samples()} == {
        known.SOURCE_FAILURES: 1,
        known.LAST_WAIT: 17,
    }


def test_calls_into_nvml_are_counted_from_any_thread() -> None:
    counts = NvmlCounts()

    def call() -> None:
        for _ in range(500):
            counts.called("nvmlInit", 0.25, CallResult.OK)
            counts.called("nvmlDeviceGetName", 0.5, CallResult.HUNG)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts.calls() == {"nvmlInit": (2000, 500.0), "nvmlDeviceGetName": (2000, 1000.0)}
    assert [(sample.labels, sample.value) for sample in counts.samples()] == [(("nvmlDeviceGetName", "hung"), 2000)]
