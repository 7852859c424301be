from collections.abc import Mapping
from dataclasses import replace

from gpustow.telemetry import catalogue as known
from gpustow.telemetry.facts import Ailment, Check, Facts
from gpustow.telemetry.gauges import gauges
from gpustow.telemetry.metric import Labels, Metric
from gpustow.telemetry.picture import node_status
from tests.telemetry.samples import GPU, NOW, facts, hold, unhealthy


def told(of: Facts, metric: Metric) -> Mapping[Labels, float]:
    return {sample.labels: sample.value for sample in gauges(of) if sample.metric is metric}


def test_every_sample_has_the_labels_of_its_metric_and_none_comes_twice() -> None:
    samples = list(gauges(hold(facts("hgx-h100-mig"), 0)))
    assert all(len(sample.labels) == len(sample.metric.labels) for sample in samples)
    assert len({(sample.metric.name, sample.labels) for sample in samples}) == len(samples)


def test_before_anything_is_read_only_readiness_is_told() -> None:
    nothing = Facts(NOW, (Check("configuration", "not read yet"),))
    assert told(nothing, known.READY) == {(): 0}
    assert told(nothing, known.READINESS_CHECK) == {("configuration",): 0}
    assert told(nothing, known.LAST_RELOAD_SUCCESSFUL) == {(): 0}
    assert told(nothing, known.CONFIG_INFO) == {}
    assert told(nothing, known.GPU_INFO) == {}


def test_a_daemon_that_is_ready_says_so() -> None:
    assert told(facts(), known.READY) == {(): 1}
    assert told(facts(), known.LAST_RELOAD_SUCCESSFUL) == {(): 1}


def test_slots_of_each_gpu_are_told_by_state() -> None:
    known_facts = unhealthy(hold(facts("t4-4", replicas=4), 0, 1, 4), 8)
    slots = told(known_facts, known.GPU_SLOTS)
    assert known_facts.node is not None
    first, _, third, _ = (gpu.uuid for gpu in known_facts.node.gpus)
    assert slots[GPU, "0", first, "used"] == 2
    assert slots[GPU, "0", first, "free"] == 2
    assert slots[GPU, "2", third, "unhealthy"] == 1
    assert told(known_facts, known.GPU_USED_RATIO)["0", first] == 0.5
    assert told(known_facts, known.GPUS_WHOLLY_FREE) == {(): 1}
    assert told(known_facts, known.DEVICES) == {(GPU, "healthy"): 15, (GPU, "unhealthy"): 1}
    assert told(known_facts, known.DEVICES_USED) == {(GPU,): 3}


def test_a_gpu_is_unhealthy_while_it_has_an_ailment_or_is_not_found() -> None:
    before = facts("t4-4")
    assert before.node is not None
    gpus = before.node.gpus
    after = replace(
        before, ailments={gpus[0].uuid: Ailment("XID 79")}, node=replace(before.node, gpus=gpus[:3], unreadable=(3,))
    )
    assert list(told(after, known.GPU_HEALTHY).values()) == [0, 1, 1, 0]
    assert told(after, known.GPU_HEALTHY)["3", gpus[3].uuid] == 0
    assert told(after, known.GPUS_UNREADABLE) == {(): 1}


def test_the_configuration_is_told_by_its_file_and_hash() -> None:
    [labels] = told(facts("t4-4", replicas=2, shared_devices_allocation_policy="packed"), known.CONFIG_INFO)
    assert labels[0] == "/config/config.yaml"
    assert len(labels[1]) == 12
    assert labels[2:] == ("mixed", "packed")
    [without_file] = told(facts(), known.CONFIG_INFO)
    assert without_file[:2] == ("", "")


def test_a_numa_node_that_is_not_known_is_empty() -> None:
    before = facts("t4-4")
    assert before.node is not None
    nowhere = tuple(replace(gpu, numa_node=None) for gpu in before.node.gpus)
    labels = list(told(replace(before, node=replace(before.node, gpus=nowhere)), known.GPU_INFO))
    assert all(label[3] == "" for label in labels)


def test_gauges_and_status_tell_the_same_numbers() -> None:
    for of in (hold(facts("hgx-h100-mig"), 0, 3), unhealthy(hold(facts("dgx-a100", replicas=10), 1, 2, 77), 2, 3)):
        status = node_status(of)
        for resource in status.resources:
            assert told(of, known.DEVICES)[resource.name, "healthy"] == resource.healthy
            assert told(of, known.DEVICES_USED)[resource.name,] == resource.used
            slots = told(of, known.GPU_SLOTS)
            for state in ("used", "free", "unhealthy"):
                mine = sum(
                    value for labels, value in slots.items() if labels[0] == resource.name and labels[3] == state
                )
                assert mine == getattr(resource, state)
        assert told(of, known.GPUS_WHOLLY_FREE)[()] == len(status.wholly_free_gpus)
        shares = {labels[0]: value for labels, value in told(of, known.GPU_USED_RATIO).items()}
        assert shares == {str(gpu.index): gpu.used_share for gpu in status.gpus if gpu.served}
