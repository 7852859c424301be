"""What can be seen from outside, at no cost, that the configuration file or the node is another than it was.

Files are looked at every few seconds, by `stat` and by the names in directories. There is no inotify: a node can run
out of it, it sees nothing through some mounts, and an event can be lost. A ConfigMap that is edited swaps a symbolic
link two levels above the file, and what `stat` says of the file changes with it.

A change counts once it has been the same for two looks, so that a burst of changes is acted upon once. A file whose
bytes are the same is the same, whatever else has changed about it.

Limits: in a container /dev and /proc show what the container was started with, unless the host's are mounted. There the
rescan at intervals finds what is seen here sooner.
"""

import hashlib
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from gpustow.config import Config, LoadedConfig

_TRACES = (
    "dev/nvidia*",
    "dev/nvidia-caps/*",
    "proc/driver/nvidia/gpus/*",
    "proc/driver/nvidia/capabilities/gpu*/mig/gi*",
    "proc/driver/nvidia/capabilities/gpu*/mig/gi*/ci*",
)
"""Where GPUs and MIG instances leave traces: device nodes, and the driver's own list of them."""


def device_traces(roots: Sequence[Path]) -> frozenset[tuple[str, int]]:
    """The traces of GPUs and MIG devices below some roots: each path with its inode, which a new file has anew."""
    return frozenset(
        trace for root in dict.fromkeys(roots) for pattern in _TRACES for trace in _matches(os.fspath(root), pattern)
    )


def _matches(folder: str, pattern: str) -> Iterator[tuple[str, int]]:
    """The paths below a folder that match, with their inodes; none where the folder cannot be read."""
    first, _, rest = pattern.partition("/")
    if rest and "*" not in first:
        yield from _matches(os.path.join(folder, first), rest)  # noqa: PTH118 - every two seconds, a hundred times
        return
    try:
        with os.scandir(folder) as entries:
            found = [(entry.path, entry.inode()) for entry in entries if fnmatchcase(entry.name, first)]
    except OSError:
        return
    for path, inode in found:
        if rest:
            yield from _matches(path, rest)
        else:
            yield path, inode


_NO_DIGEST = ""
"""Of what no file has."""


class Change:
    """Notices that something is another than it was, once it has rested; nothing at the first look."""

    def __init__(self) -> None:
        self._known: Hashable | None = None
        self._last: Hashable | None = None
        self._begun = False

    def look(self, now: Hashable) -> bool:
        """Whether this is another than what was known, and the same as at the last look; then it is known."""
        if not self._begun:
            self._begun, self._known, self._last = True, now, now
            return False
        rested = now == self._last
        self._last = now
        if not rested or now == self._known:
            return False
        self._known = now
        return True


class ConfigWatch:
    """Notices that the content of the configuration file is another; `path` is empty if there is none.

    `loaded` tells of the content that was loaded last, so that nothing is noticed that is known.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._digest: str | None = None
        self._was_there = True
        self._identity = Change()
        self._identity.look("not looked at yet")

    def loaded(self, sha256: str) -> None:
        """The configuration was read from a file with this content (SHA-256 of its text, as `ConfigFile` has it)."""
        self._digest = sha256

    def refused(self) -> None:
        """A content was read and refused: whatever the file has next is other than that."""
        self._digest = _NO_DIGEST

    def look(self) -> str:
        """What is to be said of the file: it has another content than before, or is gone, or is there again.

        Empty if it is as it was.
        """
        identity = _identity(self.path) if self.path else None
        if not self.path or not self._identity.look(identity):
            return ""
        digest, was_there = _digest(self.path), self._was_there
        self._was_there = identity is not None
        if digest == self._digest:
            return ""
        self._digest = digest
        news = _news(is_there=identity is not None, was_there=was_there, can_be_read=digest is not None)
        return f"the configuration file {self.path} {news}"


class Lookout:
    """Looks at the configuration file, and at `traces` of the node."""

    def __init__(self, traces: Callable[[Config], Hashable]) -> None:
        self._traces = traces
        self._file = ConfigWatch("")
        self._node = Change()

    def follow(self, loaded: LoadedConfig) -> None:
        """This configuration is in force from now on."""
        if loaded.config.config_file != self._file.path:
            self._file = ConfigWatch(loaded.config.config_file)
        if loaded.file is not None:
            self._file.loaded(loaded.file.sha256)

    def refused(self) -> None:
        """A configuration was refused; what takes its place is to be tried, be it the one that is in force."""
        self._file.refused()

    def sees_another_file(self) -> str:
        """What is to be said of the configuration file if it is another, or gone, since this was last asked."""
        return self._file.look()

    def sees_another_node(self, config: Config) -> bool:
        """Whether the node shows that it has changed, since this was last asked."""
        return self._node.look(self._traces(config))


def _identity(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _news(*, is_there: bool, was_there: bool, can_be_read: bool) -> str:
    if not is_there:
        return "is gone"
    if not can_be_read:
        return "cannot be read any more"
    return "has another content" if was_there else "is there again"


def _digest(path: str) -> str | None:
    """The SHA-256 of the file's text, with line ends as Python reads them; None if it cannot be read."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    return hashlib.sha256(content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")).hexdigest()
