"""The variables by which v0.20.0 is told which XIDs count: DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS.

Each is a list of XIDs with commas between them, or `all` (or `xids`), in any case. A word that is no number is left
out, with a warning. 0 stands for all there, and so it does here.

They have no key in the file, since v0.20.0 has none; the section `health` of the file says more than they can.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

DISABLE = "DP_DISABLE_HEALTHCHECKS"
ENABLE = "DP_ENABLE_HEALTHCHECKS"

_ALL = frozenset({"all", "xids"})
_ALL_NUMBER = 0
_NUMBER = re.compile(r"[0-9]+", re.ASCII)
_MOST = 2**64 - 1


@dataclass(frozen=True, slots=True)
class XidList:
    """The XIDs that one variable names; `everything` if it names all of them."""

    xids: frozenset[int] = frozenset()
    everything: bool = False

    def __contains__(self, xid: int) -> bool:
        return self.everything or xid in self.xids

    def __bool__(self) -> bool:
        return self.everything or bool(self.xids)

    def words(self) -> list[str]:
        """As it could stand in the variable."""
        return ["all"] if self.everything else [str(xid) for xid in sorted(self.xids)]


@dataclass(frozen=True, slots=True)
class XidSwitches:
    """What both variables say; the enabled ones win."""

    disabled: XidList = XidList()
    enabled: XidList = XidList()

    @property
    def all_off(self) -> bool:
        """Whether nothing at all is to be watched.

        v0.20.0 watches nothing as soon as everything is disabled, although some may be enabled; that they are then
        the only ones that count is what the variable was made for (k8s-device-plugin#1443).
        """
        return self.disabled.everything and not self.enabled


def read_switches(environ: Mapping[str, str]) -> tuple[XidSwitches, tuple[str, ...]]:
    """What the variables say, and a warning for each word in them that says nothing."""
    disabled, warnings = _list(environ, DISABLE)
    enabled, more = _list(environ, ENABLE)
    return XidSwitches(disabled, enabled), (*warnings, *more)


def _list(environ: Mapping[str, str], name: str) -> tuple[XidList, list[str]]:
    words = [word for word in (item.strip() for item in environ.get(name, "").lower().split(",")) if word]
    if _ALL & set(words):
        return XidList(everything=True), []
    numbers = {int(word) for word in words if _is_number(word)}
    warnings = [f"{name}: {word!r} is not the number of an XID, and left out" for word in words if not _is_number(word)]
    if _ALL_NUMBER in numbers:
        return XidList(everything=True), [*warnings, f"{name}: 0 is read as all, as in v0.20.0; write all"]
    return XidList(frozenset(numbers)), warnings


def _is_number(word: str) -> bool:
    return _NUMBER.fullmatch(word) is not None and int(word) <= _MOST
