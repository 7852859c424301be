"""What the daemon logs when a configuration comes into force: one line that tells which, then what else was given.

The first line has the version and the settings that decide which devices there are, with what gave each that is not
the default: it is what a bug report needs. The resources follow once the node has been read.
"""

from collections.abc import Iterable

from gpustow.config import LoadedConfig
from gpustow.config.config import Origin
from gpustow.config.effective import EffectiveValue, effective, summary, written
from gpustow.resources.device import Resource
from gpustow.version import __version__

_FIRST = (
    "flags.migStrategy",
    "flags.plugin.sharedDevicesAllocationPolicy",
    "flags.plugin.deviceListStrategy",
    "flags.plugin.deviceIDStrategy",
)


def config_lines(loaded: LoadedConfig) -> tuple[str, ...]:
    """The line of the configuration in force, then one for each other value that somebody gave."""
    values = {value.name: value for value in effective(loaded)}
    first = [values.pop(name) for name in _FIRST]
    file, *_ = summary(loaded)
    line = "; ".join([f"gpustow {__version__}", file, *map(_short, first)])
    return (line, *(str(value) for value in values.values() if value.origin is not Origin.DEFAULT))


def resource_lines(resources: Iterable[Resource]) -> tuple[str, ...]:
    """One line a resource, with its number of devices."""
    return tuple(f"{resource.name}: {_devices(resource)}" for resource in resources)


def _devices(resource: Resource) -> str:
    devices, gpus = len(resource.devices), len({device.gpu_index for device in resource.devices})
    sick = sum(not device.healthy for device in resource.devices)
    text = f"{devices} device{'s'[: devices != 1]} on {gpus} GPU{'s'[: gpus != 1]}"
    return f"{text}, {sick} of them unhealthy" if sick else text


def _short(value: EffectiveValue) -> str:
    text = f"{value.name.rpartition('.')[2]} {written(value.value)}"
    return text if value.origin is Origin.DEFAULT else f"{text} (from the {value.origin.value})"
