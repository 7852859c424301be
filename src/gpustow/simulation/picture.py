"""The picture in the terminal: each GPU as a box, a cell a slot, in the cell the letter of the pod that holds it.

    GPU 0 ┌───┬───┬───┬───┬───┐
          │ A │ B │   │   │   │ 2 of 5
          └───┴───┴───┴───┴───┘

A letter and a colour mean the same pod in every picture of one run, so that two policies can be compared at a glance.
The letter is what carries the meaning: without colours nothing is lost. With more slots on a GPU than fit into a row,
cells shrink to one character, `·` for a free slot, and wrap; where even that is too long, a row tells the counts.

Limits: 62 pods have a letter or digit of their own, later ones share `#`; which is which is in the list below it.
"""

import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.text import Text

from gpustow.simulation.outcome import Outcome, Phase

SYMBOLS = string.ascii_uppercase + string.ascii_lowercase + string.digits
"""One a pod, in the order of the workload."""

LATER = "#"
"""What pods get when the symbols are used up."""

UNHEALTHY = "!"
"""A slot that nobody holds and nobody can get."""

MOST_CELLS_IN_BOXES = 16
"""A GPU with more slots than this is drawn with one character a slot."""

ROW_LENGTH = 50
"""How many slots a row of one-character cells has."""

MOST_ROWS = 8
"""A GPU that would take more rows than this is told in numbers."""

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "red")


@dataclass(frozen=True, slots=True)
class Strokes:
    """The characters of a picture: corners and tees of a box by row, its lines, and a free slot outside of boxes."""

    top: str
    bottom: str
    across: str
    down: str
    free: str


class Cell(Protocol):
    """A slot as it is drawn."""

    @property
    def holder(self) -> str | None:
        """The pod, by namespace and name."""
        ...

    @property
    def healthy(self) -> bool:
        """Whether it can be given to one."""
        ...


DRAWN = Strokes("┌┬┐", "└┴┘", "─", "│", "·")
PLAIN = Strokes("+++", "+++", "-", "|", ".")
"""For terminals that cannot show box-drawing characters."""


def strokes_for(encoding: str) -> Strokes:
    """The strokes that an output with this encoding can show."""
    try:
        f"{DRAWN.top}{DRAWN.bottom}{DRAWN.across}{DRAWN.down}{DRAWN.free}".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return DRAWN


def assign_symbols(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """A symbol for each pod that is on the node at the end under any policy, by namespace and name."""
    pods = dict.fromkeys(
        pod.key for outcome in outcomes for pod in outcome.pods if pod.phase is Phase.RUNNING and pod.device_ids
    )
    return {pod: SYMBOLS[number] if number < len(SYMBOLS) else LATER for number, pod in enumerate(pods)}


def style_of(symbol: str) -> str:
    """The colour of a symbol."""
    return f"bold {_COLOURS[SYMBOLS.find(symbol) % len(_COLOURS)]}"


def draw(outcome: Outcome, symbols: Mapping[str, str], strokes: Strokes = DRAWN) -> list[Text]:
    """The lines of the picture of one outcome: a heading, the GPUs, and how many of them are wholly free."""
    label_width = max(len(f"GPU {gpu.index} ") for gpu in outcome.node.gpus) if outcome.node.gpus else 0
    lines = [Text(outcome.policy, style="bold")]
    for gpu in outcome.node.gpus:
        body = draw_card(outcome.slots(gpu), symbols, strokes)
        for number, line in enumerate(body):
            label = f"GPU {gpu.index} " if number == min(1, len(body) - 1) else ""
            lines.append(Text.assemble(label.ljust(label_width), line))
    lines.append(_free_line(outcome))
    if fragmented := outcome.mig_fragmentation():
        lines.append(Text(f"MIG fragmentation {sum(fragmented.values())} slices"))
    return lines


def draw_card(cells: Sequence[Cell], symbols: Mapping[str, str], strokes: Strokes = DRAWN) -> list[Text]:
    """The lines of one card: boxes, rows of characters or numbers, by how many slots it has."""
    return _Card(cells, symbols, strokes).lines()


def _free_line(outcome: Outcome) -> Text:
    free, unusable = len(outcome.wholly_free_gpus()), len(outcome.unusable_gpus())
    apart = f", {unusable} with nothing to give" if unusable else ""
    usable = len(outcome.node.gpus) - unusable
    return Text(f"{free} of {usable} GPUs wholly free{apart}", style="bold green" if free else "bold")


def side_by_side(blocks: Sequence[Sequence[Text]], width: int, gap: int = 4) -> list[Text]:
    """Blocks of lines next to each other where they fit into `width` columns, else one below the other."""
    widths = [max((line.cell_len for line in block), default=0) for block in blocks]
    if sum(widths) + gap * (len(blocks) - 1) > width:
        return [line for block in blocks for line in (*block, Text())][:-1]
    rows = []
    for number in range(max(len(block) for block in blocks)):
        row = Text()
        for block, block_width in zip(blocks, widths, strict=True):
            line = block[number] if number < len(block) else Text()
            row.append_text(line)
            row.append(" " * (block_width - line.cell_len + gap))
        row.rstrip()
        rows.append(row)
    return rows


def draw_legend(symbols: Mapping[str, str], width: int) -> list[Text]:
    """Which symbol is which pod, as many a line as fit; pods beyond the symbols are told by their number."""
    entries = [
        Text.assemble((symbol, style_of(symbol)), f" {pod}") for pod, symbol in symbols.items() if symbol != LATER
    ]
    later = len(symbols) - len(entries)
    if later:
        entries.append(Text(f"{LATER} {later} later pods"))
    return list(_wrap(entries, width))


def _wrap(entries: Iterable[Text], width: int) -> Iterable[Text]:
    line = Text()
    for entry in entries:
        if line and line.cell_len + 2 + entry.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, "  ", entry) if line else entry
    if line:
        yield line


class _Card:
    """One GPU's slots as lines."""

    def __init__(self, slots: Sequence[Cell], symbols: Mapping[str, str], strokes: Strokes) -> None:
        self._slots = slots
        self._symbols = symbols
        self._strokes = strokes

    def lines(self) -> list[Text]:
        if not self._slots:
            return [Text("no devices", style="dim")]
        if len(self._slots) <= MOST_CELLS_IN_BOXES:
            return self._boxes()
        if len(self._slots) <= ROW_LENGTH * MOST_ROWS:
            return self._rows()
        return [self._numbers()]

    def _mark(self, slot: Cell) -> tuple[str, str]:
        """What stands in a cell, and its style."""
        if slot.holder is not None:
            symbol = self._symbols.get(slot.holder, LATER)
            return symbol, style_of(symbol)
        return (" ", "") if slot.healthy else (UNHEALTHY, "red")

    def _used(self) -> Text:
        used = sum(slot.holder is not None for slot in self._slots)
        if used:
            return Text(f" {used} of {len(self._slots)}")
        if any(slot.healthy for slot in self._slots):
            return Text(" free", style="green")
        return Text(" unhealthy", style="red")

    def _boxes(self) -> list[Text]:
        strokes, count = self._strokes, len(self._slots)

        def edge(ends: str) -> Text:
            return Text(ends[0] + ends[1].join([strokes.across * 3] * count) + ends[2], style="dim")

        middle = Text(strokes.down, style="dim")
        for slot in self._slots:
            mark, style = self._mark(slot)
            middle.append(f" {mark} ", style=style or None).append(strokes.down, style="dim")
        return [edge(strokes.top), middle.append_text(self._used()), edge(strokes.bottom)]

    def _rows(self) -> list[Text]:
        rows = []
        for start in range(0, len(self._slots), ROW_LENGTH):
            row = Text()
            for slot in self._slots[start : start + ROW_LENGTH]:
                mark, style = self._mark(slot)
                row.append(self._strokes.free if mark == " " else mark, style=style or "dim")
            rows.append(row)
        rows[min(1, len(rows) - 1)].append_text(self._used())
        return rows

    def _numbers(self) -> Text:
        counts = Counter(self._mark(slot)[0] for slot in self._slots if slot.holder is not None)
        parts = [f"{symbol} {count}" for symbol, count in sorted(counts.items())]
        return Text(", ".join(parts), style="bold").append_text(self._used())
