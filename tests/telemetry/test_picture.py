from dataclasses import replace

from gpustow.hardware.node import Node
from gpustow.health.condition import Fitness
from gpustow.kubelet.podresources import HeldDevice
from gpustow.placement.policy import Policy, Rule
from gpustow.telemetry.facts import Ailment, Check, Facts
from gpustow.telemetry.picture import node_status
from gpustow.version import __version__
from tests.telemetry.samples import GPU, NOW, facts, hold, unhealthy, with_held


def node_of(known: Facts) -> Node:
    assert known.node is not None
    return known.node


def test_before_anything_is_read_there_is_only_why() -> None:
    status = node_status(Facts(NOW, (Check("configuration", "it has just been started"),)))
    assert status.version == __version__
    assert not status.readiness.ready
    assert [check.reason for check in status.readiness.checks] == ["it has just been started"]
    assert (status.config, status.platform, status.gpus, status.resources) == (None, None, (), ())


def test_the_configuration_is_told_with_its_source() -> None:
    status = node_status(facts(text="version: v1\nflags: {failOnInitError: false}\ntypo: 1\n", mig_strategy="single"))
    assert status.config is not None
    assert status.config.file == "/config/config.yaml"
    assert status.config.sha256 is not None
    assert any("typo" in warning for warning in status.config.warnings)
    origins = {each.name: (each.value, each.origin) for each in status.config.settings}
    assert origins["flags.failOnInitError"] == (False, "file")
    assert origins["flags.migStrategy"] == ("single", "flag")


def test_a_configuration_without_a_file_has_no_hash() -> None:
    config = node_status(facts()).config
    assert config is not None
    assert (config.file, config.sha256) == (None, None)


def test_a_held_mig_device_names_its_pod() -> None:
    known = hold(facts(), 2, pod="train-7")
    status = node_status(known)
    [held] = [(device, held) for gpu in status.gpus for device in gpu.devices for held in device.held]
    assert held[0].profile is not None
    assert held[0].used == 1
    assert [(each.namespace, each.pod, each.container) for each in held[1].holders] == [("default", "train-7", "main")]
    assert status.use_is_listed


def test_a_device_that_was_just_allocated_is_in_use_by_nobody_that_is_known() -> None:
    known = facts()
    id_ = known.served[0].resource.devices[0].id
    status = node_status(replace(known, held={known.served[0].resource.name: {id_}}, is_listed=False))
    assert status.gpus[0].devices[0].held[0].holders == ()
    assert not status.use_is_listed


def test_a_device_that_two_containers_of_a_pod_hold_has_both_and_counts_once() -> None:
    known = hold(facts("t4-4"), 0)
    id_ = known.served[0].resource.devices[0].id
    both = [HeldDevice(GPU, id_, "default", "pod", name) for name in ("main", "setup")]
    status = node_status(replace(known, holders={(GPU, id_): both}))
    [device] = status.gpus[0].devices
    assert device.used == 1
    assert [holder.container for holder in device.held[0].holders] == ["main", "setup"]


def test_replicas_in_use_are_listed_by_number_and_the_others_counted() -> None:
    known = facts("t4-4", replicas=10)
    ids = [device.id for device in known.served[0].resource.devices]
    status = node_status(with_held(known, {ids[9]: "a", ids[1]: "b"}, known.served[0].resource))
    [device] = status.gpus[0].devices
    assert (device.slots, device.used, device.free) == (10, 2, 8)
    assert [held.replica for held in device.held] == [1, 9]
    assert status.gpus[0].used_share == 0.2
    assert status.wholly_free_gpus == (1, 2, 3)
    assert [gpu.wholly_free for gpu in status.gpus] == [False, True, True, True]


def test_whole_gpus_are_placed_by_aligned_whatever_was_chosen() -> None:
    [resource] = node_status(facts("t4-4", shared_devices_allocation_policy="packed")).resources
    assert resource.policy == "aligned"
    [shared] = node_status(facts("t4-4", replicas=2, shared_devices_allocation_policy="packed")).resources
    assert shared.policy == "packed"


def test_a_cap_and_a_rule_are_told() -> None:
    known = facts("t4-4", replicas=2)
    served = replace(known.served[0], policy=Policy.named("packed", cap=2, rule=Rule.TOGETHER))
    [resource] = node_status(replace(known, served=(served,))).resources
    assert (resource.cap, resource.rule) == (2, "together")


def test_health_has_its_reason_and_since_when() -> None:
    known = facts("t4-4")
    uuid = node_of(known).gpus[1].uuid
    sick = replace(unhealthy(known, 1), ailments={uuid: Ailment("XID 79: fallen off the bus", NOW - 60)})
    gpu = node_status(sick).gpus[1]
    assert (gpu.health.state, gpu.health.since) == ("unhealthy", NOW - 60)
    assert gpu.devices[0].health == gpu.health
    assert not gpu.wholly_free
    assert node_status(sick).resources[0].unhealthy == 1
    held = replace(sick, ailments={uuid: Ailment("XID 79", NOW - 60, Fitness.RECOVERING)})
    assert node_status(held).gpus[1].health.state == "recovering"


def test_a_sick_mig_device_leaves_its_gpu_healthy() -> None:
    known = facts()
    device = known.served[0].resource.devices[0]
    sick = replace(unhealthy(known, 0), ailments={device.uuid: Ailment("XID 94: contained error")})
    gpu = node_status(sick).gpus[device.gpu_index]
    assert gpu.health.state == "healthy"
    assert [each.health.state for each in gpu.devices].count("unhealthy") == 1


def test_a_gpu_that_has_left_is_seen_where_it_was() -> None:
    known = unhealthy(facts("t4-4"), 3)
    node = node_of(known)
    status = node_status(replace(known, node=replace(node, gpus=node.gpus[:3])))
    gone = status.gpus[3]
    assert (gone.found, gone.served, gone.uuid) == (False, True, node.gpus[3].uuid)
    assert gone.health.state == "unhealthy"
    assert gone.links == ()


def test_a_gpu_that_cannot_be_read_is_in_the_picture() -> None:
    known = facts("t4-4")
    unreadable = replace(node_of(known), unreadable=(4,))
    gpu = node_status(replace(known, node=unreadable)).gpus[4]
    assert (gpu.found, gpu.served, gpu.uuid, gpu.health.state) == (False, False, "", "unhealthy")


def test_a_gpu_that_is_left_alone_is_healthy_and_not_served() -> None:
    gpu = node_status(facts("t4-4", exclude_gpus=["0"])).gpus[0]
    assert (gpu.found, gpu.served, gpu.health.state, gpu.wholly_free) == (True, False, "healthy", False)


def test_each_gpu_has_its_links_to_all_others_as_placement_scores_them() -> None:
    known = facts("dgx-1-v100")
    node = node_of(known)
    scores = node.links.scores([gpu.index for gpu in node.gpus])
    for gpu in node_status(known).gpus:
        assert [link.gpu for link in gpu.links] == [other.index for other in node.gpus if other.index != gpu.index]
        assert [link.score for link in gpu.links] == [
            score for other, score in enumerate(scores[gpu.index]) if other != gpu.index
        ]
    assert node_status(known).gpus[0].links[0].label.startswith("NV")
