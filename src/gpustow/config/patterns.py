"""The section `resources`: under which names the operator wants GPUs and MIG devices to be offered.

v0.20.0 reads it, checks the names and drops it; here it holds. What it would drop without a word because nothing can
come of it, an entry without a name or a pattern, is dropped with a warning.
"""

from dataclasses import dataclass

from gpustow.config.filekeys import PATTERN_KEYS, PATTERNS_KEYS
from gpustow.config.resourcename import resource_name
from gpustow.config.section import Section


@dataclass(frozen=True, slots=True)
class ResourcePattern:
    """GPUs whose model, or MIG devices whose profile, matches `pattern` belong to the resource `name` (in full)."""

    pattern: str
    name: str


def read_patterns(top: Section) -> tuple[tuple[ResourcePattern, ...], tuple[ResourcePattern, ...]]:
    """The patterns for GPUs and those for MIG devices, in the order of the file; faults go into its findings."""
    section = top.mapping("resources", PATTERNS_KEYS)
    gpus, mig = (_patterns(section, key) for key in PATTERNS_KEYS)
    return gpus, mig


def _patterns(section: Section, key: str) -> tuple[ResourcePattern, ...]:
    read = [_pattern(item) for item in section.items(key)]
    return tuple(pattern for pattern in read if pattern is not None)


def _pattern(entry: Section) -> ResourcePattern | None:
    if not entry.is_mapping():
        return None
    entry.expect_exactly(PATTERN_KEYS)
    texts = []
    for key in PATTERN_KEYS:
        value = entry.value(key)
        if value is not None and not isinstance(value, str):
            entry.child(key).refuse(f"{value!r} is not a text")
            return None
        texts.append(value or "")
    pattern, name = texts
    if not pattern or not entry.has("name"):
        entry.warn("it needs a pattern and a name, and has no effect without")
        return None
    try:
        return ResourcePattern(pattern, resource_name(name))
    except ValueError as error:
        entry.child("name").refuse(str(error))
        return None
