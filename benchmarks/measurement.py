"""What a benchmark gives: one row, from many timings of the same thing."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row: what was measured, in which unit, how often, and the middle, the 99th percentile and the worst."""

    name: str
    unit: str
    n: int
    median: float
    p99: float
    max: float

    @classmethod
    def of(cls, name: str, unit: str, values: Sequence[float]) -> "Measurement":
        """The row of some values; percentiles are values that occurred (nearest rank). ValueError without any."""
        if not values:
            raise ValueError(f"{name}: there is nothing to measure")
        ordered = sorted(values)

        def rank(share: float) -> float:
            return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

        return cls(name, unit, len(ordered), rank(0.5), rank(0.99), ordered[-1])

    def as_dict(self) -> dict[str, object]:
        """The row for JSON."""
        return asdict(self)


def measure(name: str, call: Callable[[], object], *, repeat: int, warm_up: int = 3) -> Measurement:
    """Times `call` `repeat` times, in milliseconds, after some calls that do not count."""
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(repeat):
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1e6)
    return Measurement.of(name, "ms", times)
