"""What other implementations answer, what users reported, and what is right: as data."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest

from gpustow.errors import InfeasibleRequest
from gpustow.hardware.links import Links, PcieLevel
from gpustow.hardware.mig import MigDevice
from gpustow.placement import Inventory, Placement, Policy, Request, place
from gpustow.placement.fragmentation import placeable
from gpustow.resources.device import Device
from tests.placement.cards import ask, ask_counts, counts, free_after, linked, mig, replicas, whole
from tests.placement.fabrics import BRIDGED, DGX1_P100, DGX1_V100, NEIGHBOURS, RTX8000

ANY = Policy.named("packed")


def place_whole(
    links: Links, available: Sequence[int], size: int, must: Sequence[int] = (), *, gpus: int = 8
) -> Placement:
    inventory = Inventory.of(whole(gpus, numa=[gpu * 2 // gpus for gpu in range(gpus)]), links)
    return place(Request([f"gpu{gpu}" for gpu in available], [f"gpu{gpu}" for gpu in must], size), inventory, ANY)


def chosen(placement: Placement) -> list[int]:
    return sorted(placement.per_gpu)


EIGHT = range(8)


class TestBestEffortVectorsOfGoGpuallocator:
    @pytest.mark.parametrize(
        ("available", "must", "size", "expected"),
        [
            ([0, 2, 4, 5], [], 2, [4, 5]),
            ([0, 4, 5, 6], [], 2, [5, 6]),
            ([0, 1, 3], [], 2, [0, 3]),
            ([0, 1, 4], [], 2, [0, 4]),
            (EIGHT, [4], 1, [4]),
            (EIGHT, [4], 2, [4, 7]),
            (EIGHT, [4], 4, [4, 5, 6, 7]),
            (EIGHT, [0, 2, 4, 6], 4, [0, 2, 4, 6]),
        ],
    )
    def test_a_request_on_a_dgx1_v100(
        self, available: Sequence[int], must: Sequence[int], size: int, expected: list[int]
    ) -> None:
        assert chosen(place_whole(DGX1_V100, available, size, must)) == expected

    @pytest.mark.parametrize(
        ("available", "must", "size"),
        [
            (range(1, 8), [0, 1, 2, 3], 4),
            (EIGHT, [1, 2, 3, 4, 5, 6], 4),
            (range(1, 6), [1, 2, 3, 4, 5, 6], 1),
        ],
    )
    def test_an_infeasible_request_is_refused(self, available: Sequence[int], must: Sequence[int], size: int) -> None:
        with pytest.raises(InfeasibleRequest):
            place_whole(DGX1_V100, available, size, must)

    @pytest.mark.parametrize(
        ("links", "gpus", "size", "expected"),
        [
            (RTX8000, 4, 2, [[0, 3], [1, 2]]),
            (RTX8000, 4, 4, [[0, 1, 2, 3]]),
            (DGX1_P100, 8, 2, [[0, 2], [1, 3], [4, 6], [5, 7]]),
            (DGX1_P100, 8, 4, [[0, 1, 2, 3], [4, 5, 6, 7]]),
            (DGX1_P100, 8, 8, [list(EIGHT)]),
            (DGX1_V100, 8, 2, [[0, 3], [1, 2], [4, 7], [5, 6]]),
            (DGX1_V100, 8, 4, [[0, 1, 2, 3], [4, 5, 6, 7]]),
            (DGX1_V100, 8, 8, [list(EIGHT)]),
            # One at a time, by our rule: the GPU with the least links to the others, so that pairs last.
            (RTX8000, 4, 1, [[0], [3], [1], [2]]),
            (DGX1_P100, 8, 1, [[0], [2], [1], [3], [4], [6], [5], [7]]),
            (DGX1_V100, 8, 1, [[0], [3], [2], [1], [4], [5], [6], [7]]),
        ],
    )
    def test_requests_one_after_the_other(self, links: Links, gpus: int, size: int, expected: list[list[int]]) -> None:
        left = list(range(gpus))
        taken = []
        while left:
            answer = chosen(place_whole(links, left, size, gpus=gpus))
            taken.append(answer)
            left = [gpu for gpu in left if gpu not in answer]
        assert taken == expected
        with pytest.raises(InfeasibleRequest):
            place_whole(links, left, size, gpus=gpus)


class TestGreedyVectorsOfV0200:
    @pytest.mark.parametrize(
        ("policy", "totals", "used", "size", "expected"),
        [
            ("distributed", [4, 4], [0, 0], 2, [1, 1]),
            ("distributed", [4, 4], [0, 0], 4, [2, 2]),
            ("distributed", [2, 2, 2], [0, 0, 0], 3, [1, 1, 1]),
            ("distributed", [4, 4, 4], [0, 0, 0], 3, [1, 1, 1]),
            ("distributed", [4], [0], 1, [1]),
            ("distributed", [2, 2], [0, 1], 2, [1, 1]),
            ("packed", [4, 4], [0, 0], 2, [2, 0]),
            ("packed", [4, 4], [0, 0], 4, [4, 0]),
            ("packed", [4, 4], [0, 0], 5, [4, 1]),
            ("packed", [2, 2, 2], [0, 0, 0], 3, [2, 1, 0]),
            ("packed", [4], [0], 1, [1]),
            # The comparator: 3 of 4 in use against 1 of 4.
            ("distributed", [4, 4], [3, 1], 1, [0, 1]),
            ("packed", [4, 4], [3, 1], 1, [1, 0]),
            # 2 of 8 in use against 2 of 4: a tie there, by count; a quarter against a half here.
            ("distributed", [8, 4], [2, 2], 1, [1, 0]),
            ("packed", [8, 4], [2, 2], 1, [0, 1]),
            # Worked from its rules: 2 of 4 left against 4 of 4 left.
            ("distributed", [4, 4], [2, 0], 2, [0, 2]),
            ("packed", [4, 4], [2, 0], 2, [2, 0]),
        ],
    )
    def test_counts_on_each_gpu(
        self, policy: str, totals: list[int], used: list[int], size: int, expected: list[int]
    ) -> None:
        assert ask_counts(policy, totals, used, size) == expected

    @pytest.mark.parametrize("policy", ["distributed", "packed"])
    def test_more_than_offered_is_infeasible(self, policy: str) -> None:
        with pytest.raises(InfeasibleRequest, match="5 devices are asked for, but only 2 are offered"):
            ask_counts(policy, [2], [0], 5)

    @pytest.mark.parametrize(("policy", "expected"), [("distributed", [1, 1]), ("packed", [2, 0])])
    def test_must_include_counts_as_used(self, policy: str, expected: list[int]) -> None:
        placement = ask(policy, replicas([4, 4]), 2, must_include=["gpu0::0"])
        assert counts(placement, 2) == expected
        assert "gpu0::0" in placement.device_ids


class TestCounterexamples:
    @pytest.mark.parametrize(
        ("policy", "totals", "used", "size", "expected"),
        [
            pytest.param("packed", [4, 4], [3, 2], 2, [0, 2], id="packed-touch-2"),
            pytest.param("packed", [8, 8, 8, 8], [7, 7, 6, 4], 4, [0, 0, 0, 4], id="packed-touch-3"),
            pytest.param("packed", [4, 4], [3, 0], 4, [0, 4], id="packed-open-idle-same"),
            pytest.param("packed", [2, 2, 8], [0, 0, 0], 6, [0, 0, 6], id="packed-unequal-idle"),
            pytest.param("packed", [2, 2, 2], [1, 1, 0], 2, [1, 1, 0], id="packed-objective-order"),
            pytest.param("distributed", [2, 8], [0, 0], 4, [1, 3], id="distributed-unequal"),
            pytest.param("distributed", [2, 8], [0, 5], 2, [1, 1], id="distributed-most-available"),
            pytest.param("distributed", [8, 8], [5, 3], 2, [0, 2], id="distributed-not-distinct"),
            pytest.param("spread", [8, 8], [5, 3], 2, [1, 1], id="distributed-not-distinct-spread"),
            pytest.param("spread", [8, 8], [4, 0], 4, [2, 2], id="spread-even-own-slots"),
        ],
    )
    def test_counts_on_each_gpu(
        self, policy: str, totals: list[int], used: list[int], size: int, expected: list[int]
    ) -> None:
        assert ask_counts(policy, totals, used, size) == expected

    def test_packed_topology(self) -> None:
        links = linked(4, [(0, 1, 1), (2, 3, 1)])
        assert ask_counts("packed", [4] * 4, [0] * 4, 8, links=links) == [4, 4, 0, 0]
        links = linked(4, [(0, 3, 1), (1, 2, 1)])
        assert ask_counts("packed", [4] * 4, [0] * 4, 8, links=links) == [4, 0, 0, 4]

    def test_spread_required(self) -> None:
        placement = ask("spread", replicas([4, 4]), 2, must_include=["gpu0::0"])
        assert counts(placement, 2) == [1, 1]

    def test_mig_bucketing(self) -> None:
        devices = mig([[0, 1], [0, 1]])
        assert counts(ask("packed", devices, 2), 2) == [2, 0]
        assert counts(ask("distributed", devices, 2), 2) == [1, 1]

    def test_aligned_greedy_pair(self) -> None:
        placement = place_whole(DGX1_V100, EIGHT, 2)
        assert chosen(placement) == [0, 3]
        assert placement.explanation().winner.objective["partition score"] == 920

    def test_aligned_partition_loses(self) -> None:
        links = linked(4, [(0, 1, 3), (0, 2, 2), (1, 3, 2)])
        assert chosen(place_whole(links, range(4), 2, gpus=4)) == [0, 2]

    def test_aligned_padding(self) -> None:
        links = linked(5, [(0, 1, 12), (2, 3, 1), (2, 4, 1), (3, 4, 1)], pcie=PcieLevel.NUMA_NODE)
        placement = place_whole(links, range(5), 3, gpus=5)
        assert chosen(placement) == [2, 3, 4]
        assert placement.explanation().winner.objective["link score"] == 360

    @pytest.mark.parametrize("must", [[12, 13], [11, 13], [9, 12], [0, 1], [4, 5], [10, 13]])
    def test_aligned_alias(self, must: list[int]) -> None:
        links = linked(14, [], pcie=PcieLevel.NUMA_NODE)
        assert chosen(place_whole(links, range(14), 2, must, gpus=14)) == must

    def test_aligned_alias_with_one_strong_pair(self) -> None:
        weak = [(gpu, gpu + 1, 2) for gpu in range(0, 12, 2)]
        links = linked(14, [*weak, (12, 13, 12)], pcie=PcieLevel.NUMA_NODE)
        assert chosen(place_whole(links, range(14), 2, gpus=14)) == [12, 13]

    def test_single_breaks_pair(self) -> None:
        assert chosen(place_whole(NEIGHBOURS, [0, 1, 2, 4, 6], 1)) == [2]

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [("packed-aligned", [8, 8, 0, 0]), ("packed", [10, 6, 0, 0]), ("distributed", [4, 4, 4, 4])],
    )
    def test_fractional_tp(self, policy: str, expected: list[int]) -> None:
        links = linked(4, [(0, 1, 1), (2, 3, 1)])
        assert ask_counts(policy, [10] * 4, [0] * 4, 16, links=links) == expected

    def test_mig_start(self) -> None:
        assert placeable((0, 4), 4, {2, 3, 4, 6, 7}) == 0
        devices = mig([range(7)])
        placement = ask("packed", devices, 1, available=[d.id for d in devices if d.edge > 1])
        assert placement.device_ids == ("mig0@2",)
        assert placeable((0, 4), 4, {3, 4, 5, 6, 7}) == 1

    def test_healthy_only(self) -> None:
        sick = {"gpu0::0", "gpu0::1"}
        devices = [
            Device(d.id, d.uuid, d.gpu_index, d.index, d.share, (), replica=d.replica, healthy=d.id not in sick)
            for d in replicas([4, 4])
        ]
        offered = [device.id for device in devices if device.healthy]
        assert counts(ask("packed", devices, 1, available=offered), 2) == [1, 0]
        assert counts(ask("distributed", devices, 2, available=offered), 2) == [1, 1]


class TestLinkTableValues:
    """Scores of best single sets, and totals of best divisions."""

    @staticmethod
    def best(links: Links, size: int, must: Sequence[int] = ()) -> int:
        fabric = Inventory.of(whole(8), links).fabric
        return max(
            fabric.score(sum(fabric.bits[gpu] for gpu in some))
            for some in combinations(EIGHT, size)
            if set(must) <= set(some)
        )

    @pytest.mark.parametrize(("size", "score"), [(2, 250), (3, 610), (4, 1120), (5, 1360), (6, 1750), (7, 2250)])
    def test_best_single_set_of_a_dgx1_v100(self, size: int, score: int) -> None:
        assert self.best(DGX1_V100, size) == score

    @pytest.mark.parametrize(("size", "score"), [(2, 230), (3, 610), (4, 1120)])
    def test_best_single_set_with_gpu_4(self, size: int, score: int) -> None:
        assert self.best(DGX1_V100, size, [4]) == score

    @pytest.mark.parametrize(("size", "total"), [(2, 920), (3, 1430), (4, 2240), (5, 1970), (6, 2000), (7, 2250)])
    def test_total_of_the_best_division_of_a_dgx1_v100(self, size: int, total: int) -> None:
        assert place_whole(DGX1_V100, EIGHT, size).explanation().winner.objective["partition score"] == total

    @pytest.mark.parametrize(("size", "score"), [(2, 1210), (3, 1230), (4, 2460), (6, 3750)])
    def test_best_single_set_of_bridged_a100(self, size: int, score: int) -> None:
        assert self.best(BRIDGED, size) == score

    @pytest.mark.parametrize(("size", "score"), [(2, 410), (4, 860), (6, 1350)])
    def test_best_single_set_of_bridged_a40(self, size: int, score: int) -> None:
        assert self.best(NEIGHBOURS, size) == score

    def test_answers_on_what_is_left(self) -> None:
        assert chosen(place_whole(DGX1_V100, [0, 1, 2, 4, 6], 1)) == [6]
        assert chosen(place_whole(BRIDGED, [0, 1, 2, 4, 6], 1)) == [1]
        assert chosen(place_whole(BRIDGED, [0, 1, 2, 4, 6], 2)) == [0, 2]


class TestPublicCases:
    def test_case_c38_two_replicas_go_to_two_gpus(self) -> None:
        assert ask_counts("distributed", [2, 2], [0, 1], 2) == [1, 1]

    @pytest.mark.parametrize(("policy", "expected"), [("distributed", [0, 2]), ("packed", [2, 0]), ("spread", [1, 1])])
    def test_case_c39_three_policies_three_answers(self, policy: str, expected: list[int]) -> None:
        assert ask_counts(policy, [8, 8], [5, 3], 2) == expected

    def test_case_c40_mig_devices_count_for_their_gpu(self) -> None:
        begun = mig([[], [0]], shared=2)
        devices = [*mig([[0, 1]]), *begun]
        available = [device.id for device in devices if device.id != begun[0].id]
        assert counts(ask("distributed", devices, 2, available=available), 2) == [1, 1]
        assert counts(ask("packed", mig([[0, 1], [0, 1]]), 2), 2) == [2, 0]

    @pytest.mark.parametrize("policy", ["distributed", "spread"])
    def test_case_c42_eight_slots_go_to_eight_gpus(self, policy: str) -> None:
        assert ask_counts(policy, [10] * 8, [0] * 8, 8) == [1] * 8

    @pytest.mark.parametrize("known_sick", [True, False])
    def test_case_c47_a_lost_gpu_costs_only_that_gpu(self, *, known_sick: bool) -> None:
        links = Links(tuple(reading for reading in linked(8, []).readings if 5 not in reading[0]))
        devices = [
            Device(d.id, d.uuid, d.gpu_index, d.index, d.share, (), healthy=not (known_sick and d.gpu_index == 5))
            for d in whole(8)
        ]
        others = [device.id for device in devices if device.gpu_index != 5]
        for size in range(1, 8):
            placement = ask("packed", devices, size, available=others, links=links)
            assert len(set(placement.device_ids)) == size
            assert 5 not in placement.per_gpu
        with pytest.raises(InfeasibleRequest):
            ask("packed", devices, 8, available=others, links=links)

    def test_case_c48_without_any_links_a_request_is_answered(self) -> None:
        for size in range(1, 9):
            placement = ask("packed", whole(8), size, must_include=["gpu3"])
            assert len(set(placement.device_ids)) == size
            assert "gpu3" in placement.device_ids

    def test_case_c49_two_gpus_are_a_linked_pair(self) -> None:
        pairs = [[0, 2], [1, 3], [4, 5], [6, 7]]
        assert chosen(place_whole(BRIDGED, EIGHT, 2)) in pairs
        assert chosen(place_whole(BRIDGED, range(1, 8), 2)) in pairs[1:]
        assert chosen(place_whole(BRIDGED, EIGHT, 4)) in ([0, 1, 2, 3], [4, 5, 6, 7])

    def test_case_c50_singles_use_up_broken_pairs(self) -> None:
        left = list(EIGHT)
        answers = []
        for size in (1, 1, 1, 1, 2, 2):
            answers.append(chosen(place_whole(NEIGHBOURS, left, size)))
            left = [gpu for gpu in left if gpu not in answers[-1]]
        assert answers == [[0], [1], [2], [3], [4, 5], [6, 7]]


def test_a_mig_devices_share_is_its_memory_slices() -> None:
    part = mig([[0]])[0]
    assert isinstance(part.mig, MigDevice)
    assert part.share == Fraction(1, 8)


def test_in_use_devices_are_the_first_ones() -> None:
    assert free_after(replicas([2, 2]), {0: 1}) == ["gpu0::1", "gpu1::0", "gpu1::1"]
