"""Socket files: who they are, where ours may live, and which of them nobody serves any more.

A socket file says little by being there: kubelet leaves its own behind when it is killed, and deletes all others when
it starts. So a socket is known by what `stat` says of it, its facts, and these are compared again and again: a level,
not an edge. An event may get lost or come twice; a fact that differs cannot.

We never touch a file that we did not make: in this directory live kubelet's checkpoint and the sockets of others.
"""

import os
import re
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryFile

from gpustow.errors import KubeletDirectoryError

DEFAULT_DIRECTORY = Path("/var/lib/kubelet/device-plugins")
"""Where kubelet and plugins have their sockets. Fixed in kubelet: it does not follow its --root-dir."""

PREFIX = "gpustow-"
"""What the names of our sockets begin with."""

MAX_PATH_BYTES = 107
"""The longest path that a unix socket can be bound to on Linux (`sun_path` without its final zero)."""

_RANDOM_BITS = 40


@dataclass(frozen=True, slots=True)
class SocketFacts:
    """Which socket file it is: two are the same if their facts are equal.

    The inode alone does not tell, since a file system may give it to the next file at once; hence the time.
    """

    device: int
    inode: int
    changed_ns: int

    @classmethod
    def of(cls, path: Path) -> "SocketFacts | None":
        """The facts of the socket at `path`; None if there is no socket there."""
        try:
            found = path.stat()
        except OSError:
            return None
        if not stat.S_ISSOCK(found.st_mode):
            return None
        return cls(found.st_dev, found.st_ino, found.st_ctime_ns)

    def same_file(self, other: "SocketFacts | None") -> bool:
        """Whether both may be one file whose mode or label was changed; if not, they are surely two."""
        return other is not None and (self.device, self.inode) == (other.device, other.inode)


def check_directory(directory: Path) -> None:
    """Raises KubeletDirectoryError unless sockets can be made in `directory`."""
    if not directory.exists():
        raise KubeletDirectoryError(str(directory), "does not exist")
    if not directory.is_dir():
        raise KubeletDirectoryError(str(directory), "is not a directory")
    if not os.access(directory, os.R_OK):
        raise KubeletDirectoryError(str(directory), "is not readable")
    try:
        # Made and not only asked for: to root the kernel allows more than every file system does.
        with TemporaryFile(dir=directory, prefix=PREFIX):
            pass
    except OSError as error:
        raise KubeletDirectoryError(str(directory), f"is not writable: {error.strerror}") from error
    shortest = directory / f"{PREFIX}-{'0' * (_RANDOM_BITS // 4)}.sock"
    if len(os.fsencode(shortest)) > MAX_PATH_BYTES:
        raise KubeletDirectoryError(str(directory), f"has a path too long for a socket in it ({MAX_PATH_BYTES} bytes)")


def directory_is_dead(directory: Path) -> bool:
    """Whether `directory` was deleted under us, so that nothing can ever be made in it.

    This is what a mount of the directory shows for ever after the host replaced it; a new mount is needed. A path
    that merely leads nowhere may lead somewhere again.
    """
    try:
        return directory.stat().st_nlink == 0
    except OSError:
        return False


def unique_socket(directory: Path, resource: str, random: Random) -> Path:
    """A new path for the socket of `resource` (`nvidia.com/gpu`): `gpustow-gpu-<random>.sock`.

    The random part lets two instances of the plugin overlap during an update. A resource's name that is too long for
    the path is cut.
    """
    ending = f"-{random.getrandbits(_RANDOM_BITS):0{_RANDOM_BITS // 4}x}.sock"
    room = MAX_PATH_BYTES - len(os.fsencode(directory / f"{PREFIX}{ending}"))
    short_name = resource.rpartition("/")[2]
    return directory / f"{PREFIX}{short_name[: max(room, 0)]}{ending}"


def sockets_of(directory: Path, resource: str) -> tuple[Path, ...]:
    """The sockets in `directory` by whose names plugins serve `resource`: ours, and v0.20.0's `nvidia-<name>.sock`."""
    short_name = resource.rpartition("/")[2]
    ours = re.compile(rf"{PREFIX}{re.escape(short_name)}-[0-9a-f]{{{_RANDOM_BITS // 4}}}\.sock")
    theirs = f"nvidia-{short_name}.sock"
    try:
        return tuple(path for path in directory.iterdir() if path.name == theirs or ours.fullmatch(path.name))
    except OSError:
        return ()


def is_served(path: Path) -> bool:
    """Whether somebody accepts connections on the socket at `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(os.fspath(path))
        except BlockingIOError:
            return True  # so many wait that there is no room
        except OSError:
            return False
    return True


def remove_stale_sockets(directory: Path) -> tuple[Path, ...]:
    """Removes those sockets of ours in `directory` that nobody serves, and returns them.

    They are what an instance leaves behind that was killed. Sockets that somebody answers on, sockets of others, and
    whatever cannot be examined stay.
    """
    removed = []
    for path in sorted(directory.glob(f"{PREFIX}*.sock")):
        if SocketFacts.of(path) is not None and _nobody_listens(path):
            with suppress(OSError):
                path.unlink()
                removed.append(path)
    return tuple(removed)


def _nobody_listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
