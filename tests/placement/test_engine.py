"""What holds for every placement, whatever the policy."""

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustow.errors import InfeasibleRequest
from gpustow.hardware.links import Link, Links, PcieLevel
from gpustow.placement import Inventory, Occupancy, Policy, Request, place
from gpustow.placement.policy import SHARED_POLICIES, PolicyName
from gpustow.resources.device import Device
from tests.placement.cards import NO_LINKS, ask, counts, free_after, linked, mig, replicas, whole
from tests.placement.fabrics import links_of
from tests.placement.scenes import Case, cases


@settings(max_examples=200, deadline=None)
@given(case=cases("shared", "mig", "whole", gpus=8, most=8), seed=st.integers(0, 1 << 32))
def test_every_answer_has_the_size_asked_and_nothing_but_what_was_offered(case: Case, seed: int) -> None:
    for name in SHARED_POLICIES:
        placement = case.place(Policy.named(name))
        ids = placement.device_ids
        assert len(ids) == len(set(ids)) == case.request.size
        assert set(case.request.must_include) <= set(ids) <= set(case.request.available)
        assert sum(placement.per_gpu.values()) == case.request.size

        available, must = list(case.request.available), list(case.request.must_include)
        rng = Random(seed)
        rng.shuffle(available)
        rng.shuffle(must)
        devices = list(case.devices)
        rng.shuffle(devices)
        again = place(
            Request(available, must, case.request.size),
            Inventory.of(devices, case.links),
            Policy.named(name),
            case.occupancy,
        )
        assert again.device_ids == ids


@pytest.mark.parametrize("name", SHARED_POLICIES)
def test_whole_gpus_are_placed_by_aligned_whatever_the_policy(name: str) -> None:
    placement = ask(name, whole(4), 2, links=linked(4, [(1, 3, 4)]))
    assert placement.policy.name is PolicyName.ALIGNED
    assert placement.device_ids == ("gpu1", "gpu3")


@pytest.mark.parametrize("name", SHARED_POLICIES)
def test_a_request_for_nothing_gets_nothing(name: str) -> None:
    assert ask(name, replicas([2, 2]), 0).device_ids == ()
    assert ask(name, whole(2), 0).device_ids == ()
    assert place(Request([], [], 0), Inventory.of([], NO_LINKS), Policy.named(name)).device_ids == ()


@pytest.mark.parametrize("name", SHARED_POLICIES)
def test_a_request_for_no_more_than_must_include_gets_that(name: str) -> None:
    must = ["gpu1::1", "gpu0::0"]
    assert ask(name, replicas([2, 2]), 2, must_include=must).device_ids == ("gpu0::0", "gpu1::1")


@pytest.mark.parametrize("name", SHARED_POLICIES)
def test_a_request_for_all_gets_all_in_order(name: str) -> None:
    assert ask(name, replicas([2, 1]), 3).device_ids == ("gpu0::0", "gpu0::1", "gpu1::0")
    assert ask(name, whole(2), 2).device_ids == ("gpu0", "gpu1")


def test_a_shared_gpu_gives_its_lowest_free_replicas() -> None:
    devices = replicas([12])
    offered = [f"gpu0::{replica}" for replica in (11, 10, 9, 2, 4)]
    assert ask("packed", devices, 3, available=offered).device_ids == ("gpu0::2", "gpu0::4", "gpu0::9")


def sick(devices: list[Device], *ids: str) -> list[Device]:
    return [
        Device(d.id, d.uuid, d.gpu_index, d.index, d.share, (), replica=d.replica, healthy=d.id not in ids)
        for d in devices
    ]


def test_a_sick_device_is_taken_only_when_there_are_too_few_healthy_ones() -> None:
    devices = sick(replicas([2, 2]), "gpu0::0", "gpu1::0")
    assert ask("packed", devices, 2).device_ids == ("gpu0::1", "gpu1::1")
    assert ask("packed", devices, 3).device_ids == ("gpu0::0", "gpu0::1", "gpu1::1")
    assert ask("packed", devices, 4).device_ids == ("gpu0::0", "gpu0::1", "gpu1::0", "gpu1::1")


def test_a_sick_whole_gpu_is_the_last_resort_too() -> None:
    devices = sick(whole(4), "gpu0")
    links = linked(4, [(0, 1, 4), (2, 3, 1)])
    assert ask("packed", devices, 2, links=links).device_ids == ("gpu2", "gpu3")
    assert ask("packed", devices, 4, links=links).device_ids == ("gpu0", "gpu1", "gpu2", "gpu3")


def test_a_must_include_that_the_resource_does_not_know_is_kept() -> None:
    placement = ask("packed", replicas([2]), 2, available=["old", "gpu0::0", "gpu0::1"], must_include=["old"])
    assert placement.device_ids == ("old", "gpu0::0")


def test_a_sick_must_include_is_kept() -> None:
    devices = sick(replicas([2, 2]), "gpu1::0")
    assert ask("packed", devices, 2, must_include=["gpu1::0"]).device_ids == ("gpu1::0", "gpu1::1")


def test_what_other_resources_hold_makes_a_gpu_busy() -> None:
    devices = mig([[0, 1], [0, 1]])
    busy = Occupancy({1: Fraction(1, 2)})
    assert counts(ask("packed", devices, 1, occupancy=busy), 2) == [0, 1]
    assert counts(ask("distributed", devices, 2, occupancy=busy), 2) == [2, 0]
    assert counts(ask("distributed", devices, 2, occupancy=Occupancy({7: Fraction(1, 2)})), 2) == [1, 1]


def test_what_is_withheld_but_not_in_use_does_not_count_as_used() -> None:
    devices = replicas([4, 4])
    available = free_after(devices, {0: 2, 1: 1})
    assert counts(ask("packed", devices, 1, available=available), 2) == [1, 0]
    known = Occupancy(in_use={"gpu1::0", "not ours"})
    assert counts(ask("packed", devices, 1, available=available, occupancy=known), 2) == [0, 1]


def test_an_offered_device_is_free_even_if_it_was_seen_in_use() -> None:
    devices = replicas([2, 2])
    stale = Occupancy(in_use={"gpu1::0"})
    assert counts(ask("packed", devices, 1, occupancy=stale), 2) == [1, 0]


def test_mig_profiles_under_one_name_weigh_what_they_hold() -> None:
    small, large = mig([[0, 1], [0, 1]]), mig([[4], [4]])
    large = [
        Device(f"{d.id}-3g", f"{d.uuid}-3g", d.gpu_index, d.index, Fraction(1, 2), (), mig=d.mig, edge=4) for d in large
    ]
    devices = [*small, *large]
    without = [device.id for device in devices if device.id not in {"mig0@4-3g", "mig1@0"}]
    assert counts(ask("distributed", devices, 1, available=without), 2) == [0, 1]
    known = Occupancy(in_use={"mig0@4-3g", "mig1@0"})
    assert counts(ask("distributed", devices, 1, available=without, occupancy=known), 2) == [0, 1]


def _any(a: int, b: int) -> Link:
    return Link(PcieLevel.SYSTEM, (a * 7 + b * 5) % 11)


def test_time_that_is_up_ends_a_search_with_the_best_answer_so_far() -> None:
    inventory = Inventory.of(whole(16), links_of(16, _any))
    request = Request([f"gpu{gpu}" for gpu in range(16)], [], 5)
    calm = place(request, inventory, Policy.named("packed"))
    assert not calm.hurried
    inventory.fabric.answers.clear()
    hurried = place(request, inventory, Policy.named("packed"), expired=lambda: True)
    assert hurried.hurried
    assert not hurried.exact
    assert len(hurried.device_ids) == 5
    assert place(request, inventory, Policy.named("packed")) == calm


def test_a_proven_answer_never_asks_for_the_time() -> None:
    placement = place(
        Request([f"gpu{gpu}" for gpu in range(8)], [], 3),
        Inventory.of(whole(8), Links()),
        Policy.named("packed"),
        expired=lambda: pytest.fail("it asked"),
    )
    assert placement.exact


def test_an_infeasible_request_names_the_numbers() -> None:
    with pytest.raises(InfeasibleRequest, match="3 devices are asked for, but only 2 are offered"):
        ask("spread", whole(2), 3)
