"""The section `health`, which is ours: which faults make a device unfit, and when it is fit again.

    health:
      xidPolicy: catalogue
      xids: {94: 3 in 24h, 31: ignore}
      events: {eccDoubleBit: fatal}
      recovery: {holdTime: 5m}

What it does not name stays as the policy has it. The variables of v0.20.0 (see `xidswitches`) win over it.

Limits: a fault that is a state (a pending row remap) is there or not, and cannot be counted in a time.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from gpustow.config.duration import INFINITE, INFINITE_WORD, parse_duration
from gpustow.config.faultrule import FATAL, IGNORE, NANOSECONDS, FaultRule, parse_rule
from gpustow.config.filekeys import HEALTH_EVENT_KEYS, HEALTH_KEYS, HEALTH_STATE_KEYS, RECOVERY_KEYS
from gpustow.config.section import Section

XID_PATTERN = r"^[1-9][0-9]{0,4}$"

RESCAN_SECONDS = 60.0

_XID = re.compile(XID_PATTERN, re.ASCII)
_MOST_FLAPS = 1000


class XidPolicy(Enum):
    """Where the rule of an XID comes from that the file does not name: v0.20.0, or the table of XIDs."""

    COMPATIBLE = "compatible"
    CATALOGUE = "catalogue"


@dataclass(frozen=True, slots=True)
class RecoveryConfig:
    """When an unfit device is fit again. Times are in seconds.

    It has proved to be well and been quiet for `hold_time`; for `flap_hold_time` if it has become unfit `flap_count`
    times within `flap_window`. `unknown_is_proof` is whether it may be silent about what its model cannot tell.
    """

    enabled: bool = True
    hold_time: float = 60.0
    unknown_is_proof: bool = False
    flap_count: int = 3
    flap_window: float = 3600.0
    flap_hold_time: float = 3600.0


@dataclass(frozen=True, slots=True)
class HealthConfig:
    """What the section says, defaults filled in.

    `xids` and `events` are the rules that it names; `unknown_xids` is the rule of those that are in no table.
    `check_interval` is how often, in seconds, unfit GPUs are asked whether they are well, and all GPUs for what the
    policy wants to know of them; `rescan_interval` how often the node is read again, None for never.
    """

    xid_policy: XidPolicy = XidPolicy.COMPATIBLE
    xids: Mapping[int, FaultRule] = field(default_factory=dict)
    unknown_xids: FaultRule = FATAL
    events: Mapping[str, FaultRule] = field(default_factory=dict)
    check_interval: float = 30.0
    rescan_interval: float | None = RESCAN_SECONDS
    recovery: RecoveryConfig = RecoveryConfig()


def read_health(section: Section) -> HealthConfig:
    """The section `health`; its faults go into the section's findings."""
    if not section.is_mapping():
        return HealthConfig()
    section = section.folded(HEALTH_KEYS)
    default = HealthConfig()
    return HealthConfig(
        xid_policy=_policy(section),
        xids=_xids(section),
        unknown_xids=_rule(section.child("unknownXids")) or default.unknown_xids,
        events=_events(section),
        check_interval=_seconds(section, "checkInterval", default.check_interval, least=1),
        rescan_interval=_rescan_interval(section, RESCAN_SECONDS),
        recovery=_recovery(section.child("recovery")),
    )


def _policy(section: Section) -> XidPolicy:
    value = section.value("xidPolicy")
    words = [policy.value for policy in XidPolicy]
    if value is None:
        return XidPolicy.COMPATIBLE
    if value not in words:
        section.child("xidPolicy").refuse(f"unknown policy {value!r}; known are {', '.join(words)}")
        return XidPolicy.COMPATIBLE
    return XidPolicy(value)


def _below(section: Section, key: str) -> Section | None:
    """The section under `key`, if there is one; refuses what is something else."""
    child = section.child(key)
    return child if child.node is not None and child.is_mapping() else None


def _xids(section: Section) -> dict[int, FaultRule]:
    below = _below(section, "xids")
    rules: dict[int, FaultRule] = {}
    for key in () if below is None else below.keys():
        child = section.child("xids").child(key)
        if not _XID.fullmatch(key):
            child.refuse(f"{key!r} is not the number of an XID")
        elif (rule := _rule(child)) is not None:
            rules[int(key)] = rule
    return rules


def _events(section: Section) -> dict[str, FaultRule]:
    below = _below(section, "events")
    if below is None:
        return {}
    below = below.folded(HEALTH_EVENT_KEYS + HEALTH_STATE_KEYS)
    rules: dict[str, FaultRule] = {}
    for key in HEALTH_EVENT_KEYS + HEALTH_STATE_KEYS:
        rule = _rule(below.child(key))
        if rule is None:
            continue
        if key in HEALTH_STATE_KEYS and rule.counts:
            below.child(key).refuse(f"it is a state, which cannot be counted; write {IGNORE} or {FATAL}")
        else:
            rules[key] = rule
    return rules


def _rule(section: Section) -> FaultRule | None:
    if section.node is None:
        return None
    try:
        return parse_rule(section.node if isinstance(section.node, str) else repr(section.node))
    except ValueError as error:
        section.refuse(str(error))
        return None


def _recovery(section: Section) -> RecoveryConfig:
    default = RecoveryConfig()
    if section.node is None or not section.is_mapping():
        return default
    section = section.folded(RECOVERY_KEYS)
    enabled, unknown = section.boolean("enabled"), section.boolean("unknownIsProof")
    return RecoveryConfig(
        enabled=default.enabled if enabled is None else enabled,
        hold_time=_seconds(section, "holdTime", default.hold_time),
        unknown_is_proof=default.unknown_is_proof if unknown is None else unknown,
        flap_count=_flap_count(section, default.flap_count),
        flap_window=_seconds(section, "flapWindow", default.flap_window),
        flap_hold_time=_seconds(section, "flapHoldTime", default.flap_hold_time),
    )


def _flap_count(section: Section, default: int) -> int:
    value = section.value("flapCount")
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MOST_FLAPS:
        section.child("flapCount").refuse(f"{value!r} is not a whole number from 1 to {_MOST_FLAPS}")
        return default
    return value


def _seconds(section: Section, key: str, default: float, *, least: float = 0) -> float:
    """The duration under `key`, in seconds."""
    value = section.value(key)
    if value is None:
        return default
    if not isinstance(value, str):
        section.child(key).refuse(f"{value!r} is not a duration such as 60s or 1h30m")
        return default
    try:
        nanoseconds = parse_duration(value)
    except ValueError as error:
        section.child(key).refuse(str(error))
        return default
    if nanoseconds == INFINITE:
        section.child(key).refuse("it must end; write a duration such as 60s or 1h30m")
    elif nanoseconds < least * NANOSECONDS:
        section.child(key).refuse(f"{value!r} is less than {least:g}s")
    return nanoseconds / NANOSECONDS


def _rescan_interval(section: Section, default: float) -> float | None:
    if section.value("rescanInterval") == INFINITE_WORD:
        return None
    return _seconds(section, "rescanInterval", default, least=1)
