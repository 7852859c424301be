"""What the node has of device nodes beside those of its GPUs: control nodes, IMEX channels, and those of other drivers.

They are looked for once, with the node, so that whatever Allocate names was there. Two places count, because a plugin
is deployed in two ways: below the discovery root of device nodes (`discovery`), and our own `/dev`. What is found in
either is called by its path in a container, such as `/dev/nvidiactl`; where it lies on the host is another question
(the dev root of the configuration).

As in v0.20.0, a missing IMEX channel is an error only where the configuration requires it, and everything else that is
missing is left out.

Limits: that a node is there does not say that its driver works.
"""

import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpustow.config import Config
from gpustow.config.strategies import CDI_STRATEGIES
from gpustow.errors import HardwareError
from gpustow.hardware.node import Platform
from gpustow.injection.discovery import DiscoveryRoots

CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
"""The nodes that every user of a GPU needs, in the order of v0.20.0. WSL and Tegra have none."""

_GDRCOPY = ("/dev/gdrdrv",)
_GDS = ("/dev/nvidia-fs*",)
_MOFED = ("/dev/infiniband/uverbs*", "/dev/infiniband/rdma_cm")


@dataclass(frozen=True, slots=True)
class HostDevices:
    """Device nodes by their paths in a container, in the order in which they are passed on.

    Each field holds what is there, of what the configuration asks for; `imex_channels` are numbers. `notes` are what is
    asked for and is not there, one sentence each, for the log.
    """

    control: tuple[str, ...] = ()
    imex_channels: tuple[int, ...] = ()
    gdrcopy: tuple[str, ...] = ()
    gds: tuple[str, ...] = ()
    mofed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


NO_HOST_DEVICES = HostDevices()
"""Those of a node that has none."""


def imex_channel_path(channel: int) -> str:
    """The device node of an IMEX channel, in a container."""
    return f"/dev/nvidia-caps-imex-channels/channel{channel}"


def read_host_devices(config: Config, platform: Platform, root: Path = Path("/")) -> HostDevices:
    """What this machine has. `root` is where our own file system begins.

    Raises HardwareError if an IMEX channel is missing that the configuration requires.
    """
    search = _Search(config, root)
    control = search.there(_control(platform))
    channels = tuple(channel for channel in config.imex_channel_ids if search.there([imex_channel_path(channel)]))
    found = {flag: search.there(patterns) for flag, patterns in _extras(config).items()}
    missing = [channel for channel in config.imex_channel_ids if channel not in channels]
    if missing and config.imex_required:
        raise HardwareError(
            f"the IMEX channel {missing[0]} is required and not there: {search.looked(imex_channel_path(missing[0]))}",
            advice="Create it (nvidia-modprobe, or the driver's parameter NVreg_CreateImexChannel0), mount the host's "
            "/dev, or set --imex-required=false.",
        )
    notes = [f"IMEX channel {each} is not there: {search.looked(imex_channel_path(each))}" for each in missing]
    if _named(config):
        notes += [
            f"--{flag} is set, but containers get none of its devices: {search.looked(*_extras(config)[flag])}"
            for flag, paths in found.items()
            if not paths
        ]
        if platform is Platform.NVML and not control:
            notes.append(f"containers get none of the driver's control nodes: {search.looked(*CONTROL_NODES)}")
    return HostDevices(
        control,
        channels,
        found.get("gdrcopy-enabled", ()),
        found.get("gds-enabled", ()),
        found.get("mofed-enabled", ()),
        tuple(notes),
    )


def simulated_host_devices(config: Config, platform: Platform) -> HostDevices:
    """What a simulated node has: all that the configuration asks for, the first of each kind."""
    there = {
        flag: tuple(pattern.replace("*", "0") for pattern in patterns) for flag, patterns in _extras(config).items()
    }
    return HostDevices(
        _control(platform),
        config.imex_channel_ids,
        there.get("gdrcopy-enabled", ()),
        there.get("gds-enabled", ()),
        there.get("mofed-enabled", ()),
    )


def _control(platform: Platform) -> tuple[str, ...]:
    return CONTROL_NODES if platform is Platform.NVML else ()


def _extras(config: Config) -> dict[str, tuple[str, ...]]:
    """The paths of other drivers' nodes, `*` for any text, by the flag that asks for them."""
    asked = {
        "gdrcopy-enabled": (config.gdrcopy_enabled, _GDRCOPY),
        "gds-enabled": (config.gds_enabled, _GDS),
        "mofed-enabled": (config.mofed_enabled, _MOFED),
    }
    return {flag: patterns for flag, (enabled, patterns) in asked.items() if enabled}


def _named(config: Config) -> bool:
    """Whether we name device nodes ourselves; where we do not, the container runtime finds them."""
    return config.pass_device_specs or any(each in CDI_STRATEGIES for each in config.device_list_strategies)


class _Search:
    """Looks for device nodes in the places where they may be."""

    def __init__(self, config: Config, root: Path) -> None:
        self._places = tuple(dict.fromkeys([DiscoveryRoots.of(config, root).devices, root]))

    def there(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """The paths of the nodes that are there, in the order of the patterns and of their numbers."""
        return tuple(path for pattern in patterns for path in sorted(set(self._matches(pattern)), key=_by_number))

    def looked(self, *patterns: str) -> str:
        """Where nothing was found."""
        tried = [f"{place}/{pattern.lstrip('/')}".replace("//", "/") for place in self._places for pattern in patterns]
        return f"there is no {' and no '.join(tried)} in our container"

    def _matches(self, pattern: str) -> Iterator[str]:
        for place in self._places:
            for path in place.glob(pattern.lstrip("/")):
                if _is_character_device(path):
                    yield f"/{path.relative_to(place)}"


def _by_number(path: str) -> tuple[int, str]:
    return len(path), path


def _is_character_device(path: Path) -> bool:
    try:
        return stat.S_ISCHR(path.stat().st_mode)
    except OSError:
        return False
