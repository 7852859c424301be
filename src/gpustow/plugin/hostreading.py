"""How the supervisor finds out what a node has beside its GPUs, and that CDI can be used on it.

CDI specifications are made from what NVML and the driver's files say, so the CDI strategies need NVML, as in v0.20.0.
Only a Tegra board can be without it: elsewhere the node itself could not have been read.

Limits: unlike v0.20.0, which refuses CDI where the driver is not there yet, an absent driver is no matter of the
configuration here; whether to wait for it is what failOnInitError says.
"""

from collections.abc import Callable
from functools import partial

from gpustow.config import Config
from gpustow.config.strategies import CDI_STRATEGIES
from gpustow.errors import ConfigError, Problem
from gpustow.hardware.node import Platform
from gpustow.hardware.nvml.library import library_path
from gpustow.hardware.platform import load_error
from gpustow.injection.hostdevices import HostDevices, read_host_devices, simulated_host_devices

HostReader = Callable[[Config, Platform], HostDevices]
"""Reads what the node has beside its GPUs; may block. Raises ConfigError and HardwareError."""


def machine_host(config: Config, platform: Platform, *, load_error: Callable[[str], str] = load_error) -> HostDevices:
    """What this machine has. `load_error` says why a shared library cannot be loaded."""
    _check_cdi(config, platform, partial(load_error, library_path(config.driver_root_ctr_path)))
    return read_host_devices(config, platform)


def simulated_host(config: Config, platform: Platform) -> HostDevices:
    """What a simulated node has: all that is asked for. A simulated Tegra board has no NVML."""
    _check_cdi(config, platform, lambda: "a simulated board has none")
    return simulated_host_devices(config, platform)


def _check_cdi(config: Config, platform: Platform, no_nvml: Callable[[], str]) -> None:
    """Raises ConfigError if CDI is asked for and there is no NVML; `no_nvml` says why there is none, if so."""
    asked = [strategy.value for strategy in config.device_list_strategies if strategy in CDI_STRATEGIES]
    if not asked or platform is not Platform.TEGRA or not (reason := no_nvml()):
        return
    raise ConfigError(
        "for this node",
        [
            Problem(
                "flags.plugin.deviceListStrategy",
                f"CDI --device-list-strategy options are only supported on NVML-based systems: {', '.join(asked)} "
                f"cannot be used ({reason})",
            )
        ],
        advice="Use envvar or volume-mounts on this node.",
    )
