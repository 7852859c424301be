"""The section `health`: what it says, and every fault where it stands."""

from typing import Any

import pytest

from gpustow.config import load_config
from gpustow.config.effective import effective
from gpustow.config.faultrule import FATAL, IGNORE, FaultRule
from gpustow.config.goyaml import parse
from gpustow.config.health import HealthConfig, RecoveryConfig, XidPolicy, read_health
from gpustow.config.healthpage import EXAMPLE
from gpustow.config.section import Findings, Section
from gpustow.errors import ConfigError

FILE = """
health:
  xidPolicy: catalogue
  xids: {94: 3 in 24h, 31: fatal, 79: null}
  unknownXids: ignore
  events: {eccSingleBit: 100 in 1h, eccDoubleBit: fatal, rowRemapPending: fatal, unwatched: ignore}
  checkInterval: 10s
  rescanInterval: infinite
  recovery: {enabled: false, holdTime: 5m, unknownIsProof: true, flapCount: 2, flapWindow: 2h, flapHoldTime: 0s}
"""
SAID = HealthConfig(
    xid_policy=XidPolicy.CATALOGUE,
    xids={94: FaultRule(3, 86400.0), 31: FATAL},
    unknown_xids=IGNORE,
    events={
        "eccSingleBit": FaultRule(100, 3600.0),
        "eccDoubleBit": FATAL,
        "rowRemapPending": FATAL,
        "unwatched": IGNORE,
    },
    check_interval=10.0,
    rescan_interval=None,
    recovery=RecoveryConfig(
        enabled=False, hold_time=300.0, unknown_is_proof=True, flap_count=2, flap_window=7200.0, flap_hold_time=0.0
    ),
)


def read(text: str) -> tuple[HealthConfig, Findings]:
    findings = Findings()
    return read_health(Section(parse(text).root["health"], "health", findings)), findings


def test_all_that_can_be_said_is_read() -> None:
    assert read(FILE) == (SAID, Findings())
    loaded = load_config({"config-file": "f"}, {}, lambda _: FILE)
    assert loaded.config.health == SAID
    assert loaded.warnings == ()


@pytest.mark.parametrize("text", ["health: {}", "health: {xids: {}, events: {}, recovery: {}}", "health: {xids: null}"])
def test_what_is_not_said_is_as_by_default(text: str) -> None:
    assert read(text) == (HealthConfig(), Findings())


def test_the_defaults_are_those_of_v0_20_0_with_recovery() -> None:
    health = load_config({}, {}).config.health
    assert health.xid_policy is XidPolicy.COMPATIBLE
    assert health.recovery.enabled
    assert health.rescan_interval == 60.0
    assert load_config({"config-file": "f"}, {}, lambda _: "health: null").config.health == health


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("health: [1]", "health: [1] is not a mapping"),
        ("health: {xidPolicy: strict}", "health.xidPolicy: unknown policy 'strict'; known are compatible, catalogue"),
        ("health: {xidPolicy: [compatible]}", "health.xidPolicy: unknown policy ['compatible']"),
        ("health: {xids: [48]}", "health.xids: [48] is not a mapping"),
        ("health: {xids: {x: fatal}}", "health.xids.x: 'x' is not the number of an XID"),
        ("health: {xids: {0: fatal}}", "health.xids.0: '0' is not the number of an XID"),
        ("health: {xids: {'048': fatal}}", "health.xids.048: '048' is not the number of an XID"),
        ("health: {xids: {48: deadly}}", "health.xids.48: 'deadly' is not ignore, fatal, or a number of faults"),
        ("health: {xids: {48: 3}}", "health.xids.48: '3' is not ignore, fatal, or a number of faults"),
        ("health: {xids: {48: 3 in 1s}}", "health.xids.48: '3 in 1s': faults within 5s are one"),
        ("health: {unknownXids: no}", "health.unknownXids: 'False' is not ignore"),
        ("health: {events: {rowRemapPending: 2 in 1h}}", "health.events.rowRemapPending: it is a state"),
        ("health: {events: {eccDoubleBit: x}}", "health.events.eccDoubleBit: 'x' is not ignore"),
        ("health: {checkInterval: 30}", "health.checkInterval: 30 is not a duration such as 60s or 1h30m"),
        ("health: {checkInterval: 30 s}", "health.checkInterval: '30 s' is not a duration"),
        ("health: {checkInterval: 10ms}", "health.checkInterval: '10ms' is less than 1s"),
        ("health: {checkInterval: infinite}", "health.checkInterval: it must end"),
        ("health: {rescanInterval: 0s}", "health.rescanInterval: '0s' is less than 1s"),
        ("health: {recovery: yes}", "health.recovery: True is not a mapping"),
        ("health: {recovery: {enabled: 1}}", "health.recovery.enabled: 1 is not true or false"),
        ("health: {recovery: {holdTime: -1s}}", "health.recovery.holdTime: '-1s' is less than 0s"),
        ("health: {recovery: {holdTime: infinite}}", "health.recovery.holdTime: it must end"),
        ("health: {recovery: {flapCount: 0}}", "health.recovery.flapCount: 0 is not a whole number from 1 to 1000"),
        ("health: {recovery: {flapCount: true}}", "health.recovery.flapCount: True is not a whole number"),
    ],
)
def test_a_fault_is_refused_where_it_stands(text: str, fault: str) -> None:
    _, findings = read(text)
    assert len(findings.refused) == 1
    assert str(findings.refused[0]).startswith(fault)
    with pytest.raises(ConfigError, match="file f is refused"):
        load_config({"config-file": "f"}, {}, lambda _: text)


def test_the_example_of_the_page_is_taken_without_a_word() -> None:
    loaded = load_config({"config-file": "f"}, {}, lambda _: EXAMPLE)
    assert loaded.warnings == ()
    assert loaded.config.health == HealthConfig(
        xid_policy=XidPolicy.CATALOGUE,
        xids={94: FaultRule(2, 86400.0), 109: FATAL},
        events={"rowRemapPending": FATAL},
        recovery=RecoveryConfig(hold_time=600.0),
    )


def test_unknown_keys_are_told_with_the_nearest() -> None:
    _, findings = read("health: {xidPolici: x, events: {eccDoubelBit: fatal}, recovery: {holdTim: 1s}}")
    assert [str(problem) for problem in findings.unknown] == [
        "health.xidPolici: unknown key, without effect; did you mean 'xidPolicy'?",
        "health.events.eccDoubelBit: unknown key, without effect; did you mean 'eccDoubleBit'?",
        "health.recovery.holdTim: unknown key, without effect; did you mean 'holdTime'?",
    ]


def shown(text: str, environ: dict[str, str]) -> dict[str, Any]:
    loaded = load_config({"config-file": "f"}, environ, lambda _: text)
    return {each.name: (each.value, each.origin.value) for each in effective(loaded)}


def test_what_differs_from_the_defaults_is_shown() -> None:
    told, origin = shown(FILE, {})["health"]
    assert origin == "file"
    assert told == {
        "xidPolicy": "catalogue",
        "xids": {"94": "3 in 24h", "31": "fatal"},
        "unknownXids": "ignore",
        "events": {
            "eccSingleBit": "100 in 1h",
            "eccDoubleBit": "fatal",
            "rowRemapPending": "fatal",
            "unwatched": "ignore",
        },
        "checkInterval": "10s",
        "rescanInterval": "infinite",
        "recovery": {
            "enabled": False,
            "holdTime": "5m",
            "unknownIsProof": True,
            "flapCount": 2,
            "flapWindow": "2h",
            "flapHoldTime": "0s",
        },
    }
    assert read("health: " + str(told).replace("'", '"'))[0] == SAID
    assert "health" not in shown("version: v1", {})


def test_the_variables_are_shown_and_what_says_nothing_in_them_is_told() -> None:
    environ = {"DP_DISABLE_HEALTHCHECKS": "94, 69,x", "DP_ENABLE_HEALTHCHECKS": "xids"}
    told = shown("version: v1", environ)
    assert told["DP_DISABLE_HEALTHCHECKS"] == (["69", "94"], "environment")
    assert told["DP_ENABLE_HEALTHCHECKS"] == (["all"], "environment")
    loaded = load_config({}, environ)
    assert "DP_DISABLE_HEALTHCHECKS: 'x' is not the number of an XID, and left out" in loaded.warnings
    assert 69 in loaded.config.xid_switches.disabled


def test_keys_in_another_case_hold_with_a_warning() -> None:
    text = "health: {XidPolicy: catalogue, events: {ECCDoubleBit: ignore}, recovery: {HoldTime: 5m}}"
    health, findings = read(text)
    assert health.xid_policy is XidPolicy.CATALOGUE
    assert health.events == {"eccDoubleBit": IGNORE}
    assert health.recovery.hold_time == 300.0
    assert {problem.path: problem.message for problem in findings.warnings} == {
        "health.XidPolicy": "it is read as 'xidPolicy'; write it so",
        "health.events.ECCDoubleBit": "it is read as 'eccDoubleBit'; write it so",
        "health.recovery.HoldTime": "it is read as 'holdTime'; write it so",
    }
    assert (findings.refused, findings.unknown) == ([], [])


@pytest.mark.parametrize("value", ["5", "'5'", "5000000000"])
def test_a_duration_without_a_unit_is_refused(value: str) -> None:
    _, findings = read(f"health: {{checkInterval: {value}}}")
    assert "is not a duration such as 60s" in findings.refused[0].message
