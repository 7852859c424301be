"""Scores of sets, twins, and what a fabric remembers."""

from itertools import combinations
from random import Random

import pytest

from gpustow.placement import fabric as module
from gpustow.placement.fabric import Fabric, fabric_of
from gpustow.placement.tables import Matrix
from tests.placement.fabrics import DGX1_V100, NEIGHBOURS


def random_matrix(count: int, seed: int = 1) -> Matrix:
    rng = Random(seed)
    rows = [[0] * count for _ in range(count)]
    for one, other in combinations(range(count), 2):
        rows[one][other] = rows[other][one] = rng.randrange(50)
    return tuple(map(tuple, rows))


@pytest.mark.parametrize("count", [1, 5, 17])
def test_the_score_of_a_set_is_the_sum_over_its_pairs(count: int) -> None:
    matrix = random_matrix(count)
    fabric = Fabric(matrix)
    rng = Random(2)
    for _ in range(30):
        members = rng.sample(range(count), rng.randint(0, count))
        mask = sum(fabric.bits[position] for position in members)
        expected = sum(matrix[one][other] for one, other in combinations(members, 2))
        assert fabric.score(mask) == expected
        assert list(fabric.scores([mask, 0])) == [expected, 0]
        assert fabric.positions(mask) == sorted(members)


def test_of_two_sets_the_one_that_comes_first_by_index_is_the_larger_mask() -> None:
    fabric = Fabric(random_matrix(4))
    masks = [sum(fabric.bits[position] for position in some) for some in combinations(range(4), 2)]
    assert masks == sorted(masks, reverse=True)


def test_gpus_that_link_alike_to_all_others_are_twins() -> None:
    assert fabric_of(NEIGHBOURS.scores(range(8))).twins == (0, 0, 2, 2, 4, 4, 6, 6)
    assert fabric_of(DGX1_V100.scores(range(8))).twins == tuple(range(8))


@pytest.mark.parametrize("count", [6, 17])
def test_subsets_are_all_sets_of_a_size_within_a_mask(count: int) -> None:
    fabric = Fabric(random_matrix(count))
    members = [1, 3, 4, 5]
    mask = sum(fabric.bits[position] for position in members)
    expected = {sum(fabric.bits[position] for position in some) for some in combinations(members, 2)}
    found = fabric.subsets(mask, 2)
    assert len(found) == len(expected)
    assert set(found) == expected


def test_links_to_a_set_are_summed_for_one_gpu() -> None:
    matrix = random_matrix(5)
    fabric = Fabric(matrix)
    assert fabric.lone_score(2, fabric.bits[0] | fabric.bits[4] | fabric.bits[2]) == matrix[2][0] + matrix[2][4]


def test_a_fabric_forgets_its_oldest_answer_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWERS_KEPT", 2)
    fabric = Fabric(random_matrix(2))
    for key in ("a", "b", "c"):
        fabric.remember(key, key.upper())
    assert fabric.answers == {"b": "B", "c": "C"}


def test_the_tables_of_a_fabric_are_built_once() -> None:
    assert fabric_of(NEIGHBOURS.scores(range(8))) is fabric_of(NEIGHBOURS.scores(range(8)))
