"""What was looked for and not found, in a few lines for the log: names are gathered by what they are names of.

Much of it is no fault. A server's driver has no X11 modules, and a driver of today no library of ten years ago. But
when a container fails for the want of a library, these lines say that it was not there to be given.
"""

from collections.abc import Iterable, Sequence

_MOST_NAMES = 16


class Findings:
    """Gathers what is missing below `place`, the root that is searched, as an operator knows it."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._missing: dict[str, list[str]] = {}
        self._told: list[str] = []

    def missing(self, what: str, names: Iterable[str]) -> None:
        """Notes that these are not there; `what` says in the plural what they are."""
        for name in names:
            self._missing.setdefault(what, []).append(name)

    def tell(self, sentence: str) -> None:
        """Notes something else."""
        self._told.append(sentence)

    def sentences(self) -> tuple[str, ...]:
        """One sentence each, the same one once."""
        missing = [f"not found below {self._place}: {what} {_few(names)}" for what, names in self._missing.items()]
        return tuple(dict.fromkeys([*self._told, *missing]))


def _few(names: Sequence[str]) -> str:
    """The names; of very many, the first and how many more there are."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - _MOST_NAMES
    return ", ".join(unique) if more <= 0 else f"{', '.join(unique[:_MOST_NAMES])} and {more} more"
