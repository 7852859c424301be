"""Cutting a simulated card into MIG devices, the way the driver does: ids, places on the card, device nodes.

GPU instances are placed where their profile may start and nothing else lies; of all ways that fit, the one that starts
earliest in the order of the layout. Limits: the driver chooses its own places, so a layout that has to equal a real
card gives `start` and the ids.

Ids and minor numbers as NVIDIA's driver gives them: instances of the whole card are numbered from 0, halves from 1,
quarters from 3, eighths from 7; /proc/driver/nvidia-caps/mig-minors begins at 3 and has, for each card, 15 GPU
instances of 9 numbers each: its own and those of 8 compute instances.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from uuid import UUID, uuid5

from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.migengines import known_engines
from gpustow.hardware.systemfiles import capability_path

_NAME = re.compile(r"(?:(?P<compute>[1-9])c\.)?(?P<instance>[1-9]g\.\d+gb(?:[+-][a-z]+(?:\.[a-z]+)*)?)")

_FIRST_ID = {Fraction(1): 0, Fraction(1, 2): 1, Fraction(1, 4): 3, Fraction(1, 8): 7}

_FIRST_MINOR = 3
_GPU_INSTANCES = 15
_COMPUTE_INSTANCES = 8
_MINORS_PER_INSTANCE = 1 + _COMPUTE_INSTANCES

_MIB = 1 << 20

UUID_SPACE = UUID("6f1d5e0a-5f0e-5c6b-9a57-7b5d2c9f4e10")
"""The name space of the UUIDs of simulated GPUs and MIG devices: the same model gives the same UUIDs everywhere."""


class LayoutError(ValueError):
    """The layout does not fit the card. `entry` is the position of the device that is wrong."""

    def __init__(self, entry: int, message: str) -> None:
        super().__init__(message)
        self.entry = entry


@dataclass(frozen=True, slots=True)
class Card:
    """What a layout needs to know about the card: what GPU it is, and how it can be cut."""

    uuid: str
    minor: int
    profiles: tuple[MigProfile, ...]
    memory_slices: int
    paths: tuple[str, ...]
    model: str = ""

    @property
    def gpu_slices(self) -> int:
        """The compute slices of the whole card; the most there can be, where no profile is known that fills it."""
        whole = [profile.gpu_slices for profile in self.profiles if profile.memory_slices == self.memory_slices]
        return max(whole, default=_COMPUTE_INSTANCES)


@dataclass(frozen=True, slots=True)
class LayoutEntry:
    """One MIG device as a layout names it: its profile, and what is not left to us."""

    profile: str
    uuid: str | None = None
    start: int | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None
    index: int | None = None
    memory_bytes: int | None = None
    device_paths: tuple[str, ...] | None = None


@dataclass(slots=True)
class _Instance:
    """A GPU instance in the making, with the positions of its devices in the layout and their compute slices."""

    profile: MigProfile
    id: int | None
    start: int | None
    parts: list[tuple[int, int]] = field(default_factory=list)

    @property
    def used_slices(self) -> int:
        return sum(slices for _, slices in self.parts)

    def takes(self, slices: int, profile: MigProfile, entry: LayoutEntry) -> bool:
        """Whether a device with this many compute slices belongs into this instance."""
        if entry.gpu_instance is not None and entry.gpu_instance == self.id:
            return True
        fits = profile is self.profile and self.used_slices + slices <= profile.gpu_slices
        return fits and entry.gpu_instance is None and entry.start in {None, self.start}


def instance_minor(gpu_minor: int, gpu_instance: int, compute_instance: int | None = None) -> int:
    """The minor number of the capability device of a GPU instance, or of a compute instance of it."""
    own = _FIRST_MINOR + (gpu_minor * _GPU_INSTANCES + gpu_instance) * _MINORS_PER_INSTANCE
    return own if compute_instance is None else own + 1 + compute_instance


def lay_out(card: Card, entries: Sequence[LayoutEntry]) -> tuple[MigDevice, ...]:
    """The MIG devices that a layout makes of a card, in the order of their indices, which count up in the layout.

    Raises:
        LayoutError: a profile is unknown, or a device has no room.
    """
    instances = _gather(card, entries)
    _check_slices(card, instances)
    starts = _places(card, instances)
    _number(card, instances)
    devices: dict[int, MigDevice] = {}
    for instance, start in zip(instances, starts, strict=True):
        given = [entries[position].compute_instance for position, _ in instance.parts]
        free = (number for number in range(_COMPUTE_INSTANCES) if number not in given)
        for position, slices in instance.parts:
            entry = entries[position]
            compute = next(free) if entry.compute_instance is None else entry.compute_instance
            if given.count(compute) > 1:
                raise LayoutError(position, f"GPU instance {instance.id} has compute instance {compute} twice")
            index = position if entry.index is None else entry.index
            if index in devices:
                raise LayoutError(position, f"there are two MIG devices with index {index}")
            devices[index] = _device(card, instance, start, (index, slices, compute), entry)
    return tuple(devices[index] for index in sorted(devices))


def _gather(card: Card, entries: Sequence[LayoutEntry]) -> list[_Instance]:
    """Groups the devices into GPU instances: parts of an instance join the one before while it has slices left."""
    instances: list[_Instance] = []
    for position, entry in enumerate(entries):
        profile, slices = _profile(card, position, entry.profile)
        home = next((instance for instance in reversed(instances) if instance.takes(slices, profile, entry)), None)
        if home is None:
            home = _Instance(profile, entry.gpu_instance, entry.start)
            instances.append(home)
        home.parts.append((position, slices))
        if home.profile is not profile or home.used_slices > profile.gpu_slices:
            raise LayoutError(position, f"GPU instance {home.id} has no room for another {entry.profile}")
    return instances


def _profile(card: Card, position: int, name: str) -> tuple[MigProfile, int]:
    match = _NAME.fullmatch(name)
    profile = next((known for known in card.profiles if match and known.name == match["instance"]), None)
    if match is None or profile is None:
        known = [known.name for known in card.profiles]
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"it can be: {', '.join(known)}"
        raise LayoutError(position, f"this GPU has no MIG profile {name!r}; {hint}" if known else "this GPU has no MIG")
    slices = int(match["compute"] or profile.gpu_slices)
    if match["compute"] and slices >= profile.gpu_slices:
        raise LayoutError(position, f"a compute instance of {profile.name} that is named by its slices has fewer")
    return profile, slices


def _check_slices(card: Card, instances: Sequence[_Instance]) -> None:
    used = 0
    counts: dict[str, int] = {}
    for instance in instances:
        profile, position = instance.profile, instance.parts[0][0]
        used += profile.gpu_slices
        counts[profile.name] = counts.get(profile.name, 0) + 1
        if used > card.gpu_slices or (profile.max_count is not None and counts[profile.name] > profile.max_count):
            raise LayoutError(position, f"no room for another {profile.name} on this GPU")
        if instance.start is not None and instance.start not in profile.placements:
            allowed = ", ".join(map(str, profile.placements))
            raise LayoutError(position, f"{profile.name} can start at memory slice {allowed}, not {instance.start}")


def _places(card: Card, instances: Sequence[_Instance]) -> list[int]:
    """A first memory slice for each instance such that none overlap; depth first, earliest start first."""
    deepest = 0

    def search(number: int, used: int) -> list[int] | None:
        nonlocal deepest
        if number == len(instances):
            return []
        deepest = max(deepest, number)
        instance = instances[number]
        width = (1 << (instance.profile.memory_slices or card.memory_slices)) - 1
        for start in instance.profile.placements if instance.start is None else (instance.start,):
            rest = None if used & width << start else search(number + 1, used | width << start)
            if rest is not None:
                return [start, *rest]
        return None

    found = search(0, 0)
    if found is None:
        instance = instances[deepest]
        raise LayoutError(instance.parts[0][0], f"no room for another {instance.profile.name} on this GPU")
    return found


def _number(card: Card, instances: Sequence[_Instance]) -> None:
    taken = {instance.id for instance in instances}
    for instance in instances:
        if instance.id is None:
            share = Fraction(instance.profile.memory_slices or card.memory_slices, card.memory_slices)
            first = _FIRST_ID.get(share, 0)
            order = (*range(first, _GPU_INSTANCES), *range(first))
            instance.id = next(number for number in order if number not in taken)
            taken.add(instance.id)


def _device(card: Card, instance: _Instance, start: int, part: tuple[int, int, int], entry: LayoutEntry) -> MigDevice:
    index, slices, compute = part
    gpu_instance = instance.id or 0
    made_from = f"{card.uuid}/{instance.profile.name}/{gpu_instance}/{start}/{compute}/{slices}"
    memory = instance.profile.memory_mib * _MIB if entry.memory_bytes is None else entry.memory_bytes
    minors = (instance_minor(card.minor, gpu_instance), instance_minor(card.minor, gpu_instance, compute))
    return MigDevice(
        index=index,
        uuid=entry.uuid or f"MIG-{uuid5(UUID_SPACE, made_from)}",
        profile=_part(instance.profile, slices),
        gpu_instance=gpu_instance,
        compute_instance=compute,
        memory_bytes=memory,
        device_paths=entry.device_paths or (*card.paths, *map(capability_path, minors)),
        start=start,
        engines=known_engines(card.model, instance.profile),
    )


def _part(profile: MigProfile, slices: int) -> MigProfile:
    """The profile of a compute instance that has so many slices of a GPU instance."""
    whole = profile.multiprocessors
    multiprocessors = None if whole is None else whole * slices // profile.gpu_slices
    return replace(profile, compute_slices=slices, multiprocessors=multiprocessors)
