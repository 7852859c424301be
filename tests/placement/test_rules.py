"""Hard rules: kept by the preference where they can be, told apart by `violation`."""

import pytest

from gpustow.placement.policy import SHARED_POLICIES, Rule
from gpustow.placement.rules import violation
from tests.placement.cards import ask, counts, free_after, replicas, whole


@pytest.mark.parametrize("policy", SHARED_POLICIES)
def test_distinct_puts_one_slot_on_a_gpu(policy: str) -> None:
    assert counts(ask(policy, replicas([4, 4, 4]), 3, rule=Rule.DISTINCT), 3) == [1, 1, 1]


def test_distinct_still_packs_as_far_as_it_can() -> None:
    devices = replicas([4, 4, 4])
    placement = ask("packed", devices, 2, rule=Rule.DISTINCT, available=free_after(devices, {1: 1, 2: 1}))
    assert counts(placement, 3) == [0, 1, 1]


@pytest.mark.parametrize("policy", SHARED_POLICIES)
def test_together_puts_all_slots_on_one_gpu(policy: str) -> None:
    devices = replicas([4, 4, 4])
    placement = ask(policy, devices, 3, rule=Rule.TOGETHER, available=free_after(devices, {0: 2, 1: 1}))
    assert sorted(counts(placement, 3)) == [0, 0, 3]


def test_together_follows_the_policy_among_the_gpus_that_can() -> None:
    devices = replicas([4, 4, 4])
    available = free_after(devices, {0: 2, 1: 1})
    assert counts(ask("packed", devices, 3, rule=Rule.TOGETHER, available=available), 3) == [0, 3, 0]
    assert counts(ask("distributed", devices, 3, rule=Rule.TOGETHER, available=available), 3) == [0, 0, 3]


def test_must_include_decides_the_gpu_of_a_request_together() -> None:
    placement = ask("distributed", replicas([4, 4]), 3, rule=Rule.TOGETHER, must_include=["gpu1::3"])
    assert counts(placement, 2) == [0, 3]


def test_must_include_counts_for_distinct() -> None:
    placement = ask("packed", replicas([4, 4]), 2, rule=Rule.DISTINCT, must_include=["gpu0::3"])
    assert counts(placement, 2) == [1, 1]


@pytest.mark.parametrize(
    ("rule", "size", "must"),
    [
        (Rule.DISTINCT, 3, []),
        (Rule.DISTINCT, 3, ["gpu0::0", "gpu0::1"]),
        (Rule.TOGETHER, 5, []),
        (Rule.TOGETHER, 3, ["gpu0::0", "gpu1::0"]),
    ],
)
def test_a_rule_that_cannot_be_kept_does_not_cost_the_answer(rule: Rule, size: int, must: list[str]) -> None:
    placement = ask("packed", replicas([4, 4]), size, rule=rule, must_include=must)
    assert len(placement.device_ids) == size
    by_id = {device.id: device for device in replicas([4, 4])}
    assert violation(rule, [by_id[id_] for id_ in placement.device_ids])


def test_the_runner_up_keeps_the_rule_too() -> None:
    explanation = ask("packed", replicas([4, 4, 4]), 2, rule=Rule.DISTINCT).explanation()
    assert explanation.runner_up is not None
    assert explanation.runner_up.per_gpu == {0: 1, 2: 1}
    explanation = ask("packed", replicas([4, 4, 4]), 2, rule=Rule.TOGETHER).explanation()
    assert explanation.runner_up is not None
    assert explanation.runner_up.per_gpu == {1: 2}


def test_together_keeps_the_cap_where_a_gpu_can() -> None:
    devices = replicas([4, 4, 1])
    available = free_after(devices, {0: 2})
    placement = ask("packed", devices, 1, rule=Rule.TOGETHER, cap=2, available=available)
    assert counts(placement, 3) == [0, 0, 1]
    # GPU 2 is below the cap, too, but cannot hold two slots.
    placement = ask("packed", devices, 2, rule=Rule.TOGETHER, cap=2, available=available)
    assert counts(placement, 3) == [0, 2, 0]
    assert placement.explanation().runner_up is None


def test_together_above_the_cap_still_names_the_runner_up() -> None:
    explanation = ask("packed", replicas([4, 4]), 3, rule=Rule.TOGETHER, cap=2).explanation()
    assert explanation.runner_up is not None
    assert explanation.runner_up.per_gpu == {1: 3}


def test_distinct_names_a_runner_up_where_a_rule_bars_a_gpu_below_the_cap() -> None:
    devices = replicas([4, 5, 5])
    available = free_after(devices, {1: 3, 2: 3})
    placement = ask("packed", devices, 2, rule=Rule.DISTINCT, cap=3, available=available)
    assert counts(placement, 3) == [1, 1, 0]
    runner_up = placement.explanation().runner_up
    assert runner_up is not None
    assert runner_up.per_gpu == {0: 1, 2: 1}


def test_whole_gpus_are_distinct_by_nature() -> None:
    placement = ask("packed", whole(4), 2, rule=Rule.DISTINCT)
    assert len(placement.device_ids) == 2
    assert violation(Rule.DISTINCT, whole(2)) is None


def test_a_violation_names_the_devices_and_the_gpu() -> None:
    devices = replicas([2, 2])
    message = violation(Rule.DISTINCT, devices[:3])
    assert message is not None
    assert "2 of the devices (gpu0::0, gpu0::1) lie on GPU 0" in message
    message = violation(Rule.TOGETHER, devices[1:3])
    assert message is not None
    assert "lie on GPUs 0, 1" in message


def test_what_keeps_a_rule_is_no_violation() -> None:
    devices = replicas([2, 2])
    assert violation(Rule.DISTINCT, [devices[0], devices[2]]) is None
    assert violation(Rule.TOGETHER, devices[:2]) is None
    assert violation(Rule.TOGETHER, []) is None
