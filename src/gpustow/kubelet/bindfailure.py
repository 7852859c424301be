"""Why a socket cannot be bound, and what to do about it.

grpc says only that it could not bind. The reason is found by binding a plain socket at the same path after it failed:
the file system then gives the error that grpc met, unless what was wrong has passed.
"""

import errno
import os
import socket
from dataclasses import dataclass
from pathlib import Path

_ADVICE = {
    errno.EACCES: "Look at the directory's owner and mode, the user of this process, and SELinux or AppArmor.",
    errno.EPERM: "Look at SELinux or AppArmor, and at what the container may do.",
    errno.EROFS: "Mount the directory without readOnly.",
    errno.ENOENT: "The directory is gone. Mount the host's /var/lib/kubelet/device-plugins there.",
    errno.ENOTDIR: "Part of the path is no directory. Look at --kubelet-socket and at the mount.",
    errno.ENOSPC: "The file system is full. Make room on it.",
    errno.EDQUOT: "The file system's quota is used up. Make room on it.",
    errno.EADDRINUSE: "Something lies there already. Remove it if it is not in use.",
    errno.EMFILE: "This process has too many files open. Raise its limit.",
    errno.ENFILE: "The machine has too many files open.",
}


@dataclass(frozen=True, slots=True)
class BindFailure:
    """The reason, with the name of the error if it has one, and what the operator can do."""

    reason: str
    advice: str | None


def bind_failure(path: Path) -> BindFailure | None:
    """Why no socket can be bound at `path`; None if one can. Leaves nothing behind."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.bind(os.fspath(path))
            path.unlink(missing_ok=True)
    except OSError as error:
        return _meaning(error)
    return None


def _meaning(error: OSError) -> BindFailure:
    if error.errno is None:
        return BindFailure(str(error), "Mount the directory at a shorter path.")  # too long for a socket's address
    name = errno.errorcode.get(error.errno, str(error.errno))
    return BindFailure(f"{error.strerror} ({name})", _ADVICE.get(error.errno))
