"""Against plain implementations of the rules of v0.20.0: never worse, and equal where those are right."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from random import Random

import pytest

from gpustow.hardware.links import Link, Links, PcieLevel
from gpustow.placement import Inventory, Policy, Request, place
from tests.placement.cards import replicas, whole
from tests.placement.plain_best_effort import plain_best_effort
from tests.placement.plain_greedy import plain_greedy

STATES = 10_000


def gpu_of(id_: str) -> int:
    return int(id_.removeprefix("gpu").partition("::")[0])


@cache
def nodes(*, equal: bool) -> list[tuple[list[int], Inventory]]:
    """Random healthy nodes with one resource: the replicas of each GPU, and the inventory."""
    rng = Random(19)
    drawn = []
    for _ in range(200):
        gpus = rng.randint(1, 6)
        totals = [rng.randint(1, 6)] * gpus if equal else [rng.choice((1, 2, 3, 4, 6)) for _ in range(gpus)]
        drawn.append((totals, Inventory.of(replicas(totals), Links())))
    return drawn


class Shared:
    """A node, a random use of it, and a request."""

    def __init__(self, rng: Random, *, equal: bool) -> None:
        totals, self.inventory = rng.choice(nodes(equal=equal))
        self.totals = totals
        busy = rng.random()
        self.available = [id_ for id_ in self.inventory.ids if rng.random() >= busy] or [self.inventory.ids[0]]
        self.size = rng.randint(1, min(8, len(self.available)))
        free = self.per_gpu(self.available)
        self.used = [total - left for total, left in zip(totals, free, strict=True)]

    def per_gpu(self, ids: Sequence[str]) -> list[int]:
        counts = [0] * len(self.totals)
        for id_ in ids:
            counts[gpu_of(id_)] += 1
        return counts

    def ours(self, policy: str) -> list[int]:
        request = Request(self.available, [], self.size)
        return self.per_gpu(place(request, self.inventory, Policy.named(policy)).device_ids)

    def theirs(self, policy: str, rng: Random) -> list[int]:
        totals = {f"gpu{gpu}": total for gpu, total in enumerate(self.totals)}
        return self.per_gpu(plain_greedy(policy, totals, self.available, self.size, rng))

    def opened_and_touched(self, counts: Sequence[int]) -> tuple[int, int]:
        opened = sum(1 for used, count in zip(self.used, counts, strict=True) if count and not used)
        return opened, sum(map(bool, counts))

    def loads(self, counts: Sequence[int]) -> list[Fraction]:
        each = zip(self.used, counts, self.totals, strict=True)
        return sorted((Fraction(used + count, total) for used, count, total in each), reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("equal", [True, False])
def test_packed_never_opens_or_touches_more_gpus_than_the_greedy_rule(*, equal: bool) -> None:
    rng = Random(20)
    better = 0
    for _ in range(STATES // 2):
        state = Shared(rng, equal=equal)
        ours = state.opened_and_touched(state.ours("packed"))
        theirs = state.opened_and_touched(state.theirs("packed", rng))
        assert ours <= theirs
        better += ours < theirs
    assert better > STATES // 20


@pytest.mark.slow
@pytest.mark.parametrize("equal", [True, False])
def test_distributed_never_loads_a_gpu_higher_than_the_greedy_rule(*, equal: bool) -> None:
    rng = Random(21)
    for _ in range(STATES // 2):
        state = Shared(rng, equal=equal)
        ours, theirs = state.ours("distributed"), state.theirs("distributed", rng)
        if equal:
            assert state.loads(ours) == state.loads(theirs)
        else:
            assert state.loads(ours)[0] <= state.loads(theirs)[0]


def _random_matrix(rng: Random, gpus: int) -> Links:
    """Random links, both ends alike."""
    levels = list(PcieLevel)
    return Links.symmetric(
        [
            (a, b, Link(rng.choice(levels), rng.choice((0, 0, 1, 2, 12))))
            for a in range(gpus)
            for b in range(a + 1, gpus)
        ]
    )


@pytest.mark.slow
def test_aligned_divides_as_well_as_best_effort_and_never_answers_blanks() -> None:
    rng = Random(22)
    full = blank = 0
    for turn in range(400):
        gpus = rng.randint(2, 8) if turn % 4 else 5
        links = _random_matrix(rng, gpus)
        inventory = Inventory.of(whole(gpus), links)
        available = rng.sample(range(gpus), rng.randint(2, gpus) if turn % 4 else 5)
        size = rng.randint(2, len(available)) if turn % 4 else 3  # five GPUs for 3: where blanks are answered most
        required = rng.sample(available, rng.choice((0, 0, 1, min(2, size))))
        theirs, total = plain_best_effort(links.scores(range(gpus)), available, required, size)
        request = Request([f"gpu{gpu}" for gpu in available], [f"gpu{gpu}" for gpu in required], size)
        ours = place(request, inventory, Policy.named("distributed"))
        assert len(set(ours.device_ids)) == size
        assert {f"gpu{gpu}" for gpu in required} <= set(ours.device_ids) <= set(request.available)
        if len(theirs) == size and None not in theirs:
            full += 1
            assert ours.explanation().winner.objective["partition score"] == total
        else:
            blank += 1
    assert full > 300
    assert blank > 0


def test_the_plain_best_effort_rule_answers_a_blank_for_five_gpus() -> None:
    strong = {(0, 1): 12, (2, 3): 1, (2, 4): 1, (3, 4): 1}
    matrix = [[0] * 5 for _ in range(5)]
    for a in range(5):
        for b in range(a + 1, 5):
            matrix[a][b] = matrix[b][a] = 20 + 100 * strong.get((a, b), 0)
    assert plain_best_effort(matrix, range(5), [], 3)[0] == [0, 1, None]
    assert plain_best_effort(matrix, range(5), [2], 3)[0] == [2, 3, 4]
    assert plain_best_effort(matrix, range(5), [0], 3)[0] == [0, 1, 2]


@pytest.mark.parametrize(
    ("policy", "available", "expected"),
    [
        ("distributed", ["gpu0::0", "gpu0::1", "gpu1::1"], [1, 1]),
        ("packed", ["gpu0::0", "gpu0::1", "gpu1::1"], [0, 1]),
    ],
)
def test_the_plain_greedy_rule_keeps_its_own_vectors(policy: str, available: list[str], expected: list[int]) -> None:
    size = sum(expected)
    chosen = plain_greedy(policy, {"gpu0": 2, "gpu1": 2}, available, size, Random(1))
    assert [sum(gpu_of(id_) == gpu for id_ in chosen) for gpu in range(2)] == expected


def test_the_plain_greedy_rule_refuses_more_than_there_is() -> None:
    with pytest.raises(ValueError, match="not enough"):
        plain_greedy("packed", {"gpu0": 2}, ["gpu0::0"], 2, Random(1))
