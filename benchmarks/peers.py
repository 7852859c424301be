"""The rules of v0.20.0, plainly written in the tests, beside ours in one run: how much longer, and how much worse."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

from tests.placement.plain_best_effort import plain_best_effort
from tests.placement.plain_greedy import plain_greedy
from tests.placement.test_peers import Shared

from benchmarks.measurement import Measurement
from benchmarks.shared import GPUS, LINKS, devices
from benchmarks.whole import links_of, whole
from gpustow.hardware.links import Link, PcieLevel
from gpustow.placement import Inventory, Policy, Request, place

GREEDY = ((10, 8), (100, 8), (100, 64), (100, 256))
"""Replicas a GPU, and size."""


def _time(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1e6


def measure_peers(*, repeat: int, states: int) -> Iterator[Measurement]:
    """Ratios of times, and the shares of random states that `packed` leaves better than the greedy rule."""
    rng = Random(3)  # noqa: S311 - to be repeated
    for name in ("packed", "distributed"):
        for replicas, size in GREEDY:
            inventory = Inventory.of(devices(replicas), LINKS)
            totals = {device.uuid: replicas for device in inventory.devices}
            ratios = []
            for _ in range(repeat):
                offered = rng.sample(inventory.ids, rng.randint(size, len(inventory.ids)))
                ours = partial(place, Request(offered, (), size), inventory, Policy.named(name))
                theirs = partial(plain_greedy, name, totals, offered, size, rng)
                ratios.append(_time(theirs) / min(_time(ours) for _ in range(3)))
            yield Measurement.of(f"plain greedy to ours/{name}/{GPUS}x{replicas}/{size}", "times", ratios)
    yield from _best_effort(repeat)
    for equal in (True, False):
        yield _better(states, equal=equal)


def _best_effort(repeat: int) -> Iterator[Measurement]:
    links = links_of(GPUS, lambda one, other: Link(PcieLevel.SYSTEM, 4 if one // 2 == other // 2 else 0))
    inventory = Inventory.of(whole(GPUS), links)
    matrix = links.scores(range(GPUS))
    for size in (2, 3, 5, 7):
        ratios = []
        for _ in range(repeat):
            ours = partial(_place_afresh, Request(inventory.ids, (), size), inventory)
            theirs = partial(plain_best_effort, matrix, range(GPUS), [], size)
            ratios.append(_time(theirs) / min(_time(ours) for _ in range(3)))
        yield Measurement.of(f"plain best effort to ours/{GPUS} GPUs/{size}", "times", ratios)


def _place_afresh(request: Request, inventory: Inventory) -> object:
    inventory.fabric.answers.clear()
    return place(request, inventory, Policy.named("packed"))


def _better(states: int, *, equal: bool) -> Measurement:
    """How often packed opens fewer idle GPUs than the greedy rule, or touches fewer."""
    rng = Random(4)  # noqa: S311 - to be repeated
    better = []
    for _ in range(states):
        state = Shared(rng, equal=equal)
        ours = state.opened_and_touched(state.ours("packed"))
        theirs = state.opened_and_touched(state.theirs("packed", rng))
        better.append(100.0 * (ours < theirs))
    kind = "equal" if equal else "unequal"
    share = sum(better) / len(better)
    return Measurement(f"packed better than plain greedy/{kind} replicas", "% of states", states, share, share, share)
