from dataclasses import replace

from gpustow.config import load_config
from gpustow.hardware.nodemodel import load_node_model
from gpustow.resources import build_catalog
from gpustow.simulation.outcome import Phase, comparison
from tests.simulation.samples import outcome, running


def test_a_gpu_is_wholly_free_when_no_running_pod_holds_any_of_it() -> None:
    assert outcome("packed", [running("a", "MIG-1-0")], gpus=3).wholly_free_gpus() == (0, 2)


def test_a_gpu_that_nobody_can_be_given_is_not_free_but_unusable() -> None:
    node = load_node_model("a100-4-mig-5").node
    node = replace(node, gpus=(replace(node.gpus[0], mig_devices=()), *node.gpus[1:]))
    resources = build_catalog(node, load_config({"mig-strategy": "mixed"}, {}).config).resources
    result = replace(outcome("packed", []), node=node, resources=resources)
    assert result.wholly_free_gpus() == (1, 2, 3)
    assert result.unusable_gpus() == (0,)


def test_a_sick_gpu_is_unusable_unless_a_pod_still_holds_it() -> None:
    sick = ["MIG-0-0", "MIG-1-0"]
    result = outcome("packed", [running("a", "MIG-0-0")], gpus=3, slots=1, sick=sick)
    assert (result.wholly_free_gpus(), result.unusable_gpus()) == ((2,), (1,))


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


def test_the_fragmentation_of_a_gpu_cut_for_mig_is_measured_from_what_is_in_use() -> None:
    node = load_node_model("a100-4-mig-5").node
    resources = build_catalog(node, load_config({"mig-strategy": "single"}, {}).config).resources
    middle = node.gpus[1].mig_devices[2].uuid
    result = replace(outcome("packed", [running("a", middle)]), node=node, resources=resources)
    fragmented = result.mig_fragmentation()
    assert [index for index, slices in fragmented.items() if slices] == [1]
    assert list(fragmented) == [0, 1, 2, 3]


def test_fragmentation_is_not_told_where_it_is_not_known_where_devices_lie() -> None:
    node = load_node_model("a100-4-mig-5").node
    unplaced = tuple(
        replace(gpu, mig_devices=tuple(replace(part, start=None) for part in gpu.mig_devices)) for gpu in node.gpus
    )
    node = replace(node, gpus=unplaced)
    resources = build_catalog(node, load_config({"mig-strategy": "single"}, {}).config).resources
    result = replace(
        outcome("packed", [running("a", node.gpus[1].mig_devices[0].uuid)]), node=node, resources=resources
    )
    assert set(result.mig_fragmentation()) == {0, 2, 3}
    whole = load_node_model("t4-4").node
    assert replace(result, node=whole, resources=()).mig_fragmentation() == {}
