"""Sharing: each device that is shared becomes replicas of it, as v0.20.0 makes them.

A replica is called by the UUID of its device, `::` and its number from 0. It keeps everything else of the device but
its share of the card, which is divided.

An entry of the sharing section chooses devices of one resource: all of them, a number, or those that it lists by index
or UUID. Their replicas go under the entry's other name if it has one, else they stay with the resource; devices that no
entry chooses stay as they are. So several entries can give the GPUs of one resource different numbers of replicas. No
device can be shared in two ways: that is refused, but for one case of v0.20.0, where of entries that share the same
resource whole the last one holds.

Lists are dealt out first, then numbers, which take what is left from the lowest index, then all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from gpustow.config import ReplicatedResource
from gpustow.errors import ConfigError, Problem
from gpustow.resources.device import REPLICA_SEPARATOR, Device

Devices = Mapping[str, tuple[Device, ...]]
"""Devices by the name of their resource."""


@dataclass(frozen=True, slots=True)
class SharedDevices:
    """Devices after sharing, in the order of the resources before, and what the operator should know."""

    devices: Devices
    warnings: tuple[str, ...] = ()


def share(devices: Devices, entries: Sequence[ReplicatedResource], path: str) -> SharedDevices:
    """The devices after the entries of the section at `path` have been applied.

    Raises ConfigError if an entry chooses a device that is not there, or that another entry has chosen.
    """
    acting, warnings = _acting(devices, entries, path)
    owners = _owners(devices, acting, path)
    shared: dict[str, list[Device]] = {}
    for name, own in devices.items():
        for device in own:
            entry = owners.get(device.id)
            if entry is None:
                shared.setdefault(name, []).append(device)
            else:
                shared.setdefault(entry.rename or name, []).extend(_replicas(device, entry.replicas))
    in_order = {name: tuple(sorted(own, key=_position)) for name, own in shared.items()}
    return SharedDevices(in_order, tuple(warnings))


def _position(device: Device) -> tuple[int, int, str, int]:
    """Sorts devices by GPU, place on it, and replica; one name may gather the devices of several resources."""
    return device.gpu_index, device.edge, device.uuid, -1 if device.replica is None else device.replica


def _replicas(device: Device, count: int) -> list[Device]:
    share = device.share / count
    prefix = f"{device.uuid}{REPLICA_SEPARATOR}"
    return [replace(device, id=f"{prefix}{number}", share=share, replica=number) for number in range(count)]


def _acting(
    devices: Devices, entries: Sequence[ReplicatedResource], path: str
) -> tuple[dict[int, ReplicatedResource], list[str]]:
    """The entries that have an effect on this node, by their position, and why others have none."""
    acting: dict[int, ReplicatedResource] = {}
    warnings = []
    for position, entry in enumerate(entries):
        where = f"{path}.resources[{position}]"
        if entry.name not in devices:
            warnings.append(f"{where}: {_tell_unknown(entry.name, list(devices))}")
        elif any(_same_whole(entry, other) for other in entries[position + 1 :]):
            warnings.append(f"{where}: {entry.name} is listed again, and the last entry holds")
        else:
            acting[position] = entry
    return acting, warnings


def _tell_unknown(name: str, known: Sequence[str]) -> str:
    by_short = {known_name.partition("/")[2]: known_name for known_name in known}
    near = get_close_matches(name.partition("/")[2], by_short, n=1)
    hint = f"did you mean {by_short[near[0]]}?" if near else f"it has {', '.join(known) or 'none'}"
    return f"sharing names {name}, a resource that this node does not have; {hint}"


def _same_whole(entry: ReplicatedResource, other: ReplicatedResource) -> bool:
    """Whether both entries share all devices of one resource under one name."""
    return entry.devices == other.devices == "all" and (entry.name, entry.rename) == (other.name, other.rename)


def _owners(devices: Devices, acting: Mapping[int, ReplicatedResource], path: str) -> dict[str, ReplicatedResource]:
    """The entry that has each device, by the device's id."""
    problems = []
    owner: dict[str, int] = {}
    for position, entry in sorted(acting.items(), key=lambda item: (_turn(item[1]), item[0])):
        try:
            for device in _chosen(devices[entry.name], entry, owner):
                _claim(owner, device, position, path)
        except ValueError as error:
            problems.append(Problem(f"{path}.resources[{position}].devices", str(error)))
    if problems:
        raise ConfigError("for this node", problems, advice="Let each device be chosen by one entry, by index or UUID.")
    return {device_id: acting[position] for device_id, position in owner.items()}


def _claim(owner: dict[str, int], device: Device, position: int, path: str) -> None:
    """Gives the device to the entry at `position`. Raises ValueError if an entry has it."""
    if device.id in owner:
        raise ValueError(f"{_called(device)} is shared by {path}.resources[{owner[device.id]}] already")
    owner[device.id] = position


def _turn(entry: ReplicatedResource) -> int:
    if isinstance(entry.devices, tuple):
        return 0
    return 1 if isinstance(entry.devices, int) else 2


def _chosen(pool: Sequence[Device], entry: ReplicatedResource, owner: Mapping[str, int]) -> Sequence[Device]:
    """The devices of `pool` that `entry` chooses. Raises ValueError if one of them is not there."""
    if entry.devices == "all":
        return pool
    if isinstance(entry.devices, int):
        free = [device for device in pool if device.id not in owner]
        if entry.devices > len(free):
            raise ValueError(f"it wants {entry.devices} devices of {entry.name}, and there are {len(free)}")
        return free[: entry.devices]
    return [_referred(pool, reference, entry.name) for reference in entry.devices]


def _referred(pool: Sequence[Device], reference: str, resource: str) -> Device:
    for device in pool:
        if reference in {device.uuid, device.index}:
            return device
    there = ", ".join(device.index for device in pool)
    raise ValueError(f"{resource} has no device {reference} on this node (it has {there})")


def _called(device: Device) -> str:
    return f"{'MIG device' if device.mig else 'GPU'} {device.index} ({device.uuid})"
