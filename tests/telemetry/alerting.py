"""What alert rules say of two scrapes: of a daemon that is well, and of one after something has broken.

promtool is given half an hour of the first scrape and an hour of the second, minute by minute.
"""

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.telemetry.daemon import samples

RULES = Path(__file__).parents[2] / "deploy" / "monitoring" / "gpustow-rules.yaml"
TARGET = {"job": "gpustow-device-plugin", "instance": "node-1:9402"}

_BEFORE, _AFTER = 31, 60
_MISSING, _STALE = "_", "stale"

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not there (Debian has it in the package prometheus)"
)


def rules() -> Any:
    """What is below `spec` of the PrometheusRule: a rule file."""
    return yaml.safe_load(RULES.read_text(encoding="utf-8"))["spec"]


def alerts() -> Iterable[Mapping[str, Any]]:
    return [rule for group in rules()["groups"] for rule in group["rules"]]


def check(directory: Path, before: str, after: str | None, expected: Iterable[str]) -> None:
    """Fails unless nothing fires before, and exactly these alerts fire at some time after; None: nothing answers."""
    (directory / "rules.yaml").write_text(yaml.safe_dump(rules()), encoding="utf-8")
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": list(_series(before, after)),
                "promql_expr_test": [_fired(_BEFORE - 1, ()), _fired(_BEFORE + _AFTER - 1, expected)],
            }
        ],
    }
    path = directory / "test.yaml"
    path.write_text(yaml.safe_dump(test, width=1_000_000), encoding="utf-8")
    ended = subprocess.run(
        ["promtool", "test", "rules", path.name],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def _fired(minute: int, expected: Iterable[str]) -> Mapping[str, Any]:
    window = _BEFORE if minute < _BEFORE else _AFTER
    return {
        "expr": f'group by (alertname) (max_over_time(ALERTS{{alertstate="firing"}}[{window}m]))',
        "eval_time": f"{minute}m",
        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(expected)],
    }


def _series(before: str, after: str | None) -> Iterable[Mapping[str, str]]:
    first, second = samples(before), {} if after is None else samples(after)
    for name, labels in dict.fromkeys((*first, *second)):
        old, new = first.get((name, labels)), second.get((name, labels))
        values = [_MISSING if old is None else repr(old)] * _BEFORE
        if new is not None:
            values += [repr(new)] * _AFTER
        elif old is not None:
            values += [_STALE]
        yield {"series": _written(name, dict(labels)), "values": " ".join(values)}
    up = ["1"] * _BEFORE + ["0" if after is None else "1"] * _AFTER
    yield {"series": _written("up", {}), "values": " ".join(up)}


def _written(name: str, labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in {**labels, **TARGET}.items())
    return f"{name}{{{pairs}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
