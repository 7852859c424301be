"""Which sets of GPUs are the same set in all that links can tell.

On most machines the scores follow a tree: boards in switches, switches in sockets. Such a matrix falls apart into
*modules*, groups whose members all score alike towards each GPU outside. The form of a set is written down module by
module, children sorted, so that two sets with one form can be mapped onto each other without any score changing. Of the
65,536 sets of 16 GPUs in four islands 70 forms remain, and 17 when all links are equal.

A module that does not fall apart further (the hybrid cube mesh of a DGX-1, random scores) keeps each of its sets as a
form of its own: nothing is gained there, and nothing is wrong.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from gpustow.placement.tables import Matrix

_EMPTY, _SINGLE = 0, 1


@dataclass(frozen=True, slots=True)
class _Module:
    """Positions that fall apart into `children`, any two of which score `worth` towards each other; none: prime."""

    positions: tuple[int, ...]
    worth: int = 0
    children: "tuple[_Module, ...]" = ()


def _components(positions: Sequence[int], joined: Callable[[int, int], bool]) -> list[tuple[int, ...]]:
    """The connected components of the positions."""
    left = list(positions)
    components: list[tuple[int, ...]] = []
    while left:
        reached = [left.pop(0)]
        for one in reached:
            near = [other for other in left if joined(one, other)]
            reached += near
            left = [other for other in left if other not in near]
        components.append(tuple(sorted(reached)))
    return components


def _decompose(matrix: Matrix, positions: tuple[int, ...]) -> _Module:
    """The tree of modules below these positions."""
    scores = [matrix[one][other] for one in positions for other in positions if one < other]
    if not scores:
        return _Module(positions)
    low, high = min(scores), max(scores)
    for worth, joined in (
        (low, lambda one, other: matrix[one][other] > low),
        (high, lambda one, other: matrix[one][other] < high),
    ):
        parts = _components(positions, joined)
        if len(parts) > 1:
            return _Module(positions, worth, tuple(_decompose(matrix, part) for part in parts))
    return _Module(positions)


class _Register:
    """Numbers for forms, in the order in which they are met; the empty set is 0, a single GPU 1."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._next = 2

    def number(self, form: Hashable) -> int:
        """The number of a form."""
        if form not in self._numbers:
            self._numbers[form] = self.numbers(1)[0]
        return self._numbers[form]

    def numbers(self, count: int) -> range:
        """Numbers for forms that will not be met again."""
        start = self._next
        self._next += count
        return range(start, self._next)


def _leaves(module: _Module) -> list[int]:
    """The positions of a module in the order of the tree."""
    if not module.children:
        return list(module.positions)
    return [position for child in module.children for position in _leaves(child)]


def _tabulate(module: _Module, register: _Register) -> list[int]:
    """The form of each subset of a module, as masks over its leaves, the first leaf the highest bit."""
    if len(module.positions) == 1:
        return [_EMPTY, _SINGLE]
    if not module.children:
        table = list(register.numbers(1 << len(module.positions)))
        table[0] = _EMPTY
        for at in range(len(module.positions)):
            table[1 << at] = _SINGLE
        return table
    gathered: list[tuple[int, ...]] = [()]
    table = [0]
    for child in module.children:
        forms = _tabulate(child, register)
        numbers: dict[tuple[int, ...], int] = {}
        join = {
            (so_far, form): numbers.setdefault(
                tuple(sorted((*gathered[so_far], form))) if form else gathered[so_far], len(numbers)
            )
            for so_far in range(len(gathered))
            for form in dict.fromkeys(forms)
        }
        gathered = list(numbers)
        table = [join[so_far, form] for so_far in table for form in forms]
    named = [
        (forms[0] if forms else _EMPTY) if len(forms) < 2 else register.number((module.worth, forms))
        for forms in gathered
    ]
    return [named[entry] for entry in table]


def forms_of(matrix: Matrix) -> list[int]:
    """The form number of every mask; the GPU of the lowest position is the highest bit. Not every number is used."""
    count = len(matrix)
    if not count:
        return [_EMPTY]
    root = _decompose(matrix, tuple(range(count)))
    table = _tabulate(root, _Register())
    leaves = _leaves(root)
    if leaves == sorted(leaves):
        return table
    place = {position: 1 << (count - 1 - at) for at, position in enumerate(leaves)}
    moved = [0]
    for position in range(count - 1, -1, -1):
        bit = place[position]
        moved += [mask | bit for mask in moved]
    return [table[mask] for mask in moved]
