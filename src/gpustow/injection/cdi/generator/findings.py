"""What was looked for and not found, in a few lines for the log: names are gathered by what they are names of.

Much of what is missing is no fault. A server's driver has no X11 modules, and a driver of today no library of ten years
ago. But when a container fails for the want of a library, these lines say that it was not there to be given. What
somebody should mend is a warning.
"""

from collections.abc import Iterable, Sequence

_MOST_NAMES = 16


class Findings:
    """Gathers what is missing below `place`, the root that is searched, as an operator knows it."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._missing: dict[str, list[str]] = {}
        self._warnings: list[str] = []

    def missing(self, what: str, names: Iterable[str]) -> None:
        """Notes that these are not there; `what` says in the plural what they are."""
        for name in names:
            self._missing.setdefault(what, []).append(name)

    def warn(self, sentence: str) -> None:
        """Notes what somebody should mend."""
        self._warnings.append(sentence)

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is missing, a sentence for each kind."""
        return tuple(f"not found below {self._place}: {what} {_few(names)}" for what, names in self._missing.items())

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, the same one once."""
        return tuple(dict.fromkeys(self._warnings))


def _few(names: Sequence[str]) -> str:
    """The names; of very many, the first and how many more there are."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - _MOST_NAMES
    return ", ".join(unique) if more <= 0 else f"{', '.join(unique[:_MOST_NAMES])} and {more} more"
