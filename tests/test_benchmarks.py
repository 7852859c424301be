import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.measurement import Measurement, measure

ROOT = Path(__file__).parents[1]


def test_percentiles_are_values_that_occurred() -> None:
    assert Measurement.of("m", "ms", list(range(1, 201))) == Measurement("m", "ms", 200, 100, 198, 200)
    assert Measurement.of("m", "ms", [3.0]) == Measurement("m", "ms", 1, 3.0, 3.0, 3.0)


def test_nothing_measured_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is nothing to measure"):
        Measurement.of("m", "ms", [])


def test_warm_up_calls_do_not_count() -> None:
    calls: list[None] = []
    assert measure("m", lambda: calls.append(None), repeat=5, warm_up=2).n == 5
    assert len(calls) == 7


@pytest.mark.slow
def test_a_quick_run_gives_every_row_as_a_table_and_as_json_lines(tmp_path: Path) -> None:
    out = tmp_path / "bench.jsonl"
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", f"--out={out}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ended.returncode == 0, ended.stderr
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert all(row.keys() == {"name", "unit", "n", "median", "p99", "max"} for row in rows)
    assert all(row["name"] in ended.stdout for row in rows)
    names = {row["name"] for row in rows}
    for expected in (
        "grpc/null",
        "grpc/Allocate/1",
        "grpc/GetPreferredAllocation/packed/800/256",
        "grpc/ListAndWatch/first/800",
        "start/registered",
        "memory/resident/800 devices",
        "cpu/idle",
        "telemetry/memory/added",
        "telemetry/decision/added",
        "telemetry/scrape/8000 devices",
        "telemetry/node/8000 devices",
    ):
        assert expected in names
