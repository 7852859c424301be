"""packed-aligned: equal parts on few GPUs that are linked."""

import pytest

from gpustow.hardware.links import Link, PcieLevel
from tests.placement.cards import ask, counts, free_after, linked, mig, replicas
from tests.placement.fabrics import links_of

PAIRS = linked(4, [(0, 1, 1), (2, 3, 1)])


def placed(
    used: list[int], size: int, *, total: int = 10, must: list[str] | None = None, numa: list[int | None] | None = None
) -> list[int]:
    devices = replicas([total] * len(used), numa=numa)
    available = free_after(devices, dict(enumerate(used)))
    placement = ask("packed-aligned", devices, size, available=available, must_include=must or [], links=PAIRS)
    return counts(placement, len(used))


def test_what_fits_on_one_gpu_stays_there() -> None:
    assert placed([0, 0, 0, 0], 10) == [10, 0, 0, 0]
    assert placed([0, 4, 0, 0], 6) == [0, 6, 0, 0]


def test_parts_differ_by_at_most_one_slot() -> None:
    assert placed([0, 0, 0, 0], 17) == [9, 8, 0, 0]
    assert placed([2, 1, 0, 0], 17) == [8, 9, 0, 0]


def test_an_island_that_lacks_room_is_left_for_one_that_has_it() -> None:
    assert placed([3, 0, 0, 0], 16) == [0, 0, 8, 8]


def test_without_room_in_an_island_one_numa_node_holds_the_parts() -> None:
    numa: list[int | None] = [0, 1, 0, 1]
    assert placed([0, 3, 0, 3], 16, numa=numa) == [8, 0, 8, 0]


def test_without_room_in_a_numa_node_the_parts_go_anywhere() -> None:
    numa: list[int | None] = [0, 0, 1, 1]
    assert placed([0, 3, 0, 3], 16, numa=numa) == [8, 0, 8, 0]
    assert placed([0, 0, 0, 0], 24, numa=[0, 1, 2, 3]) == [8, 8, 8, 0]


def test_must_includes_slots_are_part_of_the_parts() -> None:
    assert placed([0, 0, 0, 0], 16, must=["gpu3::0", "gpu3::1"]) == [0, 0, 8, 8]
    assert placed([0, 0, 0, 0], 4, must=["gpu0::0", "gpu3::1"]) == [2, 0, 0, 2]
    assert placed([0, 0, 0, 0], 3, must=["gpu0::0", "gpu3::1"]) == [2, 0, 0, 1]


def test_must_includes_larger_part_stays_the_larger_one() -> None:
    assert placed([0, 0, 0, 0], 3, must=["gpu0::0", "gpu3::1", "gpu3::0"]) == [1, 0, 0, 2]


def test_uneven_must_include_makes_an_uneven_answer() -> None:
    must = ["gpu0::0", "gpu0::1", "gpu0::2", "gpu3::1"]
    assert placed([0, 0, 0, 9], 5, must=["gpu0::0", "gpu0::1", "gpu0::2", "gpu3::9"]) == [4, 0, 0, 1]
    assert placed([0, 0, 0, 0], 5, must=must) == [3, 0, 0, 2]


def test_what_cannot_be_divided_evenly_is_packed() -> None:
    placement = ask("packed-aligned", replicas([1, 5]), 6)
    assert counts(placement, 2) == [1, 5]


def test_more_gpus_are_used_where_fewer_cannot_be_even() -> None:
    # 9 on one GPU is too much; 5 and 4 have no room; 3, 3 and 3 have.
    assert placed([6, 6, 6, 6], 9) == [3, 3, 3, 0]


def test_the_larger_part_goes_where_a_slot_is_the_larger_share() -> None:
    placement = ask("packed-aligned", replicas([8, 4]), 7, links=linked(2, [(0, 1, 1)]))
    assert counts(placement, 2) == [7, 0]
    placement = ask("packed-aligned", replicas([4, 4]), 7, links=linked(2, [(0, 1, 1)]))
    assert counts(placement, 2) == [4, 3]
    placement = ask("packed-aligned", replicas([6, 4]), 7, links=linked(2, [(0, 1, 1)]))
    assert counts(placement, 2) == [3, 4]


def test_mig_devices_have_no_island_but_their_card() -> None:
    devices = mig([[0, 1], [0, 1]])
    assert counts(ask("packed-aligned", devices, 2, links=linked(2, [(0, 1, 1)])), 2) == [2, 0]
    explanation = ask("packed-aligned", devices, 4, links=linked(2, [(0, 1, 1)])).explanation()
    assert explanation.winner.objective["domain"] == "in one NUMA node"


@pytest.mark.parametrize("size", [32, 41])
def test_seventeen_different_gpus_still_get_equal_parts(size: int) -> None:
    links = links_of(17, lambda a, b: Link(PcieLevel.SYSTEM, (a * 5 + b * 3) % 7 + 1))
    placement = ask("packed-aligned", replicas([8 + gpu % 3 for gpu in range(17)]), size, links=links)
    assert not placement.exact
    parts = list(placement.per_gpu.values())
    assert sum(parts) == size
    assert max(parts) - min(parts) <= 1
    assert len(parts) == 5 if size == 41 else 4
