"""The calls to the file system of which publishing consists, each by itself, so that a test can let each of them fail.

Names are relative to an open directory: whatever happens to the path meanwhile, all calls are about one directory. No
symbolic link is followed.
"""

import fcntl
import os
from pathlib import Path


class FileCalls:
    """The real ones. All raise OSError."""

    def make_directory(self, path: Path) -> None:
        """Makes the directory and those above it, where they are missing."""
        path.mkdir(mode=0o755, parents=True, exist_ok=True)

    def open_directory(self, path: Path) -> int:
        """A descriptor of the directory."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def lock(self, descriptor: int) -> None:
        """Locks the directory until the descriptor is closed. Raises BlockingIOError if another one has the lock."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def names(self, directory: int) -> list[str]:
        """The names of the files in it."""
        return os.listdir(directory)

    def open_file(self, name: str, directory: int) -> int:
        """A descriptor for reading; does not wait, whatever kind of file it is."""
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)

    def mode(self, descriptor: int) -> int:
        """Kind and permissions of the file, as `stat` has them."""
        return os.fstat(descriptor).st_mode

    def read(self, descriptor: int) -> bytes:
        """Some of what comes next, nothing at the end."""
        return os.read(descriptor, 1 << 20)

    def create(self, name: str, directory: int) -> int:
        """A descriptor for writing a new file, readable for us alone."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o600, dir_fd=directory)

    def write(self, descriptor: int, data: bytes) -> int:
        """Writes the beginning of `data`, and says how much."""
        return os.write(descriptor, data)

    def set_mode(self, descriptor: int, mode: int) -> None:
        """Sets the permissions of the file."""
        os.fchmod(descriptor, mode)

    def sync(self, descriptor: int) -> None:
        """Waits until the file or directory is on the disk."""
        os.fsync(descriptor)

    def rename(self, old: str, new: str, directory: int) -> None:
        """Gives the file its new name, in place of one that had it."""
        os.replace(old, new, src_dir_fd=directory, dst_dir_fd=directory)

    def remove(self, name: str, directory: int) -> None:
        """Removes a file."""
        os.unlink(name, dir_fd=directory)

    def close(self, descriptor: int) -> None:
        """Closes a file or directory, which lets go of its lock."""
        os.close(descriptor)
