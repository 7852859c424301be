"""How well the GPUs that a request leaves can serve further requests of its size.

The GPUs offered are divided into sets of the asked size, and one short set if the number does not divide. A division is
better the higher the scores of its sets add up to, then the higher its weakest full set scores. The best division of a
mask follows from those of smaller masks: some set holds the mask's first GPU, and the rest is divided at its best.

Three ways, by what a table would cost:

* the tables are filled when the fabric is first used, for every *form* of a set (see `forms`), in at most
  `TABLE_STEPS` steps, about 0.2 s; pairs have a quicker way (see `matching`);
* where that is too much (13 to 16 GPUs that are all different, sizes 3 to 7), the part of a table that a request needs
  is filled on demand if its cost, known beforehand from the numbers alone, is at most `QUERY_STEPS`;
* beyond that, nothing is proven: `swaps` climbs from several starts.

Which way is taken depends on the size and the number of GPUs, never on what was asked before: same state, same answer.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import combinations, repeat
from math import comb
from operator import add

from gpustow.placement.forms import forms_of
from gpustow.placement.matching import PairTable
from gpustow.placement.tables import Matrix, look_up

TABLE_STEPS = 600_000
"""The most sets that are looked at to fill the tables of a fabric, over all sizes."""

ENTRY_STEPS = 30
"""What an entry of a table costs by itself, in sets looked at."""

PAIR_STEPS = 20_000
"""From how many steps on the table of pairs is filled by `matching`."""

QUERY_STEPS = 6_000
"""The most that it may cost to divide what one request leaves, in sets looked at; about 3 ms."""

NO_FULL_SET = 1 << 60
"""The weakest full set of a division that has none."""


def _splits(count: int, size: int) -> int:
    """How many sets can hold the first of `count` GPUs in a division; `count` is above `size`."""
    short = count % size
    return comb(count - 1, size - 1) + (comb(count - 1, short - 1) if short else 0)


def query_steps(offered: int, size: int) -> int:
    """What it costs, in sets looked at, to divide every rest that an answer of `size` out of `offered` can leave."""
    short = offered % size
    counts = {offered - size * sets for sets in range(1, offered // size + 1)}
    counts |= {offered - short - size * sets for sets in range(1, offered // size)} if short else set()
    return sum(comb(offered, count) * (_splits(count, size) + ENTRY_STEPS) for count in counts if count > size)


class Partitions:
    """The best divisions of the subsets of a fabric's GPUs; `scores` is the fabric's table, None where it has none."""

    def __init__(self, matrix: Matrix, scores: Sequence[int] | None) -> None:
        self._count = len(matrix)
        self._tables: dict[int, Table | PairTable] = {}
        if scores is not None:
            self._fill(matrix, scores)

    def _fill(self, matrix: Matrix, scores: Sequence[int]) -> None:
        """Fill the tables of the cheapest sizes, as many as the step budget allows; set up the others empty."""
        forms = array("I", forms_of(matrix))
        kinds = self._kinds(forms)
        costs = {size: self._cost(list(map(len, kinds)), size) for size in range(2, self._count + 1)}
        left = TABLE_STEPS
        for size in sorted(costs, key=lambda size: (costs[size], size)):
            if size == 2 and costs[size] > PAIR_STEPS:
                self._tables[size] = PairTable(matrix, NO_FULL_SET)
                continue
            table = self._tables[size] = Table(size, scores, forms)
            if costs[size] <= left:
                left -= costs[size]
                table.fill(mask for masks in kinds[size + 1 : self._count - size + 1] for mask in masks)

    def _kinds(self, forms: Sequence[int]) -> list[list[int]]:
        """One mask of each form, by how many GPUs it holds."""
        kinds: list[list[int]] = [[] for _ in range(self._count + 1)]
        for mask in dict(zip(forms, range(len(forms)), strict=True)).values():
            kinds[mask.bit_count()].append(mask)
        return kinds

    def _cost(self, kinds: Sequence[int], size: int) -> int:
        """What it costs to fill a table, where there are so many forms of each count."""
        counts = range(size + 1, self._count - size + 1)
        return sum(kinds[count] * (_splits(count, size) + ENTRY_STEPS) for count in counts)

    def exact(self, offered: int, size: int) -> bool:
        """Whether the best division of what an answer of `size` out of `offered` GPUs leaves is found for certain."""
        table = self._tables.get(size)
        return table is not None and (table.filled or query_steps(offered, size) <= QUERY_STEPS)

    def divisions(self, masks: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
        """The totals and the weakest full sets of the best divisions of the masks, where `exact` says so."""
        return self._tables[size].divisions(masks)


def _sets(first: int, others: Sequence[int], size: int) -> list[int]:
    """All sets of a size that consist of the first bit and some of the others."""
    return list(map(sum, combinations(others, size - 1), repeat(first)))


class Table:
    """The best divisions into sets of one size, by form, of masks that hold more than one set."""

    def __init__(self, size: int, scores: Sequence[int], forms: Sequence[int]) -> None:
        self.size = size
        self.filled = False
        self._scores = scores
        self._forms = forms
        self._totals: dict[int, int] = {}
        self._weakest: dict[int, int] = {}

    def fill(self, masks: Iterable[int]) -> None:
        """Fill the entries of all these masks, which hold one of each form, those of fewer GPUs first."""
        for mask in masks:
            self._divide(mask)
        self.filled = True

    def divisions(self, masks: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """The totals and the weakest full sets of masks of one count, those that are missing filled on the way."""
        count = masks[0].bit_count()
        if count <= self.size:
            scores = look_up(self._scores, masks)
            return scores, scores if count == self.size else [NO_FULL_SET] * len(masks)
        forms = look_up(self._forms, masks)
        try:
            totals = look_up(self._totals, forms)
        except KeyError:
            for mask, form in zip(masks, forms, strict=True):
                if form not in self._totals:
                    self._divide(mask)
            totals = look_up(self._totals, forms)
        return totals, look_up(self._weakest, forms)

    def _divide(self, mask: int) -> None:
        """Fill the entry of one mask from those of the masks that one set less leaves."""
        first = 1 << (mask.bit_length() - 1)
        others: list[int] = []
        left = mask ^ first
        while left:
            bit = left & -left
            others.append(bit)
            left ^= bit
        best = self._best(mask, _sets(first, others, self.size), full=True)
        if short := (len(others) + 1) % self.size:
            best = max(best, self._best(mask, _sets(first, others, short), full=False))
        form = self._forms[mask]
        self._totals[form], self._weakest[form] = best

    def _best(self, mask: int, sets: Sequence[int], *, full: bool) -> tuple[int, int]:
        """The total and the weakest full set of the best division that holds one of the sets."""
        rest_totals, rest_weakest = self.divisions([mask ^ chosen for chosen in sets])
        scores = look_up(self._scores, sets)
        totals = list(map(add, scores, rest_totals))
        best = max(totals)
        if not full:
            return best, max(weak for total, weak in zip(totals, rest_weakest, strict=True) if total == best)
        return best, max(
            min(score, weak) for total, score, weak in zip(totals, scores, rest_weakest, strict=True) if total == best
        )
