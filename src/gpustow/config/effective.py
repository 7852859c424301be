"""The configuration in force, to show: each setting by its name, its value, and where that comes from.

The daemon logs it at the start, `gpustow config show` prints it. An operator who wonders why a file has no effect finds
out here whether it was read at all (k8s-device-plugin#615, #990), and by the hash whether it is the one they edited.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from gpustow.config.config import LoadedConfig, Origin
from gpustow.config.duration import INFINITE_WORD
from gpustow.config.faultrule import written_seconds
from gpustow.config.given import VISIBLE_DEVICES
from gpustow.config.health import HealthConfig, RecoveryConfig
from gpustow.config.patterns import ResourcePattern
from gpustow.config.placement import ResourcePlacement
from gpustow.config.settings import SETTINGS
from gpustow.config.sharing import ReplicatedResources
from gpustow.config.xidswitches import DISABLE, ENABLE


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """One thing that holds. `value` is plain data, `name` its key in the file, or its flag where it has none."""

    name: str
    value: Any
    origin: Origin

    def __str__(self) -> str:
        return f"{self.name} = {written(self.value)} ({self.origin.value})"


def effective(loaded: LoadedConfig) -> tuple[EffectiveValue, ...]:
    """All settings, in the order of the table; then what stands in the file alone, if it does."""
    config = loaded.config
    values = [
        EffectiveValue(
            setting.key or f"--{setting.flag}",
            _plain(getattr(config, setting.attribute)),
            loaded.origins.get(setting.flag, Origin.DEFAULT),
        )
        for setting in SETTINGS
    ]
    from_file = {
        "resources.gpus": _patterns(config.gpu_patterns),
        "resources.mig": _patterns(config.mig_patterns),
        "sharing.timeSlicing": _replicated(config.time_slicing),
        "sharing.mps": _replicated(config.mps),
        "placement.resources": [_placement(entry) for entry in config.placement],
        "health": _health(config.health),
    }
    values += [EffectiveValue(name, value, Origin.FILE) for name, value in from_file.items() if value]
    from_environment = {
        VISIBLE_DEVICES: list(config.visible_devices),
        DISABLE: config.xid_switches.disabled.words(),
        ENABLE: config.xid_switches.enabled.words(),
    }
    values += [EffectiveValue(name, value, Origin.ENVIRONMENT) for name, value in from_environment.items() if value]
    return tuple(values)


def summary(loaded: LoadedConfig) -> tuple[str, ...]:
    """Lines for the log: the file, and every value that somebody gave."""
    file = loaded.file
    source = "none (flags and environment only)" if file is None else f"{file.path} (sha256 {file.sha256[:12]})"
    given = [str(value) for value in effective(loaded) if value.origin is not Origin.DEFAULT]
    return (f"config file: {source}", *given)


def written(value: Any) -> str:
    """Plain data on one line, as it could stand in the file."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {written(below)}' for key, below in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if value != "" else '""'


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _patterns(patterns: Sequence[ResourcePattern]) -> list[dict[str, str]]:
    return [{"pattern": each.pattern, "name": each.name} for each in patterns]


def _replicated(shared: ReplicatedResources | None) -> dict[str, Any] | None:
    if shared is None:
        return None
    return {
        "renameByDefault": shared.rename_by_default,
        "failRequestsGreaterThanOne": shared.fail_requests_greater_than_one is True,
        "resources": [
            {
                "name": entry.name,
                **({"rename": entry.rename} if entry.rename else {}),
                "devices": _plain(entry.devices),
                "replicas": entry.replicas,
            }
            for entry in shared.resources
        ],
    }


def _placement(entry: ResourcePlacement) -> dict[str, Any]:
    told = {
        "policy": entry.policy,
        "cap": entry.cap,
        "distinct": "required" if entry.distinct else None,
        "together": "required" if entry.together else None,
    }
    return {"name": entry.name, **{key: value for key, value in told.items() if value is not None}}


def _health(health: HealthConfig) -> dict[str, Any]:
    """What differs from the defaults, as it could stand in the file."""
    default = HealthConfig()
    recovery = _differing(_recovery(health.recovery), _recovery(default.recovery))
    return _differing(_health_alone(health), _health_alone(default)) | ({"recovery": recovery} if recovery else {})


def _health_alone(health: HealthConfig) -> dict[str, Any]:
    rescan = health.rescan_interval
    return {
        "xidPolicy": health.xid_policy.value,
        "xids": {str(xid): str(rule) for xid, rule in health.xids.items()},
        "unknownXids": str(health.unknown_xids),
        "events": {key: str(rule) for key, rule in health.events.items()},
        "checkInterval": written_seconds(health.check_interval),
        "rescanInterval": INFINITE_WORD if rescan is None else written_seconds(rescan),
    }


def _recovery(recovery: RecoveryConfig) -> dict[str, Any]:
    return {
        "enabled": recovery.enabled,
        "holdTime": written_seconds(recovery.hold_time),
        "unknownIsProof": recovery.unknown_is_proof,
        "flapCount": recovery.flap_count,
        "flapWindow": written_seconds(recovery.flap_window),
        "flapHoldTime": written_seconds(recovery.flap_hold_time),
    }


def _differing(told: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if value != default[key]}
