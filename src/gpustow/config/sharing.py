"""The sharing section: which resources are shared, and into how many replicas.

What v0.20.0 reads and then drops, `rename` without renameByDefault and `devices` other than all, is dropped here with
a warning. It is still checked first, because a value that cannot be read is an error there.
"""

from dataclasses import dataclass
from typing import Any

from gpustow.config.resourcename import SHARED_SUFFIX, resource_name
from gpustow.config.section import Section

_ENTRY_KEYS = ("name", "rename", "devices", "replicas")
_SECTION_KEYS = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class ReplicatedResource:
    """A resource by its full name, each of whose devices becomes `replicas` devices named `rename`, if that is set."""

    name: str
    replicas: int
    rename: str | None = None


@dataclass(frozen=True, slots=True)
class ReplicatedResources:
    """The resources that are shared in one way."""

    resources: tuple[ReplicatedResource, ...]
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool | None = None


def read_replicated(section: Section) -> ReplicatedResources | None:
    """The section `timeSlicing`; its faults go into the section's findings. None if it cannot be used."""
    if not section.is_mapping():
        return None
    section.expect_exactly(_SECTION_KEYS)
    rename_by_default = section.boolean("renameByDefault")
    fail = section.boolean("failRequestsGreaterThanOne")
    entries = section.value("resources")
    if not isinstance(entries, list) or not entries:
        section.child("resources").refuse("no resources specified: it must be a list with one entry or more")
        return None
    read = [_entry(section.item("resources", at), rename_all=bool(rename_by_default)) for at in range(len(entries))]
    resources = tuple(entry for entry in read if entry is not None)
    _warn_of_repeats(section, resources)
    return ReplicatedResources(
        rename_by_default=bool(rename_by_default), fail_requests_greater_than_one=fail, resources=resources
    )


def _entry(section: Section, *, rename_all: bool) -> ReplicatedResource | None:
    if not section.is_mapping():
        return None
    section.expect_exactly(_ENTRY_KEYS)
    name = _name(section, "name", missing="no resource name specified")
    replicas = _replicas(section)
    rename = _rename(section, name, rename_all=rename_all)
    _check_devices(section)
    if name is None or replicas is None:
        return None
    return ReplicatedResource(name=name, replicas=replicas, rename=rename)


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


def _rename(section: Section, name: str | None, *, rename_all: bool) -> str | None:
    shared = None if name is None or not rename_all else name + SHARED_SUFFIX
    if "rename" not in section.keys():  # noqa: SIM118 - a method, not a mapping
        return shared
    rename = _name(section, "rename", missing="it must not be empty; leave it out")
    if rename is not None and rename != shared:
        effect = f"{shared} is used" if shared else "the resource keeps its name"
        section.child("rename").warn(f"renaming a resource to {rename} is not supported yet and ignored; {effect}")
    return shared


def _check_devices(section: Section) -> None:
    """Refuses what v0.20.0 refuses, warns of what it then drops."""
    if "devices" not in section.keys():  # noqa: SIM118 - a method, not a mapping
        return
    value: Any = section.value("devices")
    child = section.child("devices")
    if value == "all":
        return
    if isinstance(value, str):
        child.refuse(f"devices set as {value!r} but the only valid string input is 'all'")
    elif isinstance(value, bool) or not isinstance(value, (int, list)):
        child.refuse(f"{value!r} is neither 'all', a count, nor a list of devices")
    elif isinstance(value, int) and value <= 0:
        child.refuse(f"the count of devices must be > 0, not {value}")
    elif isinstance(value, list) and not all(isinstance(item, (str, int)) for item in value):
        child.refuse(f"{value!r} holds something else than indices and UUIDs")
    else:
        child.warn("choosing devices is not supported yet and ignored; all devices of the resource are shared")


def _warn_of_repeats(section: Section, resources: tuple[ReplicatedResource, ...]) -> None:
    """Tells of a resource that is listed twice: the last entry wins, as in v0.20.0."""
    seen: set[str] = set()
    for resource in resources:
        if resource.name in seen:
            section.child("resources").warn(f"{resource.name} is listed more than once; the last entry counts")
        seen.add(resource.name)
