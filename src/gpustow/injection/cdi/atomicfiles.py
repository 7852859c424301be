"""Files of one directory, each changed as a whole or not at all, whoever reads and whenever we are killed.

A file is written under another name in the same directory, gets its permissions, is brought to the disk, and only then
takes the place of the old one. The same directory is needed for more than that: the watcher of the CDI library hears of
a file that is renamed there, and not of one that comes from elsewhere.

The directory is locked while it is open, and the lock goes with the process that holds it. So a file with a temporary
name of ours that somebody finds who has the lock is what a killed writer left, and is removed.
"""

import errno
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gpustow.injection.cdi.filecalls import FileCalls

MODE = 0o644
"""The permissions of every file: the runtime may be another user."""

LOCK_TRIES = 50
LOCK_PAUSE = 0.1
"""How often, and how many seconds apart, we try for the lock. No writer takes that long."""

_SUFFIX = ".tmp"
_NO_FILE = {errno.ELOOP, errno.ENXIO}
"""What opening a symbolic link and a socket gives."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What files are written with. `token` gives another text each time, `pause` waits some seconds."""

    calls: FileCalls = FileCalls()  # noqa: RUF009 - it has no state
    token: Callable[[], str] = secrets.token_hex
    pause: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Found:
    """What is there under a name: the text, None if it is no regular file or no text; and whether all may read it."""

    text: str | None
    is_readable: bool


class AtomicFiles:
    """An open and locked directory; made by `opened`. `prefix` begins our temporary names. All raise OSError."""

    def __init__(self, directory: int, prefix: str, surroundings: Surroundings) -> None:
        self._directory = directory
        self._prefix = prefix
        self._calls = surroundings.calls
        self._token = surroundings.token

    def read(self, name: str) -> Found | None:
        """What is there, None if nothing is."""
        try:
            descriptor = self._calls.open_file(name, self._directory)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in _NO_FILE:
                raise
            return Found(None, is_readable=False)
        with self._closing(descriptor):
            mode = self._calls.mode(descriptor)
            if not stat.S_ISREG(mode):
                return Found(None, is_readable=False)
            data = b"".join(iter(lambda: self._calls.read(descriptor), b""))
        try:
            return Found(data.decode(), stat.S_IMODE(mode) == MODE)
        except UnicodeDecodeError:
            return Found(None, is_readable=False)

    def write(self, name: str, text: str) -> None:
        """Puts a file with this text there, in place of what is there."""
        temporary = f"{self._prefix}{self._token()}{_SUFFIX}"
        descriptor = self._calls.create(temporary, self._directory)
        try:
            with self._closing(descriptor):
                rest = text.encode()
                while rest:
                    rest = rest[self._calls.write(descriptor, rest) :]
                self._calls.set_mode(descriptor, MODE)
                self._calls.sync(descriptor)
            self._calls.rename(temporary, name, self._directory)
        except BaseException:
            with suppress(OSError):
                self._calls.remove(temporary, self._directory)
            raise

    def remove(self, name: str) -> None:
        """Removes a file."""
        self._calls.remove(name, self._directory)

    def sync(self) -> None:
        """Waits until all that was done is on the disk."""
        self._calls.sync(self._directory)

    def sweep(self) -> None:
        """Removes what killed writers left, as far as possible."""
        for name in self._calls.names(self._directory):
            if name.startswith(self._prefix) and name.endswith(_SUFFIX):
                with suppress(OSError):
                    self._calls.remove(name, self._directory)

    @contextmanager
    def _closing(self, descriptor: int) -> Iterator[None]:
        try:
            yield
        finally:
            self._calls.close(descriptor)


@contextmanager
def opened(path: Path, prefix: str, surroundings: Surroundings) -> Iterator[AtomicFiles]:
    """The directory at `path`, locked and swept, until the end of the block. Raises OSError."""
    calls = surroundings.calls
    directory = calls.open_directory(path)
    try:
        _lock(directory, surroundings)
        files = AtomicFiles(directory, prefix, surroundings)
        files.sweep()
        yield files
    finally:
        calls.close(directory)


def _lock(directory: int, surroundings: Surroundings) -> None:
    for _ in range(LOCK_TRIES):
        with suppress(BlockingIOError):
            return surroundings.calls.lock(directory)
        surroundings.pause(LOCK_PAUSE)
    return surroundings.calls.lock(directory)
