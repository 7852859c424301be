"""Where the driver is: as we see it, and as the host does.

The driver's files and the device nodes each have two roots. The one that we search is what is mounted into our own
container; the other is the same directory on the host, by which a container runtime finds it. Every path found is a
path below its root, so that the host's path is the host's root before it and the container's path is the bare one.
Nothing is replaced in a text: `/driver` can never be taken for the beginning of `/driver-backup`.

Where to search is told by `discovery`. The host's root of device nodes is always the dev root, as it is where Allocate
passes them itself; in k8s-device-plugin v0.20.0 it is the host's driver root for nodes that were found below the
driver's root, whatever nvidiaDevRoot says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpustow.config import Config
from gpustow.injection.cdi.generator.files import Files, RootFiles, SimulatedFiles
from gpustow.injection.discovery import DiscoveryRoots, host_path

PROGRAM_DIRECTORIES = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
DATA_DIRECTORIES = ("/usr/local/share", "/usr/share")
"""Where data is if XDG_DATA_DIRS does not say (XDG Base Directory Specification)."""


@dataclass(frozen=True, slots=True)
class DriverRoot:
    """The roots of the driver and of its device nodes.

    `driver` and `devices` are searched, `system` has the machine's own /sys and /proc. `driver_root` and `dev_root` are
    the host's paths of the first two, `seen_at` is our own of the first. `programs` and `data` are directories below
    it. `warnings` are sentences for the log. On a `simulated` node all device nodes are there, and no files of a
    driver.
    """

    driver: Files
    devices: Files
    system: Files
    driver_root: str = "/"
    dev_root: str = "/"
    programs: tuple[str, ...] = PROGRAM_DIRECTORIES
    data: tuple[str, ...] = DATA_DIRECTORIES
    seen_at: str = "/"
    warnings: tuple[str, ...] = ()
    simulated: bool = False

    @classmethod
    def of(cls, config: Config, root: Path = Path("/"), environ: Mapping[str, str] | None = None) -> "DriverRoot":
        """The roots of this machine.

        `root` is where our own file system begins. PATH and XDG_DATA_DIRS of `environ` name further directories of the
        driver's root, as they do for the NVIDIA Container Toolkit.
        """
        environ = environ or {}
        roots = DiscoveryRoots.of(config, root)
        return cls(
            RootFiles(roots.driver),
            RootFiles(roots.devices),
            RootFiles(root),
            config.driver_root,
            config.dev_root,
            _unique(*_directories(environ.get("PATH", "")), *PROGRAM_DIRECTORIES),
            _directories(environ.get("XDG_DATA_DIRS", "")) or DATA_DIRECTORIES,
            str(roots.driver),
            _warnings(config, roots),
        )

    @classmethod
    def of_simulated(cls, config: Config) -> "DriverRoot":
        """The roots of a simulated node under this configuration."""
        files = SimulatedFiles()
        return cls(files, files, files, config.driver_root, config.dev_root, simulated=True)

    def host_path(self, path: str) -> str:
        """The host's path of a file below the driver's root."""
        return host_path(self.driver_root, path)

    def device_host_path(self, path: str) -> str:
        """The host's path of a device node below the dev root."""
        return host_path(self.dev_root, path)


def _warnings(config: Config, roots: DiscoveryRoots) -> tuple[str, ...]:
    if roots.is_mounted or not config.driver_root.strip("/"):
        return ()
    told = (
        f"{config.driver_root_ctr_path} is not there, so that the files of the driver root {config.driver_root} are "
        "looked for in our own file system; mount it there, or set --driver-root-ctr-path"
    )
    return (told,)


def _directories(text: str) -> tuple[str, ...]:
    """The absolute directories of a list that is joined by colons."""
    return tuple(entry.rstrip("/") or "/" for entry in text.split(":") if entry.startswith("/"))


def _unique(*directories: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(directories))
