"""The list of devices for NVIDIA's container runtime: an environment variable, or mounts whose names are the list.

A user can set the variable in an image or a pod, and then see GPUs that kubelet did not give. Mounts cannot be set so;
a runtime reads them if it is told to (`accept-nvidia-visible-devices-as-volume-mounts`), and the variable then says
nothing but where they are.

With both strategies v0.20.0 lets the variable say that, so that a runtime which reads the variable alone finds no
device of that name (k8s-device-plugin#200). Here it holds the devices: a runtime that reads mounts prefers them, and
any other finds what it needs.
"""

from collections.abc import Mapping, Sequence

from gpustow.config import DeviceListStrategy
from gpustow.injection.edits import Mount

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
"""What the NVIDIA container runtime reads: the devices of the container, joined by commas."""

IMEX_CHANNELS = "NVIDIA_IMEX_CHANNELS"
"""The same for IMEX channels."""

LIST_DIRECTORY = "/var/run/nvidia-container-devices"
"""Where a mount for each device tells its name."""

_NOTHING = "/dev/null"
_IMEX = "imex"


def list_envs(
    strategies: Sequence[DeviceListStrategy], names: Sequence[str], channels: Sequence[int]
) -> Mapping[str, str]:
    """The variables that name these devices and IMEX channels to the runtime."""
    if DeviceListStrategy.ENVVAR in strategies:
        imex = {IMEX_CHANNELS: ",".join(map(str, channels))} if channels else {}
        return {VISIBLE_DEVICES: ",".join(names), **imex}
    if DeviceListStrategy.VOLUME_MOUNTS in strategies:
        return {VISIBLE_DEVICES: LIST_DIRECTORY}
    return {}


def list_mounts(
    strategies: Sequence[DeviceListStrategy], names: Sequence[str], channels: Sequence[int]
) -> tuple[Mount, ...]:
    """The mounts that name these devices and IMEX channels to the runtime."""
    if DeviceListStrategy.VOLUME_MOUNTS not in strategies:
        return ()
    listed = [*names, *(f"{_IMEX}/{channel}" for channel in channels)]
    return tuple(Mount(f"{LIST_DIRECTORY}/{name}", _NOTHING) for name in listed)
