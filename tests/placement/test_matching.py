"""The best pairs of every set of GPUs, from the sweep, against plain recursion over all divisions."""

import pytest

from gpustow.placement.matching import PairTable
from gpustow.placement.tables import Matrix
from tests.placement.test_fabric import random_matrix
from tests.placement.test_partition import value

NO_PAIR = 1 << 60


def assert_best(matrix: Matrix) -> None:
    count = len(matrix)
    masks = range(1 << count)
    totals, weakest = PairTable(matrix, NO_PAIR).divisions(masks)
    for mask in masks:
        members = tuple(position for position in range(count) if mask >> (count - 1 - position) & 1)
        expected = value(matrix, members, 2) if len(members) > 1 else (0, NO_PAIR)
        assert (totals[mask], weakest[mask]) == expected


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6, 7])
def test_the_pair_table_holds_the_best_pairs_of_every_set(count: int) -> None:
    assert_best(random_matrix(count, seed=count))


@pytest.mark.parametrize("seed", range(5))
def test_of_divisions_with_one_total_the_one_with_the_strongest_weakest_pair_counts(seed: int) -> None:
    assert_best(tuple(tuple(worth % 3 for worth in row) for row in random_matrix(6, seed)))


def test_links_that_are_worth_nothing_make_pairs_all_the_same() -> None:
    assert_best(((0,) * 4,) * 4)


def test_links_may_be_worth_more_than_narrow_lanes_hold() -> None:
    assert_best(tuple(tuple(worth * 10_000 for worth in row) for row in random_matrix(6)))
