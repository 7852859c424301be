"""The table of XIDs: what each number means, what NVIDIA's catalogue says to do, and what we make of it.

The rows are in `xids.csv`, in our own words. Numbers, names and actions are those of NVIDIA's XID catalogue (1 to 172)
and of the header nverror.h of NVIDIA's open kernel modules 595.45 (173 to 176). `rule` is our recommendation, which the
policy `catalogue` follows; the counts and times in it are ours and no vendor's. A row is `disputed` where sources
disagree, the catalogue states no action, or it says that the GPUs of today do not use the number.

The file is read when the first XID is asked for.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from gpustow.config.faultrule import FaultRule, parse_rule

FALLEN_OFF_THE_BUS = 79
"""The GPU no longer answers on PCIe: it is lost."""
CONTAINED_ERROR = 94
"""A memory error that is confined to one application, and so to its MIG device."""
UNNAMED = 999
"""What NVML gives for an XID that it cannot name (nvml.h, nvmlEventData_t)."""

_NOTHING = frozenset({"", "ignore"})
_CHECK = "check "
_ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "": "NVIDIA states no action",
        "contact support": "contact NVIDIA support",
        "ignore": "nothing to do",
        "reboot node": "drain the node and reboot it",
        "reset GPU": "drain the GPU and reset it",
        "restart application": "restart the application",
        "restart fabric manager": "restart the fabric manager",
    }
)
"""The actions of the catalogue, as advice. `check` names a workflow of it besides."""


@dataclass(frozen=True, slots=True)
class Xid:
    """One row.

    `action` is what to do at once, `follow_up` what to do if it comes back, both by the catalogue; empty where nothing
    is stated. `application` is whether an application can be the cause: yes, possible or no. `gpus` are those of A100,
    H100, B100 and GB200 that the catalogue says it is for; None where it does not have the number.
    """

    number: int
    name: str
    meaning: str
    kind: str
    rule: FaultRule
    action: str
    follow_up: str
    application: str
    gpus: tuple[str, ...] | None
    disputed: bool
    note: str

    @property
    def advice(self) -> str:
        """What to do, for whoever reads the log."""
        first, then = _advice(self.action), _advice(self.follow_up)
        return first if self.follow_up in _NOTHING or then == first else f"{first}; if it comes back, {then}"


def _advice(action: str) -> str:
    if action.startswith(_CHECK):
        return f"follow {action.removeprefix(_CHECK)} of NVIDIA's XID catalogue"
    return _ADVICE[action]


@cache
def known_xids() -> Mapping[int, Xid]:
    """The table, by number, in order."""
    text = files(__package__).joinpath("xids.csv").read_text(encoding="utf-8")
    rows = (_xid(row) for row in csv.DictReader(text.splitlines()))
    return MappingProxyType({row.number: row for row in rows})


def _xid(row: Mapping[str, str]) -> Xid:
    return Xid(
        number=int(row["xid"]),
        name=row["name"],
        meaning=row["meaning"],
        kind=row["class"],
        rule=parse_rule(row["rule"]),
        action=row["action"],
        follow_up=row["follow_up"],
        application=row["application"],
        gpus=None if row["gpus"] == "?" else tuple(row["gpus"].split()),
        disputed=bool(row["disputed"]),
        note=row["note"],
    )


def meaning_of(number: int) -> str:
    """Meaning and advice on one line, also for a number that the table does not have."""
    if number == UNNAMED:
        return "an XID that the driver does not name; see the kernel's log"
    row = known_xids().get(number)
    if row is None:
        return "not in the table; see NVIDIA's XID catalogue"
    return f"{row.meaning}; {row.advice}"


def nearest_xids(word: str) -> tuple[int, ...]:
    """The numbers that somebody may have meant by a word that is no number of the table; by name or by digits."""
    names = {row.name: row.number for row in known_xids().values()}
    folded = word.upper().replace("-", "_").replace(" ", "_")
    if folded and not folded.isdecimal():
        parts = [number for name, number in names.items() if folded in name]
        return tuple(parts[:3]) or tuple(names[name] for name in get_close_matches(folded, names, n=3))
    numbers = [text for text in map(str, names.values()) if abs(len(text) - len(word)) <= 1]
    return tuple(int(near) for near in get_close_matches(word, numbers, n=3))
