"""The sharing section: which resources are shared, how, and into how many replicas.

v0.20.0 reads `rename` without renameByDefault and `devices` other than all, checks them and drops them; here they hold.
It takes MPS without a word where time-slicing is asked for as well; here that is refused.
"""

from dataclasses import dataclass

from gpustow.config.devicechoice import DeviceChoice, read_device_choice
from gpustow.config.filekeys import ENTRY_KEYS, REPLICATED_KEYS, SHARING_KEYS
from gpustow.config.resourcename import SHARED_SUFFIX, resource_name
from gpustow.config.section import Section

_FEWEST = 2


@dataclass(frozen=True, slots=True)
class ReplicatedResource:
    """A resource by its full name, each of whose `devices` becomes `replicas` devices, under `rename` if it is set."""

    name: str
    replicas: int
    rename: str | None = None
    devices: DeviceChoice = "all"


@dataclass(frozen=True, slots=True)
class ReplicatedResources:
    """The resources that are shared in one way. `fail_requests_greater_than_one` is None where the file is silent."""

    resources: tuple[ReplicatedResource, ...]
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool | None = None


def read_sharing(top: Section) -> tuple[ReplicatedResources | None, ReplicatedResources | None]:
    """What is shared by time-slicing, and what by MPS; faults go into the file's findings.

    Under MPS requests for more than one device fail unless the file says otherwise, as in v0.20.0.
    """
    section = top.mapping("sharing", SHARING_KEYS)
    time_slicing = _replicated(section.child("timeSlicing")) if section.has("timeSlicing") else None
    mps = None if section.value("mps") is None else _replicated(section.child("mps"), fail_by_default=True)
    if section.has("timeSlicing") and section.value("mps") is not None:
        section.refuse("sharing.mps and sharing.timeSlicing are mutually exclusive; keep one of them")
    return time_slicing, mps


def _replicated(section: Section, *, fail_by_default: bool | None = None) -> ReplicatedResources | None:
    if not section.is_mapping():
        return None
    section.expect_exactly(REPLICATED_KEYS)
    rename_by_default = bool(section.boolean("renameByDefault"))
    fail = section.boolean("failRequestsGreaterThanOne")
    entries = section.value("resources")
    if not isinstance(entries, list) or not entries:
        section.child("resources").refuse("no resources specified: it must be a list with one entry or more")
        return None
    read = [_entry(item, rename_all=rename_by_default) for item in section.items("resources")]
    return ReplicatedResources(
        resources=tuple(entry for entry in read if entry is not None),
        rename_by_default=rename_by_default,
        fail_requests_greater_than_one=fail_by_default if fail is None else fail,
    )


def _entry(section: Section, *, rename_all: bool) -> ReplicatedResource | None:
    if not section.is_mapping():
        return None
    section.expect_exactly(ENTRY_KEYS)
    name = _name(section, "name", missing="no resource name specified")
    replicas = _replicas(section)
    rename = _name(section, "rename", missing="it must not be empty; leave it out") if section.has("rename") else None
    devices = _devices(section)
    if name is None or replicas is None:
        return None
    if rename is None and rename_all:
        rename = name + SHARED_SUFFIX
    return ReplicatedResource(name=name, replicas=replicas, rename=rename, devices=devices)


def _name(section: Section, key: str, *, missing: str) -> str | None:
    value = section.value(key)
    if value is None:
        section.child(key).refuse(missing)
        return None
    if not isinstance(value, str):
        section.child(key).refuse(f"{value!r} is not a text")
        return None
    try:
        return resource_name(value)
    except ValueError as error:
        section.child(key).refuse(str(error))
        return None


def _replicas(section: Section) -> int | None:
    value = section.value("replicas")
    if value is None:
        section.child("replicas").refuse("no replicas specified")
    elif isinstance(value, bool) or not isinstance(value, int):
        section.child("replicas").refuse(f"{value!r} is not a whole number")
    elif value < _FEWEST:
        section.child("replicas").refuse(
            f"number of replicas must be >= {_FEWEST}, not {value}; omit the sharing section to turn sharing off"
        )
    else:
        return value
    return None


def _devices(section: Section) -> DeviceChoice:
    if not section.has("devices"):
        return "all"
    try:
        choice = read_device_choice(section.value("devices"))
    except ValueError as error:
        section.child("devices").refuse(str(error))
        return "all"
    if choice == ():
        section.child("devices").warn("an empty list chooses no devices, so that nothing is shared")
    return choice
