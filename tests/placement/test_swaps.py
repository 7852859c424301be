"""The bounded search for divisions: allowed, deterministic, and good."""

from random import Random

import pytest

from gpustow.placement import Inventory, Policy, Request, place, swaps
from gpustow.placement.fabric import Fabric
from gpustow.placement.state import never
from gpustow.placement.swaps import Task, divisions
from tests.placement.cards import whole
from tests.placement.fabrics import dgx2, islands, links_of
from tests.placement.test_fabric import random_matrix


def task_of(fabric: Fabric, size: int, *, must: int = 0, without: int = 0) -> Task:
    everything = sum(fabric.bits)
    return Task(fabric, everything, must, everything & ~must & ~without, size)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_every_division_covers_what_is_offered_in_full_sets_and_one_short_one(size: int) -> None:
    fabric = Fabric(random_matrix(11))
    for division in divisions(task_of(fabric, size), sum(fabric.bits[:size]), never):
        assert sum(division.sets) == sum(fabric.bits)
        counts = sorted(mask.bit_count() for mask in division.sets)
        assert counts == sorted([size] * (11 // size) + [11 % size] * (11 % size > 0))


def test_the_first_set_holds_must_include_and_nothing_that_it_may_not() -> None:
    fabric = Fabric(random_matrix(10))
    must, barred = fabric.bits[3], fabric.bits[0] | fabric.bits[9]
    for division in divisions(task_of(fabric, 3, must=must, without=barred), sum(fabric.bits[3:6]), never):
        assert division.sets[0] & must
        assert not division.sets[0] & barred
        assert division.sets[0].bit_count() == 3


def test_it_finds_the_best_division_of_ten_different_gpus_nearly_always() -> None:
    found = 0
    for seed in range(20):
        fabric = Fabric(random_matrix(10, seed))
        for size in (3, 4):
            best = max(
                sum(fabric.scores(d.sets)) for d in divisions(task_of(fabric, size), sum(fabric.bits[:size]), never)
            )
            everything = sum(fabric.bits)
            sets = fabric.subsets(everything, size)
            totals, _ = fabric.partitions.divisions([everything ^ mask for mask in sets], size)
            exact = max(score + total for score, total in zip(fabric.scores(sets), totals, strict=True))
            assert best <= exact
            assert best >= exact * 0.97
            found += best == exact
    assert found >= 36


def test_it_ends_when_its_steps_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = Fabric(random_matrix(12))
    everything = list(divisions(task_of(fabric, 4), sum(fabric.bits[:4]), never))
    monkeypatch.setattr(swaps, "SWAP_STEPS", 1)
    assert len(list(divisions(task_of(fabric, 4), sum(fabric.bits[:4]), never))) == 1 < len(everything)


@pytest.mark.parametrize("link", [islands, dgx2])
def test_more_gpus_than_any_table_holds_are_still_placed_by_their_islands(link: object) -> None:
    assert callable(link)
    inventory = Inventory.of(whole(20), links_of(20, link))
    rng = Random(5)
    ids = list(inventory.ids)
    rng.shuffle(ids)
    for size in (1, 2, 4):
        placement = place(Request(ids, [], size), inventory, Policy.named("packed"))
        assert len(placement.device_ids) == size
        assert len({gpu // 4 for gpu in placement.per_gpu}) == 1
        assert placement.explanation().sentence


def test_the_same_state_has_the_same_answer_where_the_search_is_bounded() -> None:
    inventory = Inventory.of(whole(18), links_of(18, dgx2))
    answers = set()
    for seed in range(3):
        ids = list(inventory.ids)
        Random(seed).shuffle(ids)
        inventory.fabric.answers.clear()
        answers.add(place(Request(ids, ["gpu7"], 5), inventory, Policy.named("packed")).device_ids)
    assert len(answers) == 1
