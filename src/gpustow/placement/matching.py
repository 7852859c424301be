"""The best division of every set of GPUs into pairs, in one sweep over all masks.

The pair table of 16 GPUs that are all different has 65,536 entries. Filled entry by entry it would take more than a
second; here each pair of GPUs is applied at once to all masks that hold it (see `lanes`), in some 30 ms. Where GPUs are
interchangeable the tables by form (see `partition`) are smaller and quicker.

A division is written as one number, its *key*: the total above the weakest pair, so that the larger key is the better
division.
"""

from collections.abc import Sequence

from gpustow.placement.lanes import Lanes
from gpustow.placement.tables import Matrix, look_up


class PairTable:
    """The best divisions into pairs of every set of GPUs; one GPU of an odd number stays alone.

    `no_pair` stands for the weakest pair where there is none. The GPU of the lowest position is the highest bit of a
    mask.
    """

    filled = True

    def __init__(self, matrix: Matrix, no_pair: int) -> None:
        self._no_pair = no_pair
        self._stronger = max(map(max, matrix), default=0) + 1  # than any pair: stands for `no_pair` within a key
        self._bits = self._stronger.bit_length()
        most = len(matrix) // 2 * self._stronger
        self._keys = self._sweep(matrix, Lanes.up_to((most + 1) << self._bits))

    def _sweep(self, matrix: Matrix, lanes: Lanes) -> Sequence[int]:
        """The key of every mask: each GPU in turn, from the last, doubles them.

        The new GPU pairs with each of those before it, and adds to the best division of the rest. If it makes the
        number odd it may also stay alone.
        """
        keys = self._stronger
        every, even, odd = 1, 1, 0  # patterns: masks over the GPUs so far, those of an even and of an odd number
        without: list[int] = []  # for each GPU so far, the masks that do not hold it
        last = len(matrix) - 1
        for first in range(len(matrix)):
            longer = lanes.at(keys, even)
            for second, pattern in enumerate(without):
                worth = matrix[last - first][last - second]
                rest = lanes.at(keys, pattern)
                weakest = rest & pattern * ((1 << self._bits) - 1)
                paired = rest - weakest + pattern * (worth << self._bits)
                paired += lanes.smaller(weakest, pattern * worth, pattern)
                longer = lanes.larger(longer, lanes.moved(paired, 1 << second), every)
            places = 1 << first
            keys |= lanes.moved(longer, places)
            without = [pattern | lanes.moved(pattern, places) for pattern in without] + [every]
            even, odd = even | lanes.moved(odd, places), odd | lanes.moved(even, places)
            every |= lanes.moved(every, places)
        return lanes.numbers(keys, 1 << len(matrix))

    def divisions(self, masks: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """The totals and the weakest pairs of the best divisions of the masks."""
        keys = look_up(self._keys, masks)
        weakest = [key & ((1 << self._bits) - 1) for key in keys]
        return (
            [key >> self._bits for key in keys],
            [self._no_pair if weak == self._stronger else weak for weak in weakest],
        )
