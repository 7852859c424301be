"""A tree of files as a process would see it that has the tree as its root: where the driver's files are looked for.

A driver's root is often not ours: it is a directory that has a system of its own in it, whose links are written for
that system. `/usr/lib/libcuda.so.1 -> /etc/alternatives/libcuda` there means the `/etc` of the same tree. So links are
followed here by hand, one part of a path after the other, and no link leads out of the tree: `..` at its top stays
there. All paths are absolute in the tree, which makes them those of the container as well.

Limits: whoever can change the tree while it is read can still point the kernel elsewhere between two looks. What is
read then is a name or a library's header; the paths that come out are those of the tree all the same. Names that are
not UTF-8 count as not there, because no JSON file can hold them.
"""

import os
import stat
from collections import deque
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import dirname
from typing import BinaryIO, Protocol

_MOST_LINKS = 40
"""How many links one path may lead through, as in Linux (path_resolution(7)): more are a loop."""

_LONGEST_TEXT = 1 << 20

_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Status:
    """What is at a path: `mode` with the bits of its kind, as in stat(2); `modified` in seconds since 1970."""

    mode: int
    gid: int = 0
    modified: float = 0.0

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.mode)

    @property
    def is_executable(self) -> bool:
        """Whether it is a program that somebody may run."""
        return self.is_file and bool(self.mode & 0o111)

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)

    @property
    def is_character_device(self) -> bool:
        """Whether it is a device node such as those of GPUs."""
        return stat.S_ISCHR(self.mode)


class Files(Protocol):
    """A tree of files. What cannot be read counts as not there."""

    def resolve(self, path: str) -> str | None:
        """Where `path` leads when all links are followed; None if nothing is there."""
        ...

    def status(self, path: str) -> Status | None:
        """What is at `path` itself, also if that is a link; None if nothing is there."""
        ...

    def link(self, path: str) -> str | None:
        """The text of the symbolic link at `path`; None if there is none."""
        ...

    def names(self, directory: str) -> tuple[str, ...]:
        """The names in a directory, sorted; none if it is not there."""
        ...

    def open(self, path: str) -> BinaryIO | None:
        """The regular file to which `path` leads, for reading; None if there is none."""
        ...


class RootFiles:
    """The files below the directory `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def resolve(self, path: str) -> str | None:
        """As in Files."""
        return self._walk(path, follow_last=True)

    def status(self, path: str) -> Status | None:
        """As in Files."""
        there = self._walk(path, follow_last=False)
        return None if there is None else self._look(there)

    def link(self, path: str) -> str | None:
        """As in Files."""
        there = self._walk(path, follow_last=False)
        return None if there is None else self._link(there)

    def names(self, directory: str) -> tuple[str, ...]:
        """As in Files."""
        there = self._walk(directory, follow_last=True)
        if there is None:
            return ()
        try:
            found = [entry.name for entry in self._outside(there).iterdir()]
        except OSError:
            return ()
        return tuple(sorted(name for name in found if _is_unicode(name)))

    def open(self, path: str) -> BinaryIO | None:
        """As in Files."""
        there = self._walk(path, follow_last=True)
        status = None if there is None else self._look(there)
        if there is None or status is None or not status.is_file:
            return None
        try:
            return self._outside(there).open("rb")
        except OSError:
            return None

    def _walk(self, path: str, *, follow_last: bool) -> str | None:
        """The path without links in it, except perhaps as its last part; None if nothing is there, or for a loop."""
        pending = deque(_parts(path))
        done = ""
        links = 0
        while pending:
            part = pending.popleft()
            here = dirname(done) if part == ".." else f"{done.rstrip('/')}/{part}"
            status = self._look(here)
            if status is None or (pending and not status.is_directory and not status.is_link):
                return None
            if not status.is_link or not (pending or follow_last):
                done = here
                continue
            text = self._link(here) or ""
            links += 1
            if not text or links > _MOST_LINKS:
                return None
            done = "" if text.startswith("/") else done
            pending.extendleft(reversed(_parts(text)))
        return done or "/"

    def _link(self, path: str) -> str | None:
        try:
            return os.fspath(self._outside(path).readlink())
        except OSError:
            return None

    def _look(self, path: str) -> Status | None:
        """What is at a path without links before its last part; None for one that no text can hold."""
        try:
            path.encode()
            found = self._outside(path).lstat() if path.strip("/") else self._root.stat()
        except (OSError, ValueError):  # ValueError: not UTF-8, or a zero byte
            return None
        return Status(found.st_mode, found.st_gid, found.st_mtime)

    def _outside(self, path: str) -> Path:
        """The path by which the kernel knows a path without links."""
        return self._root / path.lstrip("/")


class SimulatedFiles:
    """The files of a simulated node: every device node that is asked for, open to everybody, and nothing else."""

    def resolve(self, path: str) -> str | None:
        """As in Files."""
        return path if path.startswith("/dev/") else None

    def status(self, path: str) -> Status | None:
        """As in Files."""
        return Status(stat.S_IFCHR | 0o666) if path.startswith("/dev/") else None

    def link(self, path: str) -> str | None:  # noqa: ARG002 - there are no links
        """As in Files."""
        return None

    def names(self, directory: str) -> tuple[str, ...]:  # noqa: ARG002 - what nobody asks for is not there
        """As in Files."""
        return ()

    def open(self, path: str) -> BinaryIO | None:  # noqa: ARG002 - a device node is no file
        """As in Files."""
        return None


def target(files: Files, path: str) -> Status | None:
    """What `path` leads to when all links are followed."""
    real = files.resolve(path)
    return None if real is None else files.status(real)


def read_text(files: Files, path: str) -> str:
    """The text of a small file; empty if there is none, cut off after a megabyte."""
    file = files.open(path)
    if file is None:
        return ""
    with file:
        try:
            return file.read(_LONGEST_TEXT).decode("utf-8", "replace")
        except OSError:
            return ""


def matches(files: Files, pattern: str) -> tuple[str, ...]:
    """The paths that fit a pattern with `*`, `?` and `[]` in any of its parts, sorted part by part."""
    found = [""]
    for part in _parts(pattern):
        if _WILD.isdisjoint(part):
            found = [f"{directory}/{part}" for directory in found]
        else:
            found = [
                f"{directory}/{name}"
                for directory in found
                for name in files.names(directory or "/")
                if fnmatchcase(name, part)
            ]
    return tuple(path for path in found if files.status(path) is not None)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
