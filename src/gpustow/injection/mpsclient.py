"""What a container needs as a client of the MPS control daemon: its pipes, and the memory that both share.

Both sides call the directory of a resource `/mps/<resource>`. The shared memory takes the place of the container's own
`/dev/shm`, because that is where MPS looks for it.

Only resources that are shared by MPS have a daemon. v0.20.0 points the containers of every resource to one as soon as
MPS is used at all; those of unshared resources then wait for a daemon that nobody starts.
"""

import posixpath
from collections.abc import Mapping

from gpustow.config import Config
from gpustow.injection.edits import Mount
from gpustow.resources.device import Resource, Sharing

PIPE_DIRECTORY = "CUDA_MPS_PIPE_DIRECTORY"
"""Where CUDA finds the pipes of its MPS control daemon."""

MPS_DIRECTORY = "/mps"
"""What the host's directory of the MPS control daemons is in a container."""

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the container's, and what is mounted there is the daemon's own


def mps_envs(resource: Resource) -> Mapping[str, str]:
    """The variables for a client of the resource's daemon; none if it has no daemon."""
    return {PIPE_DIRECTORY: _pipes(MPS_DIRECTORY, resource)} if resource.sharing is Sharing.MPS else {}


def mps_mounts(resource: Resource, config: Config) -> tuple[Mount, ...]:
    """The mounts for a client of the resource's daemon; none if it has no daemon."""
    if resource.sharing is not Sharing.MPS:
        return ()
    return (
        Mount(_pipes(MPS_DIRECTORY, resource), _pipes(config.mps_root, resource)),
        Mount(_SHARED_MEMORY, posixpath.join(config.mps_root, "shm")),
    )


def _pipes(root: str, resource: Resource) -> str:
    return posixpath.join(root, resource.name, "pipe")
