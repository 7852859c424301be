"""The best divisions, from tables, against plain recursion over all divisions."""

from itertools import combinations
from random import Random

import pytest

from gpustow.placement import partition
from gpustow.placement.fabric import Fabric
from gpustow.placement.partition import ENTRY_STEPS, NO_FULL_SET, query_steps
from gpustow.placement.tables import Matrix
from tests.placement import oracle
from tests.placement.fabrics import DGX1_V100, dgx2, islands, links_of
from tests.placement.test_fabric import random_matrix

FABRICS = {
    "dgx-1": DGX1_V100.scores(range(8)),
    "dgx-2": links_of(16, dgx2).scores(range(8)),
    "islands": links_of(16, islands).scores(range(8)),
    "different": random_matrix(8),
}


def value(matrix: Matrix, gpus: tuple[int, ...], size: int) -> tuple[int, int]:
    """The best total and, with it, the best weakest full set, over all divisions."""

    def score(part: tuple[int, ...]) -> int:
        return sum(matrix[a][b] for a, b in combinations(part, 2))

    return max(
        (
            sum(map(score, division)),
            min((score(part) for part in division if len(part) == size), default=NO_FULL_SET),
        )
        for division in oracle.partitions(gpus, size)
    )


@pytest.mark.parametrize("name", FABRICS)
def test_a_table_holds_the_best_of_all_divisions(name: str) -> None:
    matrix = FABRICS[name]
    fabric = Fabric(matrix)
    rng = Random(4)
    for size in range(2, 8):
        for count in range(1, 9 - size):
            members = tuple(sorted(rng.sample(range(8), count)))
            mask = sum(fabric.bits[position] for position in members)
            totals, weakest = fabric.partitions.divisions([mask], size)
            assert fabric.partitions.exact(8, size)
            assert (totals[0], weakest[0]) == value(matrix, members, size)


def test_what_no_table_holds_is_filled_on_demand_when_that_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "TABLE_STEPS", 0)
    monkeypatch.setattr(partition, "PAIR_STEPS", 1 << 30)
    matrix = random_matrix(9)
    fabric = Fabric(matrix)
    assert not fabric.partitions.exact(9, 2)
    for size in (3, 4):
        assert fabric.partitions.exact(9, size)
        for members in combinations(range(9), 9 - size):
            mask = sum(fabric.bits[position] for position in members)
            totals, weakest = fabric.partitions.divisions([mask], size)
            assert (totals[0], weakest[0]) == value(matrix, members, size)
    monkeypatch.setattr(partition, "QUERY_STEPS", 10)
    assert not fabric.partitions.exact(9, 3)


def test_entries_that_are_there_and_entries_that_are_missing_are_asked_for_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition, "TABLE_STEPS", 0)
    matrix = random_matrix(9)
    fabric = Fabric(matrix)
    sets = list(combinations(range(9), 5))
    masks = [sum(fabric.bits[position] for position in members) for members in sets]
    fabric.partitions.divisions(masks[::2], 4)
    totals, weakest = fabric.partitions.divisions(masks, 4)
    assert list(zip(totals, weakest, strict=True)) == [value(matrix, members, 4) for members in sets]


def test_sixteen_different_gpus_are_exact_in_pairs_and_in_large_sets_only() -> None:
    partitions = Fabric(random_matrix(16)).partitions
    assert [size for size in range(2, 17) if partitions.exact(16, size)] == [2, *range(8, 17)]
    assert all(partitions.exact(9, size) for size in range(2, 10))


def test_a_fabric_without_tables_is_never_exact() -> None:
    assert not Fabric(random_matrix(17)).partitions.exact(4, 2)


def test_the_cost_of_a_query_is_known_from_the_numbers() -> None:
    assert query_steps(8, 5) == 0
    # Five of six and four of five for 2: each rest of 4 has 3 pairs for its first GPU.
    assert query_steps(6, 2) == 15 * (3 + ENTRY_STEPS)
    # Rests of 5, divided into a pair or a single GPU and the rest, rests of 4, and rests of 3.
    assert query_steps(7, 2) == 21 * (5 + ENTRY_STEPS) + 35 * (3 + ENTRY_STEPS) + 35 * (3 + ENTRY_STEPS)
