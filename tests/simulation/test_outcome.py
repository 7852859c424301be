from dataclasses import replace

from gpustow.simulation.outcome import Phase, comparison
from tests.simulation.samples import outcome, running


def test_a_gpu_is_wholly_free_when_no_running_pod_holds_any_of_it() -> None:
    assert outcome("packed", [running("a", "MIG-1-0")], gpus=3).wholly_free_gpus() == (0, 2)


def test_what_a_released_pod_held_is_free() -> None:
    gone = replace(running("a", "MIG-0-0"), phase=Phase.RELEASED)
    assert outcome("packed", [gone]).wholly_free_gpus() == (0, 1)


def test_slots_name_their_holders() -> None:
    result = outcome("packed", [running("a", "MIG-0-1")])
    assert [slot.holder for slot in result.slots(result.node.gpus[0])] == [None, "default/a", None]


def test_a_device_that_two_containers_share_counts_once() -> None:
    pod = running("a", "MIG-0-1")
    twice = replace(pod, containers=pod.containers * 2)
    assert twice.device_ids == ("MIG-0-1",)


def test_the_comparison_is_one_sentence() -> None:
    spread = outcome("distributed", [running("a", "MIG-0-0"), running("b", "MIG-1-0")], gpus=3)
    packed = outcome("packed", [running("a", "MIG-0-0"), running("b", "MIG-0-1")], gpus=3)
    assert comparison([spread, packed]) == "distributed leaves 1 GPU wholly free, packed leaves 2."
    assert comparison([packed]) == "packed leaves 2 GPUs wholly free."
