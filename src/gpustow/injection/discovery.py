"""The discovery roots: where we look for the driver's files and for device nodes; and where on the host they lie.

The driver's root of the host is mounted in our container at a path of its own (driver-root-ctr-path). Where it is not,
our own file system is searched: so it is outside of a container, and where NVIDIA's runtime put the driver into ours.
Device nodes are searched below the driver's root if it has `dev`, else in our own file system. (k8s-device-plugin
v0.20.0 has the same rules.) A directory that cannot be looked at counts as not there.

What is found is called by its path below the root, which is that in a container. On the host it lies below the driver
root or dev root of the configuration.
"""

import os
import posixpath
from dataclasses import dataclass
from pathlib import Path

from gpustow.config import Config


@dataclass(frozen=True, slots=True)
class DiscoveryRoots:
    """The directories `driver` and `devices`, and whether a driver's root is mounted at all."""

    driver: Path
    devices: Path
    is_mounted: bool

    @classmethod
    def of(cls, config: Config, root: Path = Path("/")) -> "DiscoveryRoots":
        """Those of this machine. `root` is where our own file system begins."""
        mounted = root / config.driver_root_ctr_path.lstrip("/")
        is_mounted = is_directory(mounted)
        driver = mounted if is_mounted else root
        return cls(driver, driver if is_directory(driver / "dev") else root, is_mounted)


def is_directory(path: Path) -> bool:
    """Whether there is a directory that we can look at."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where a mount is stale or closed to us


def host_path(root: str, path: str) -> str:
    """Where on the host the `path` of a container lies, below `root`, which is taken as absolute."""
    return posixpath.normpath(f"///{root}/{path}")  # three slashes, because POSIX lets two alone mean something else
