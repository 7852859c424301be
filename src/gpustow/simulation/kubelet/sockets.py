"""The sockets in kubelet's directories: what is wiped at a start, what is served, what a killed kubelet leaves behind.

At its start kubelet removes every socket that lies directly in the plugin directory, and nothing else. A kubelet that
is stopped takes its own sockets with it; one that is killed leaves files that nobody answers on.
"""

import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import grpc

from gpustow.errors import KubeletDirectoryError
from gpustow.kubelet.protocol.services import unix_address

SOCKET = "kubelet.sock"
LONGEST_PATH = 107
"""Bytes that the path of a unix socket may have on Linux."""


@dataclass(frozen=True, slots=True)
class Sockets:
    """Where things are below kubelet's directory (/var/lib/kubelet)."""

    root: Path

    @property
    def plugin_directory(self) -> Path:
        """Where plugins put their sockets."""
        return self.root / "device-plugins"

    @property
    def registration(self) -> Path:
        """Where plugins register."""
        return self.plugin_directory / SOCKET

    @property
    def pod_resources(self) -> Path:
        """Where PodResources is served."""
        return self.root / "pod-resources" / SOCKET

    def prepare(self) -> None:
        """Makes the directories and removes the sockets of plugins; KubeletDirectoryError if that cannot be."""
        for path in (self.registration, self.pod_resources):
            if len(str(path).encode()) > LONGEST_PATH:
                reason = f"is too long: the path of a unix socket has at most {LONGEST_PATH} bytes"
                raise KubeletDirectoryError(str(path.parent), reason)
            try:
                path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            except OSError as error:
                raise KubeletDirectoryError(str(path.parent), f"cannot be made: {error.strerror}") from error
        for path in self.plugin_directory.iterdir():
            with suppress(FileNotFoundError):  # its plugin may have removed it meanwhile
                if stat.S_ISSOCK(path.lstat().st_mode):
                    path.unlink()

    def leave_dead(self) -> None:
        """Puts sockets in place that refuse connections, as a killed kubelet leaves them."""
        for path in (self.registration, self.pod_resources):
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(path))


Server = grpc.aio.Server


async def serve(handler: grpc.GenericRpcHandler, path: Path) -> Server:
    """A server on a unix socket; a dead socket in its place is taken over.

    Raises KubeletDirectoryError if something else is in its place, or the directory cannot be written to.
    """
    server = grpc.aio.server(handlers=[handler])
    try:
        server.add_insecure_port(unix_address(path))
    except RuntimeError as error:
        raise KubeletDirectoryError(str(path.parent), f"does not take the socket {path.name}: {error}") from error
    await server.start()
    return server
