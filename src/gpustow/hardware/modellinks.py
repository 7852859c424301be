"""What the links of a node model mean: a fabric by name, or matrices read row by row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from gpustow.hardware.fabrics import FABRICS, Fabric, no_links
from gpustow.hardware.links import PcieLevel
from gpustow.hardware.modelfile import LinksSection

_T = TypeVar("_T")
_LEVELS = {level.label: level for level in PcieLevel}

Refuse = Callable[[str, str], None]
"""Takes the path and the message of a problem."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Spreads the values at `path` over `count` GPUs: one for all, or one for each."""

    count: int
    path: str
    refuse: Refuse

    def of(self, key: str, given: Sequence[_T] | None, default: Sequence[_T], *, distinct: bool = False) -> list[_T]:
        """One value a GPU; `default` where none are given, or not as many as GPUs. `distinct`: not one for all."""
        if given is None:
            return list(default)
        if len(given) == 1 and not distinct:
            return list(given) * self.count
        if len(given) != self.count:
            message = f"there have to be {self.count} values, one a GPU; there are {len(given)}"
            self.refuse(f"{self.path}.{key}", message)
            return list(default)
        return list(given)


def resolve_links(section: LinksSection | None, size: int, refuse: Refuse) -> Fabric:
    """The fabric of a node with `size` GPUs; what is wrong is told to `refuse`, and unknown then."""
    if section is None:
        return no_links(size)
    if section.fabric is not None:
        return _named(section.fabric, section.seed, size, refuse)

    def level(path: str, word: str) -> PcieLevel | None:
        if word != "?" and word not in _LEVELS:
            refuse(path, f"{word!r} is none of {' '.join(_LEVELS)} and ?")
        return _LEVELS.get(word)

    def count(path: str, word: str) -> int:
        if not (word.isascii() and word.isdigit() and len(word) < 4):
            refuse(path, f"{word!r} is no number of NVLinks")
            return 0
        return int(word)

    pcie = _Matrix("links.pcie", size, refuse).read(section.pcie, None, level)
    nvlinks = _Matrix("links.nvlinks", size, refuse).read(section.nvlinks, 0, count)
    switch = Spread(size, "links", refuse).of("nvswitchLinks", section.nvswitch_links, [0] * size)
    return Fabric(pcie, nvlinks, tuple(switch))


def _named(name: str, seed: int, size: int, refuse: Refuse) -> Fabric:
    named = FABRICS.get(name)
    if named is None:
        near = get_close_matches(name, FABRICS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(FABRICS)}"
        refuse("links.fabric", f"there is no fabric {name!r}; {hint}")
        return no_links(size)
    if named.sizes and size not in named.sizes:
        wanted = " or ".join(map(str, named.sizes))
        refuse("links.fabric", f"the fabric {name} is for {wanted} GPUs, and the node has {size}")
        return no_links(size)
    return named.build(size, seed)


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A square matrix of words at `path`, one row and one column a GPU."""

    path: str
    size: int
    refuse: Refuse

    def read(
        self, rows: Sequence[Sequence[str]] | None, nothing: _T, word: Callable[[str, str], _T]
    ) -> tuple[tuple[_T, ...], ...]:
        """Each cell by `word(path, text)`; the diagonal, and all of a matrix that is not square, is `nothing`."""
        blank = ((nothing,) * self.size,) * self.size
        if rows is None:
            return blank
        if len(rows) != self.size:
            self.refuse(self.path, f"there have to be {self.size} rows, one a GPU; there are {len(rows)}")
            return blank
        for number, row in enumerate(rows):
            if len(row) != self.size:
                message = f"there have to be {self.size} columns, one a GPU; there are {len(row)}"
                self.refuse(f"{self.path}[{number}]", message)
                return blank
        return tuple(
            tuple(
                nothing if column == number else word(f"{self.path}[{number}][{column}]", text)
                for column, text in enumerate(row)
            )
            for number, row in enumerate(rows)
        )
