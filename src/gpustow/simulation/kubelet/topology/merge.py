"""One hint out of the hints of all providers.

Kubelet tries every combination of one hint of each provider and resource, and keeps the best by pairwise comparison.
What comes out has a closed form, which is what stands here. Combinations are folded one list at a time into the few
states that matter (the common mask so far, and what a preferred combination would have to agree on), so the cost grows
with the number of masks instead of the number of combinations.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpustow.simulation.kubelet.topology.hints import Hint, Hints
from gpustow.simulation.kubelet.topology.masks import Mask

NO_PREFERENCE = (Hint(None, preferred=True),)
"""What a provider or resource without preference contributes."""

IMPOSSIBLE = (Hint(None, preferred=False),)
"""What a resource contributes that cannot be served on any nodes."""

Distance = Callable[[Mask], float]
"""How far the nodes of a mask are apart, to choose among masks with equally many."""


def flatten(providers: Iterable[Hints]) -> list[tuple[Hint, ...]]:
    """One list for each provider and resource."""
    lists: list[tuple[Hint, ...]] = []
    for hints in providers:
        lists += [_contribution(of_resource) for of_resource in hints.values()] or [NO_PREFERENCE]
    return lists


def _contribution(hints: Sequence[Hint] | None) -> tuple[Hint, ...]:
    if hints is None:
        return NO_PREFERENCE
    return tuple(hints) or IMPOSSIBLE


def no_distance(mask: Mask) -> float:
    """All masks are equally good."""
    del mask
    return 0.0


@dataclass(frozen=True, slots=True)
class _Partial:
    """Combinations that agree so far: `agreed` is the one mask of all their hints, None if none had one yet.

    `preferred` falls when a hint is not preferred, or has another mask than the others.
    """

    common: Mask
    agreed: Mask | None = None
    preferred: bool = True

    def with_hint(self, hint: Hint) -> "_Partial":
        if hint.mask is None:
            return self if hint.preferred else _Partial(self.common, preferred=False)
        common = self.common & hint.mask
        if self.preferred and hint.preferred and self.agreed in {None, hint.mask}:
            return _Partial(common, hint.mask)
        return _Partial(common, preferred=False)


def merge_hints(lists: Iterable[Sequence[Hint]], machine: Mask, distance: Distance = no_distance) -> Hint:
    """The best hint; all nodes of the machine, not preferred, if the lists have nothing in common."""
    lists = [*lists]
    partials = {_Partial(machine)}
    for hints in lists:
        partials = {partial.with_hint(hint) for partial in partials for hint in hints}
    preferred = {partial.common for partial in partials if partial.preferred and partial.common.count}
    if preferred:
        return Hint(min(preferred, key=lambda mask: (mask.count, distance(mask), mask.word)), preferred=True)
    others = {partial.common for partial in partials if partial.common.count}
    if not others:
        return Hint(machine, preferred=False)
    return Hint(_nearest(others, _narrowest_needed(lists), distance), preferred=False)


def _narrowest_needed(lists: Iterable[Sequence[Hint]]) -> int:
    """How many nodes the most demanding list needs at least."""
    counts = ([hint.mask.count for hint in hints if hint.mask is not None] for hints in lists)
    return max((min(of_list, default=0) for of_list in counts), default=0)


def _nearest(masks: Iterable[Mask], wanted: int, distance: Distance) -> Mask:
    """The mask whose count is `wanted`; else the largest below; else the smallest above."""

    def rank(mask: Mask) -> tuple[bool, int, float, int]:
        return mask.count > wanted, abs(mask.count - wanted), distance(mask), mask.word

    return min(masks, key=rank)
