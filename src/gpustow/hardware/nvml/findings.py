"""What went wrong while reading, gathered, so that each kind of trouble is told once however many GPUs have it."""

from gpustow.hardware.faults import lost_note


class Findings:
    """Texts about subjects such as `GPU 2` or `MIG device 2:1`, and the GPUs that are lost."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._lost: set[int] = set()
        self._left_out: set[int] = set()

    def add(self, subject: str, text: str) -> None:
        """Something about one subject; the same text about others becomes one note with this."""
        subjects = self._texts.setdefault(text, [])
        if subject not in subjects:
            subjects.append(subject)

    def lost(self, gpu: int) -> None:
        """The GPU with this index has fallen off the bus, or needs a reset."""
        self._lost.add(gpu)

    def left_out(self, gpu: int) -> None:
        """The GPU with this index is left out of the node, for whatever reason."""
        self._left_out.add(gpu)

    @property
    def unreadable(self) -> tuple[int, ...]:
        """The GPUs that are left out, by index."""
        return tuple(sorted(self._left_out))

    def notes(self) -> tuple[str, ...]:
        """One sentence a kind of trouble, in the order in which they were met; lost GPUs first."""
        told = (f"{', '.join(subjects)}: {text}" for text, subjects in self._texts.items())
        return (*(lost_note(gpu) for gpu in sorted(self._lost)), *told)
