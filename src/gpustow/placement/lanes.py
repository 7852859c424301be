"""Rows of small numbers, a whole row in one large integer, so that one operation acts on all of them.

A loop in Python costs some 300 ns for each entry of a table. Additions and comparisons of two long integers cost a
few: the pair table of 16 GPUs, for which half a million such steps are taken when the daemon starts, takes some 30 ms
instead of 160.

A row is an integer; the number at place `i` begins at bit `i * width`, in its *lane*. The highest bit of a lane stays
free: set beforehand in one row, it survives the subtraction of another exactly where the first number is not the
smaller one, and no borrow leaves the lane. A *pattern* is a row of zeros and ones; a pattern times a number is a row
with this number wherever the pattern has a one.
"""

from array import array
from dataclasses import dataclass
from struct import unpack

_CODES = {32: "I", 64: "Q"}
"""The widths of lanes, and their names as C types, which `struct` and `array` share."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """What can be done with rows whose lanes have `width` bits; rows themselves are plain integers."""

    width: int

    @classmethod
    def up_to(cls, largest: int) -> "Lanes":
        """Lanes for numbers up to `largest`. ValueError if that takes more than 63 bits."""
        for width in _CODES:
            if largest.bit_length() < width:
                return cls(width)
        raise ValueError(f"{largest} is too large for a lane: the most are 63 bits")

    def at(self, row: int, pattern: int) -> int:
        """The numbers of a row where the pattern has a one; zero elsewhere."""
        return row & pattern * ((1 << self.width) - 1)

    def moved(self, row: int, places: int) -> int:
        """The row with each number so many places higher."""
        return row << self.width * places

    def larger(self, one: int, other: int, pattern: int) -> int:
        """The larger number of two rows at each place; the pattern has a one at every place that is in use."""
        return other ^ ((one ^ other) & self._not_smaller(one, other, pattern))

    def smaller(self, one: int, other: int, pattern: int) -> int:
        """The smaller number of two rows at each place; the pattern has a one at every place that is in use."""
        return one ^ ((one ^ other) & self._not_smaller(one, other, pattern))

    def _not_smaller(self, one: int, other: int, pattern: int) -> int:
        """All bits of a lane but the highest, where `one` has no smaller number than `other`."""
        free = pattern << self.width - 1
        survived = ((one | free) - other) & free
        return survived - (survived >> self.width - 1)

    def numbers(self, row: int, count: int) -> "array[int]":
        """The first `count` numbers of a row, which has no more."""
        code = _CODES[self.width]
        return array(code, unpack(f"<{count}{code}", row.to_bytes(count * self.width // 8, "little")))
