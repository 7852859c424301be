"""Walks one after the other, for some time or so many steps; the first that violates something is told, made short.

python -m tests.lifecycle --seconds 600 --seed 1
"""

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from tests.lifecycle.processes import walk_with_processes
from tests.lifecycle.walk import Outcome, shortest, walk

STEPS = 250
"""Deeds of one walk."""


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lifecycle", description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long new walks are begun")
    parser.add_argument("--steps", type=int, default=0, help="how many steps to make, where no time is given")
    parser.add_argument("--seed", type=int, default=1, help="of the first walk; the others count up")
    parser.add_argument("--processes", action="store_true", help="the daemon in a process of its own, in real time")
    parser.add_argument("--shorten", type=float, default=120.0, help="seconds for making a story short")
    given = parser.parse_args(words)
    if not given.steps and given.seconds == float("inf"):
        parser.error("say for how long: --seconds or --steps")
    logging.disable(logging.INFO)
    logging.getLogger("gpustow").propagate = False
    one = walk_with_processes if given.processes else walk
    violated = _walk_on(one, given.seed, given.steps or sys.maxsize, given.seconds)
    if violated is None:
        return 0
    _say(f"seed {violated.seed}, after {len(violated.deeds)} steps: {violated.violation}")
    if given.processes:
        _say(violated.told())
    else:
        short = shortest(violated, given.shorten)
        _say(short.told())
        _say(f"walk({short.seed}, deeds={short.deeds})")
    return 1


def _walk_on(one: Callable[..., Outcome], seed: int, steps: int, seconds: float) -> Outcome | None:
    """Walks until time or steps are used up, or something is violated."""
    start, cpu = time.monotonic(), time.process_time()
    kinds: Counter[str] = Counter()
    walks: list[tuple[int, int, int, float]] = []
    violated = None
    while sum(made for made, *_ in walks) < steps and time.monotonic() - start < seconds and violated is None:
        outcome = one(seed + len(walks), steps=min(STEPS, steps))
        kinds.update(outcome.kinds)
        walks.append((len(outcome.deeds), outcome.admitted, outcome.checks, outcome.lived))
        violated = outcome if outcome.violation is not None else None
    made, admitted, checks, lived = (sum(column) for column in zip(*walks, strict=True))
    used = time.process_time() - cpu
    _say(
        f"{made} steps in {len(walks)} walks, seeds {seed} to {seed + len(walks) - 1}: {admitted} admissions, "
        f"{checks} comparisons in quiet, {lived / 3600:.1f} hours lived in {time.monotonic() - start:.0f} s "
        f"({used:.0f} s of CPU)"
    )
    _say(", ".join(f"{kind} {times}" for kind, times in kinds.most_common()))
    return violated


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
