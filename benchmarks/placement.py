"""What a decision costs: shared devices and whole GPUs, the tables, the slope, and plain rules beside ours."""

import gc
from collections.abc import Iterator

from benchmarks.measurement import Measurement
from benchmarks.peers import measure_peers
from benchmarks.shared import measure_shared
from benchmarks.whole import measure_whole


def measure_placement(*, quick: bool) -> Iterator[Measurement]:
    """All rows about decisions. What is there at the start is kept out of garbage collection, as in the daemon."""
    gc.freeze()
    yield from measure_shared(repeat=3 if quick else 100)
    yield from measure_whole(repeat=2 if quick else 40)
    yield from measure_peers(repeat=1 if quick else 5, states=50 if quick else 2_000)
