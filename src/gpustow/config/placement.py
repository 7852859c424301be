"""The section `placement`, which is ours: policy, cap and hard rules for one resource, by its final name.

    placement:
      resources:
      - name: nvidia.com/gpu.shared
        policy: packed
        cap: 2
        distinct: required

What an entry does not name stays as it is for all resources. Whether a node has such a resource is not known here, and
one file serves many kinds of node.
"""

from dataclasses import dataclass

from gpustow.config.resourcename import resource_name
from gpustow.config.section import Section
from gpustow.config.strategies import SHARED_POLICIES

_SECTION_KEYS = ("resources",)
_ENTRY_KEYS = ("name", "policy", "cap", "distinct", "together")
_RULES = ("distinct", "together")
_REQUIRED = "required"
_CAPPED = "packed"


@dataclass(frozen=True, slots=True)
class ResourcePlacement:
    """How the devices of the resource `name` are placed.

    `policy` None is that of all resources. `cap` bounds the used slots on a GPU while another is below it. `distinct`
    and `together` are hard rules: no two slots of a request on one GPU, or all of them.
    """

    name: str
    policy: str | None = None
    cap: int | None = None
    distinct: bool = False
    together: bool = False


def read_placement(section: Section) -> tuple[ResourcePlacement, ...]:
    """The entries of the section `placement`; its faults go into the section's findings."""
    if not section.is_mapping():
        return ()
    section = section.folded(_SECTION_KEYS)
    entries = section.value("resources")
    if not isinstance(entries, list) or not entries:
        section.child("resources").refuse("it must be a list with one entry or more")
        return ()
    read = [_entry(section.item("resources", at)) for at in range(len(entries))]
    known = [entry for entry in read if entry is not None]
    names = [entry.name for entry in known]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            section.child("resources").refuse(f"{name} is listed {names.count(name)} times")
    return tuple(known)


def _entry(section: Section) -> ResourcePlacement | None:
    if not section.is_mapping():
        return None
    section.expect_exactly(_ENTRY_KEYS)
    name, policy, cap = _name(section), _policy(section), _cap(section)
    distinct, together = (_rule(section, key) for key in _RULES)
    if distinct and together:
        section.refuse("distinct and together cannot both be required")
    if name is None:
        return None
    return ResourcePlacement(name, policy, cap, distinct, together)


def _name(section: Section) -> str | None:
    value = section.value("name")
    if not isinstance(value, str) or not value:
        section.child("name").refuse("it must be the final name of a resource, such as nvidia.com/gpu.shared")
        return None
    try:
        return resource_name(value)
    except ValueError as error:
        section.child("name").refuse(str(error))
        return None


def _policy(section: Section) -> str | None:
    value = section.value("policy")
    if value is None or (isinstance(value, str) and value in SHARED_POLICIES):
        return value
    section.child("policy").refuse(f"unknown policy {value!r}; known are {', '.join(SHARED_POLICIES)}")
    return None


def _cap(section: Section) -> int | None:
    value = section.value("cap")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        section.child("cap").refuse(f"{value!r} is not a whole number above 0")
        return None
    if section.value("policy") != _CAPPED:
        section.child("cap").refuse(f"a cap needs `policy: {_CAPPED}` in the same entry")
    return value


def _rule(section: Section, key: str) -> bool:
    value = section.value(key)
    if value is not None and value != _REQUIRED:
        section.child(key).refuse(f"{value!r} is not {_REQUIRED!r}; leave the key out if it is not")
    return bool(value == _REQUIRED)
