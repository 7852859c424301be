"""The keys that the file can have, and what is nearest to one that it cannot.

A path names a key with the sections around it, `[]` for the items of a list: `sharing.mps.resources[].replicas`.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import takewhile

from gpustow.config.settings import BY_FORMER_KEY, BY_KEY

REPLICATED_KEYS = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
ENTRY_KEYS = ("name", "rename", "devices", "replicas")
PATTERN_KEYS = ("pattern", "name")
SHARING_KEYS = ("timeSlicing", "mps")
PATTERNS_KEYS = ("gpus", "mig")
PLACEMENT_ENTRY_KEYS = ("name", "policy", "cap", "distinct", "together")
HEALTH_KEYS = ("xidPolicy", "xids", "unknownXids", "events", "checkInterval", "rescanInterval", "recovery")
HEALTH_EVENT_KEYS = ("eccSingleBit", "eccDoubleBit")
HEALTH_STATE_KEYS = (
    "rowRemapPending",
    "rowRemapFailure",
    "pageRetirementPending",
    "sramThreshold",
    "recoveryAction",
    "unwatched",
)
"""Events that are states: they are there or not, and cannot be counted."""
RECOVERY_KEYS = ("enabled", "holdTime", "unknownIsProof", "flapCount", "flapWindow", "flapHoldTime")


def _paths() -> tuple[str, ...]:
    """Every path, sections included, in the order of the file."""
    sharing = [
        path
        for kind in SHARING_KEYS
        for path in (
            f"sharing.{kind}",
            *(f"sharing.{kind}.{key}" for key in REPLICATED_KEYS),
            *(f"sharing.{kind}.resources[].{key}" for key in ENTRY_KEYS),
        )
    ]
    patterns = [
        path
        for kind in PATTERNS_KEYS
        for path in (f"resources.{kind}", *(f"resources.{kind}[].{key}" for key in PATTERN_KEYS))
    ]
    placement = ["placement", "placement.resources", *(f"placement.resources[].{key}" for key in PLACEMENT_ENTRY_KEYS)]
    health = [
        "health",
        *(f"health.{key}" for key in HEALTH_KEYS),
        *(f"health.events.{key}" for key in HEALTH_EVENT_KEYS + HEALTH_STATE_KEYS),
        *(f"health.recovery.{key}" for key in RECOVERY_KEYS),
    ]
    sections = dict.fromkeys(
        ".".join(key.split(".")[:depth]) for key in BY_KEY for depth in range(1, key.count(".") + 1)
    )
    return ("version", *sections, *BY_KEY, "resources", *patterns, "sharing", *sharing, *placement, *health)


PATHS = _paths()


def keys_below(section: str) -> tuple[str, ...]:
    """The keys directly in the section at this path; empty is the top."""
    return tuple(_name(path) for path in (*PATHS, *BY_FORMER_KEY) if path.rpartition(".")[0] == section)


def nearest(section: str, key: str, known: Sequence[str]) -> str:
    """What somebody may have meant by an unknown key in a section, whose own keys are `known`.

    A key of the section that is spelt nearly so; else one that is spelt just so elsewhere; else the nearest elsewhere.
    Then the whole path is named, for the key is misplaced. Empty if nothing is near.
    """
    folded = {name.lower(): name for name in known}
    if key.lower() in folded:
        return folded[key.lower()]
    elsewhere = [path for path in PATHS if _name(path).lower() == key.lower()]
    if elsewhere:
        return max(elsewhere, key=lambda path: _shared(path, section))
    if near := get_close_matches(key.lower(), folded, n=1):
        return folded[near[0]]
    path = max(PATHS, key=lambda path: (_likeness(_name(path), key), _shared(path, section)))
    return path if _likeness(_name(path), key) >= 0.75 else ""  # two typos in a word of eight


def _likeness(name: str, key: str) -> float:
    return SequenceMatcher(None, name.lower(), key.lower()).ratio()


def _shared(path: str, section: str) -> int:
    """How many sections two paths have in common, from the top."""
    pairs = zip(path.split("."), section.split("."), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _name(path: str) -> str:
    return path.rpartition(".")[2]
