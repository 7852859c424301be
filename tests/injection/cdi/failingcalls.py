"""A file system that fails, or a process that is killed, at the call that a test says."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpustow.injection.cdi.filecalls import FileCalls

CALLS = tuple(name for name in vars(FileCalls) if not name.startswith("_"))


class Killed(BaseException):
    """The process is gone; it makes no calls any more, and its descriptors and locks are the system's to close."""


class FailingCalls(FileCalls):
    """Counts the calls, and fails the one with the number `at`: with `error`, or killed if that is None.

    `wrote` is how many bytes of a write that fails come to be in the file.
    """

    def __init__(self, at: int | None = None, error: OSError | None = None, wrote: int = 0) -> None:
        self.made: list[str] = []
        self._at = at
        self._error = error
        self._wrote = wrote
        self._is_dead = False
        self._open: set[int] = set()

    def __getattribute__(self, name: str) -> Any:
        """Each call of a FileCalls is counted first."""
        real = super().__getattribute__(name)
        return self._counted(name, real) if name in CALLS else real

    def sync(self, descriptor: int) -> None:
        """Takes no time; whether the disk is waited for cannot be seen by a test."""

    def bury(self) -> None:
        """Does what the system does for a process that was killed."""
        for descriptor in self._open:
            FileCalls().close(descriptor)
        self._open.clear()

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if self._is_dead:
                raise Killed(name)
            self.made.append(name)
            if len(self.made) - 1 != self._at:
                return self._noted(name, arguments, real(*arguments))
            if name == "write":
                real(arguments[0], arguments[1][: self._wrote])
            if name == "close":  # closed it is, whatever close says
                self._noted(name, arguments, real(*arguments))
            if self._error is not None:
                raise self._error
            self._is_dead = True
            raise Killed(name)

        return call

    def _noted(self, name: str, arguments: tuple[Any, ...], result: Any) -> Any:
        if name in {"open_directory", "open_file", "create"}:
            self._open.add(result)
        if name == "close":
            self._open.discard(arguments[0])
        return result


def numbers_of_calls(work: Callable[[FailingCalls], object]) -> Iterator[int]:
    """A number for each call that the work makes when nothing fails."""
    calls = FailingCalls()
    work(calls)
    yield from range(len(calls.made))


def contents(directory: Path) -> dict[str, str]:
    """The files in a directory, with their text."""
    return {path.name: path.read_text(encoding="utf-8") for path in directory.iterdir()}
