"""Durations as v0.20.0 has them: nanoseconds, written as Go writes them (`1h30m`), or `infinite`.

A number in the file is nanoseconds, a text needs its units, and `infinite` is the longest that 64 bits can hold.
"""

import re
from fractions import Fraction

INFINITE = 2**63 - 1
"""Nanoseconds of the duration that is called `infinite`."""

INFINITE_WORD = "infinite"

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def parse_duration(text: str) -> int:
    """Nanoseconds. Raises ValueError if `text` is no duration, or longer than 64 bits can hold."""
    if text == INFINITE_WORD:
        return INFINITE
    unsigned = text[1:] if text[:1] in {"-", "+"} else text
    parts = list(_PART.finditer(unsigned))
    if unsigned != "0" and (not parts or "".join(part.group() for part in parts) != unsigned):
        raise ValueError(f"{text!r} is not a duration such as 60s, 1h30m or {INFINITE_WORD}")
    total = sum(int(Fraction(f"0{part[1]}0" if "." in part[1] else part[1]) * _UNITS[part[2]]) for part in parts)
    if total > INFINITE:
        raise ValueError(f"{text!r} is longer than 64 bits of nanoseconds can hold; write {INFINITE_WORD}")
    return -total if text.startswith("-") else total


def format_duration(nanoseconds: int) -> str:
    """As Go prints it: `1h30m0s`, `1.5s`, `300ms`; or `infinite`."""
    if nanoseconds == INFINITE:
        return INFINITE_WORD
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest < _UNITS["s"]:
        unit = next(unit for unit in ("ms", "µs", "ns") if rest >= _UNITS[unit] or unit == "ns")
        return "0s" if rest == 0 else f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    hours, rest = divmod(rest, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    seconds = f"{_decimal(rest, _UNITS['s'])}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(number: int, unit: int) -> str:
    """`number` in units, without zeros at the end."""
    whole, rest = divmod(number, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
