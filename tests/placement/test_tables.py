"""Tables over all sets of GPUs, against sums over their pairs."""

from array import array
from itertools import combinations

import pytest

from gpustow.placement.tables import look_up, masks_by_count, score_table
from tests.placement.test_fabric import random_matrix


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_the_score_of_every_set_is_the_sum_over_its_pairs(count: int) -> None:
    matrix = random_matrix(count)
    for mask, score in enumerate(score_table(matrix)):
        members = [position for position in range(count) if mask >> (count - 1 - position) & 1]
        assert score == sum(matrix[one][other] for one, other in combinations(members, 2))


def test_every_mask_is_listed_once_under_its_count() -> None:
    assert [list(masks) for masks in masks_by_count(3)] == [[0], [1, 2, 4], [3, 5, 6], [7]]
    assert sorted(mask for masks in masks_by_count(16) for mask in masks) == list(range(1 << 16))


@pytest.mark.parametrize("keys", [[], [2], [1, 1], [2, 0, 1]])
def test_entries_are_looked_up_in_the_order_asked_for(keys: list[int]) -> None:
    entries = [5, 6, 7]
    for table in (entries, array("I", entries), dict(enumerate(entries))):
        assert list(look_up(table, keys)) == [entries[key] for key in keys]


@pytest.mark.parametrize("keys", [[3], [0, 3]])
def test_an_entry_that_a_mapping_lacks_is_an_error(keys: list[int]) -> None:
    with pytest.raises(KeyError):
        look_up({0: 5}, keys)
