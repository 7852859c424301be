"""Which other files of the driver a container gets: configuration, firmware, programs, sockets, modules of X11.

The lists are those of the NVIDIA Container Toolkit 1.20. A file appears in the container where it was found; on the
host it is mounted from where the links lead inside the driver's root, because the kernel would follow them by the
host's root. (The toolkit mounts the link's path.)

The one difference in what is mounted: the directory of a host's own MPS daemon, /tmp/nvidia-mps. The toolkit lists it
among files, where a directory is never found; NVIDIA's older runtime mounts it, as containers need it for GPUs in
exclusive mode.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from posixpath import join

from gpustow.injection.cdi.edits import CdiMount
from gpustow.injection.cdi.generator.files import Status, read_text, target
from gpustow.injection.cdi.generator.findings import Findings
from gpustow.injection.cdi.generator.roots import DriverRoot

READ_ONLY = ("ro", "nosuid", "nodev", "rbind", "rprivate")
SOCKET = ("nosuid", "nodev", "rbind", "rprivate", "noexec")

_CONFIGURATIONS = (
    "glvnd/egl_vendor.d/10_nvidia.json",
    "egl/egl_external_platform.d/15_nvidia_gbm.json",
    "egl/egl_external_platform.d/10_nvidia_wayland.json",
    "egl/egl_external_platform.d/09_nvidia_wayland2.json",
    "nvidia/nvoptix.bin",
    "X11/xorg.conf.d/10-nvidia.conf",
    "X11/xorg.conf.d/nvidia-drm-outputclass.conf",
    "OpenCL/vendors/nvidia.icd",
)
_VULKAN_DRIVER = tuple(f"vulkan/icd.d/nvidia_icd{machine}.json" for machine in ("", ".x86_64", ".aarch64"))
_VULKAN = ("vulkan/icd.d/nvidia_layers.json", "vulkan/implicit_layer.d/nvidia_layers.json")
_PROGRAMS = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "nvidia-imex",
    "nvidia-imex-ctl",
)
_SOCKETS = ("nvidia-persistenced/socket", "nvidia-fabricmanager/socket")
_RUN = ("/run", "/var/run")
_MPS = "/tmp/nvidia-mps"  # noqa: S108 - the place is the MPS daemon's choice, and nothing is written there
_CUSTOM_FIRMWARE = "/sys/module/firmware_class/parameters/path"
_KERNEL_RELEASE = "/proc/sys/kernel/osrelease"
_XORG_DIRECTORIES = ("/usr/lib/xorg", "/usr/lib64/xorg", "/usr/X11R6/lib", "/usr/X11R6/lib64")
_XORG_MODULES = tuple(f"modules/{sub}{kind}" for sub in ("", "updates/") for kind in ("drivers", "extensions"))
_XORG_FILES = ("nvidia_drv.so", "libglxserver_nvidia.so.{version}")


@dataclass(frozen=True, slots=True)
class FileSearch:
    """Looks for files below the driver's root, and mounts them."""

    root: DriverRoot
    findings: Findings

    def mounts(self, paths: Iterable[str], options: tuple[str, ...] = READ_ONLY) -> Iterator[CdiMount]:
        """Mounts what the paths lead to at the paths themselves; a path that leads nowhere is passed over."""
        for path in paths:
            real = self.root.driver.resolve(path)
            if real is not None:
                yield CdiMount(self.root.host_path(real), path, options)

    def configurations(self) -> Iterator[CdiMount]:
        """Files that tell other software of the driver's libraries."""
        for name in _CONFIGURATIONS:
            found = [path for path in self._paths(self._data, name) if self._is(_not_directory, path)]
            self._note("configuration files", name, found)
            yield from self.mounts(found)

    def vulkan(self) -> Iterator[CdiMount]:
        """Vulkan's files of the driver; they may lie at the root itself, and are always below /etc in a container."""
        found = {name: self._first((*self._data, "/"), name, _not_directory) for name in (*_VULKAN_DRIVER, *_VULKAN)}
        if not any(found[name] for name in _VULKAN_DRIVER):
            self.findings.missing("Vulkan files", _VULKAN_DRIVER[:1])
        for name in _VULKAN:
            self._note("Vulkan files", name, found[name])
        for name, paths in found.items():
            yield from (replace(mount, container_path=f"/etc/{name}") for mount in self.mounts(paths))

    def firmware(self, version: str) -> Iterator[CdiMount]:
        """The firmware for the GPU's own processor, from the first directory that the kernel would find it in."""
        release = self._word(_KERNEL_RELEASE)
        places = ("/lib/firmware/updates", "/lib/firmware")
        custom = self._word(_CUSTOM_FIRMWARE)
        directories = [custom] if custom.startswith("/") else []
        directories += [join(place, each) for place in places for each in ((release, "") if release else ("",))]
        for directory in directories:
            inside = join(directory, "nvidia", version)
            names = [name for name in self.root.driver.names(inside) if fnmatchcase(name, "gsp*.bin")]
            found = [path for path in self._paths([inside], *names) if self._is(_not_directory, path)]
            if found:
                yield from self.mounts(found)
                return
        self.findings.missing("firmware", [f"nvidia/{version}/gsp*.bin"])

    def programs(self) -> Iterator[CdiMount]:
        """The driver's programs."""
        for name in _PROGRAMS:
            found = self._first(self.root.programs, name, lambda status: status.is_executable)
            self._note("programs", name, found)
            yield from self.mounts(found)

    def sockets(self) -> Iterator[CdiMount]:
        """The sockets of the driver's daemons."""
        for name in _SOCKETS:
            found = self._first(_RUN, name, _not_directory)
            self._note("sockets", name, found)
            yield from self.mounts(found, SOCKET)
        if self._is(lambda status: status.is_directory, _MPS):
            yield from self.mounts([_MPS], SOCKET)
        else:
            self.findings.missing("sockets", [_MPS])

    def xorg(self, version: str, library_directories: Iterable[str]) -> Iterator[CdiMount]:
        """The modules of the X server."""
        directories = tuple(library_directories)
        near = [join(directory, "nvidia/xorg") for directory in directories]
        homes = [*near, *(join(directory, "xorg") for directory in directories), *_XORG_DIRECTORIES]
        places = [*near, *(join(home, modules) for home in homes for modules in _XORG_MODULES)]
        for pattern in _XORG_FILES:
            name = pattern.format(version=version)
            found = self._first(places, name, _not_directory)
            self._note("X11 modules", name, found)
            yield from self.mounts(found)

    @property
    def _data(self) -> tuple[str, ...]:
        return ("/etc", *self.root.data)

    def _first(self, directories: Iterable[str], name: str, fits: Callable[[Status], bool]) -> list[str]:
        """The first path that is there, if any."""
        return [path for path in self._paths(directories, name) if self._is(fits, path)][:1]

    def _paths(self, directories: Iterable[str], *names: str) -> Iterator[str]:
        return (join(directory, name) for directory in directories for name in names)

    def _is(self, fits: Callable[[Status], bool], path: str) -> bool:
        status = target(self.root.driver, path)
        return status is not None and fits(status)

    def _note(self, what: str, name: str, found: list[str]) -> None:
        if not found:
            self.findings.missing(what, [name])

    def _word(self, path: str) -> str:
        """What stands in one of the kernel's files, empty if it cannot be read."""
        return read_text(self.root.system, path).strip()


def _not_directory(status: Status) -> bool:
    return not status.is_directory
