"""`python -m benchmarks`: a table on stdout, and the same rows as JSON lines in out/bench.jsonl.

Quick runs take each measurement a few times, to see that all of it works; their numbers mean little.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cost import measure_cost
from benchmarks.measurement import Measurement
from benchmarks.placement import measure_placement
from benchmarks.telemetry import measure_telemetry
from benchmarks.wire import measure_wire

COLUMNS = "{:<52} {:>9} {:>6} {:>10} {:>10} {:>10}"


def main() -> None:
    """Measures, prints each row as it comes, and writes the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions: a smoke test")
    parser.add_argument("--out", type=Path, default=Path("out/bench.jsonl"), help="the file of JSON lines")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    print(COLUMNS.format("name", "unit", "n", "median", "p99", "max"))
    with options.out.open("w", encoding="utf-8") as lines:
        for row in _rows(quick=options.quick):
            print(
                COLUMNS.format(row.name, row.unit, row.n, f"{row.median:.3f}", f"{row.p99:.3f}", f"{row.max:.3f}"),
                flush=True,
            )
            lines.write(json.dumps(row.as_dict()) + "\n")
    print(f"written to {options.out}", file=sys.stderr)


def _rows(*, quick: bool) -> Iterator[Measurement]:
    yield from measure_placement(quick=quick)
    yield from asyncio.run(measure_wire(repeat=5 if quick else 500))
    yield from asyncio.run(measure_cost(starts=1 if quick else 10, idle_seconds=1 if quick else 20))
    yield from asyncio.run(measure_telemetry(runs=1 if quick else 10, repeat=5 if quick else 200))


main()
