"""Walks one after the other, for some time or so many steps; the first that violates something is told, made short.

python -m tests.lifecycle --seconds 600 --seed 1
"""

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from tests.lifecycle.walk import Outcome, shortest, walk

STEPS = 250
"""Deeds of one walk."""


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lifecycle", description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long new walks are begun")
    parser.add_argument("--steps", type=int, default=0, help="how many steps to make, where no time is given")
    parser.add_argument("--seed", type=int, default=1, help="of the first walk; the others count up")
    parser.add_argument("--shorten", type=float, default=120.0, help="seconds for making a story short")
    given = parser.parse_args(words)
    if not given.steps and given.seconds == float("inf"):
        parser.error("say for how long: --seconds or --steps")
    logging.disable(logging.INFO)
    logging.getLogger("gpustow").propagate = False
    return _walk_on(given.seed, given.steps or sys.maxsize, given.seconds, given.shorten)


def _walk_on(seed: int, steps: int, seconds: float, shorten: float) -> int:
    start, cpu = time.monotonic(), time.process_time()
    kinds: Counter[str] = Counter()
    walks: list[tuple[int, int, int, float]] = []
    violated = None
    while sum(made for made, *_ in walks) < steps and time.monotonic() - start < seconds and violated is None:
        outcome = walk(seed + len(walks), steps=min(STEPS, steps))
        kinds.update(outcome.kinds)
        walks.append((len(outcome.deeds), outcome.admitted, outcome.checks, outcome.virtual_seconds))
        violated = outcome if outcome.violation is not None else None
    made, admitted, checks, lived = (sum(column) for column in zip(*walks, strict=True))
    used = time.process_time() - cpu
    _say(
        f"{made} steps in {len(walks)} walks, seeds {seed} to {seed + len(walks) - 1}: {admitted} admissions, "
        f"{checks} comparisons in quiet, {lived / 3600:.1f} hours lived in {time.monotonic() - start:.0f} s "
        f"({used:.0f} s of CPU)"
    )
    _say(", ".join(f"{kind} {times}" for kind, times in kinds.most_common()))
    if violated is not None:
        _tell(violated, shorten)
    return 0 if violated is None else 1


def _tell(violated: Outcome, shorten: float) -> None:
    _say(f"seed {violated.seed}, after {len(violated.deeds)} steps: {violated.violation}")
    short = shortest(violated, shorten)
    _say(short.told())
    _say(f"walk({short.seed}, deeds={short.deeds})")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
