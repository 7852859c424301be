"""Why a placement is what it is, in numbers and in one sentence.

The winner is compared with the next best answer; the first line of the objective on which they differ is what decided.
All of it is worked out when somebody asks, not before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gpustow.placement.objective import COUNTS, Line, Objective, Value, deciding_line
from gpustow.placement.policy import Policy
from gpustow.placement.solver import Measure, measure_of, second_best
from gpustow.placement.state import Counts, State, never

Plain = int | str | list[int] | list[str]
"""A value of a line as people read it: shares as fractions of a GPU."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that was weighed: devices on each GPU (by NVML index), must-include's among them, and its worth."""

    per_gpu: Mapping[int, int]
    objective: Mapping[str, Plain]


@dataclass(frozen=True, slots=True)
class GpuView:
    """A GPU as the decision saw it, must-include's devices in use: free slots, slots in use, and the loads.

    `load` and `load_after` are over all resources of the card.
    """

    index: int
    free: int
    in_use: int
    takes: int
    load: Fraction
    load_after: Fraction


@dataclass(frozen=True, slots=True)
class Explanation:
    """The winner, the next best answer (None if there is no other), the line that decided, and a sentence."""

    gpus: tuple[GpuView, ...]
    winner: Candidate
    runner_up: Candidate | None
    decided_by: str | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What there is to explain. `gpu_indices` are the NVML indices of the positions; `whole` is whole GPUs."""

    policy: Policy
    state: State
    counts: Counts
    gpu_indices: Sequence[int]
    whole: bool

    def explain(self) -> Explanation:
        """The explanation of this decision; it takes what time it needs."""
        state = replace(self.state, expired=never)
        measure = measure_of(self.policy, state, self.counts)
        best = measure.value(state, self.counts)
        winner = self._candidate(measure, self.counts, best)
        sentence = f"{self.policy.name.value} takes {self._text(self.counts)}"
        other = second_best(self.policy, state, self.counts)
        if other is None:
            return Explanation(self._gpus(), winner, None, None, f"{sentence}; no other answer is possible.")
        next_best = measure.value(state, other)
        line = measure.lines[at := deciding_line(best, next_best)]
        if line is COUNTS:
            sentence += f"; the next best, {self._text(other)}, is equal but for the GPU index."
        else:
            mine, theirs = self._phrases(line, best[at], next_best[at])
            sentence += f", which {mine}; the next best, {self._text(other)}, {theirs}."
        runner_up = self._candidate(measure, other, next_best)
        return Explanation(self._gpus(), winner, runner_up, line.name, sentence)

    def _gpus(self) -> tuple[GpuView, ...]:
        """Every GPU of the resource."""
        state = self.state
        return tuple(
            GpuView(
                index=index,
                free=state.free[at],
                in_use=state.taken[at],
                takes=self.counts[at],
                load=Fraction(state.used[at], state.denominator),
                load_after=Fraction(state.used[at] + self.counts[at] * state.step[at], state.denominator),
            )
            for at, index in enumerate(self.gpu_indices)
        )

    def _candidate(self, measure: Measure, counts: Counts, objective: Objective) -> Candidate:
        """An answer with its values by the names of the lines."""
        values = {
            line.name: self._plain(line, value)
            for line, value in zip(measure.lines, objective, strict=True)
            if line is not COUNTS
        }
        return Candidate(self._per_gpu(counts), values)

    def _per_gpu(self, counts: Counts) -> dict[int, int]:
        """Devices on each GPU that has any."""
        both = zip(self.gpu_indices, self.state.must, counts, strict=True)
        return {index: must + count for index, must, count in both if must + count}

    def _text(self, counts: Counts) -> str:
        """Where an answer puts what."""
        per_gpu = self._per_gpu(counts)
        if not per_gpu:
            return "nothing"
        if self.whole:
            return f"GPU{'s' if len(per_gpu) > 1 else ''} {_listed(map(str, per_gpu))}"
        return _listed(f"{count} on GPU {index}" for index, count in per_gpu.items())

    def _share(self, value: int) -> str:
        """A share of a GPU."""
        return str(Fraction(value, self.state.denominator))

    def _plain(self, line: Line, value: Value) -> Plain:
        """A value as people read it."""
        if line.values and isinstance(value, int):
            return line.values[value]
        if line.shares:
            return self._share(value) if isinstance(value, int) else [self._share(entry) for entry in value]
        return value if isinstance(value, int) else list(value)

    def _phrases(self, line: Line, mine: Value, theirs: Value) -> tuple[str, str]:
        """What two answers do, by a line on which they differ; of vectors by the first entries that differ."""
        if isinstance(mine, tuple) and isinstance(theirs, tuple):
            mine, theirs = next((one, other) for one, other in zip(mine, theirs, strict=True) if one != other)
        return self._phrase(line, mine), self._phrase(line, theirs)

    def _phrase(self, line: Line, value: Value) -> str:
        """What an answer does, by a line."""
        return line.phrase.format(self._plain(line, value), s="" if value == 1 else "s")


def _listed(parts: Iterable[str]) -> str:
    """An enumeration, with `and` before the last part."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
