import json
from typing import Any

import pytest

from gpustow.telemetry.facts import Facts
from gpustow.telemetry.picture import node_status
from gpustow.telemetry.plainjson import plain
from gpustow.telemetry.statusreader import read_status
from tests.telemetry.samples import facts, hold, unhealthy


def told(known: Facts) -> Any:
    return json.loads(json.dumps(plain(node_status(known))))


@pytest.mark.parametrize(
    "known",
    [
        hold(facts(), 0, 3),
        unhealthy(hold(facts("t4-4", replicas=3), 1), 1, 2),
        facts("dgx-1-v100", text="version: v1\n"),
        Facts(1.0, ()),
    ],
)
def test_what_was_written_is_read(known: Facts) -> None:
    status = read_status(told(known))
    assert plain(status) == told(known)
    if known.loaded is None:
        assert status == node_status(known)


def test_what_a_newer_daemon_tells_beside_it_is_left_aside() -> None:
    data = told(facts("t4-4"))
    data["gpus"][0]["colour"] = "green"
    data["weather"] = {}
    assert read_status(data) == read_status(told(facts("t4-4")))


@pytest.mark.parametrize("data", [[], "x", None, 3])
def test_what_is_no_status_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="the whole: "):
        read_status(data)


def test_what_is_missing_or_wrong_is_named() -> None:
    data = told(facts("t4-4"))
    del data["gpus"][2]["health"]["reason"]
    with pytest.raises(ValueError, match=r"gpus\.2\.health\.reason: Field required"):
        read_status(data)
    data["gpus"][2] = 3
    with pytest.raises(ValueError, match=r"gpus\.2: "):
        read_status(data)
    data["gpus"] = {}
    with pytest.raises(ValueError, match=r"gpus: "):
        read_status(data)
