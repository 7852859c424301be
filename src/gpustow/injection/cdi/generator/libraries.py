"""Which libraries of the driver a container gets, and where they are.

The driver's libraries carry its version in their names, so they are found by that and not by a list that each release
would change. Where one of them is, they all are taken. With them go a few libraries with numbers of their own.

The places are those of the NVIDIA Container Toolkit 1.20: directories first, and where none of them has a match the
loader's cache. A library is mounted where it really is; its other names are links that a hook makes.

Where the version found is not that of the loaded driver, nothing is given: user space and kernel would not talk to each
other, and the operator is told why. The toolkit fails there, which would cost the node its GPUs.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from posixpath import basename, dirname, join

from gpustow.injection.cdi.generator.files import Files
from gpustow.injection.cdi.generator.findings import Findings
from gpustow.injection.cdi.generator.ldcache import LARGEST, CachedLibrary, MalformedLdCache, parse_ld_cache

_LD_CACHE = "/etc/ld.so.cache"

_MACHINES = ("x86_64-linux-gnu", "aarch64-linux-gnu")
LIBRARY_DIRECTORIES = (
    "/",
    "/usr/lib64",
    *(f"/usr/lib/{machine}{sub}" for sub in ("", "/nvidia/current") for machine in _MACHINES),
    "/lib64",
    *(f"/lib/{machine}{sub}" for sub in ("", "/nvidia/current") for machine in _MACHINES),
)

_TELLING = ("libcuda.so.*.*", "libnvidia-ml.so.*.*")
"""The libraries whose file names tell the driver's version."""

_LIBRARY = ("lib?*.so", "lib?*.so.*")
_OWN_NUMBERS = ("libnvidia-nvvm70.so.*",)
_GRAPHICS = ("libnvidia-egl-gbm.so.*.*", "libnvidia-egl-wayland.so.*.*", "libnvidia-egl-wayland2.so.*.*")
_EXPLICIT = (
    "libEGL.so",
    "libGL.so",
    "libGLESv1_CM.so",
    "libGLESv2.so",
    "libGLX.so",
    "libGLdispatch.so",
    "libOpenCL.so",
    "libOpenGL.so",
    "libnvidia-api.so",
    "libnvidia-egl-xcb.so",
    "libnvidia-egl-xlib.so",
)


@dataclass(frozen=True, slots=True)
class DriverLibraries:
    """The libraries below the driver's root, without links in their paths.

    `directories` are those that hold libraries of the driver's own version, `driver` these libraries and others that go
    with them, `graphics` those that drawing needs beside them.
    """

    version: str
    directories: tuple[str, ...] = ()
    driver: tuple[str, ...] = ()
    graphics: tuple[str, ...] = ()


class LibrarySearch:
    """Looks for libraries below the root that `files` shows."""

    def __init__(self, files: Files, findings: Findings) -> None:
        self._files = files
        self._findings = findings

    def find(self, pattern: str) -> tuple[str, ...]:
        """The files, each once and without links in its path, of the libraries whose names fit the pattern."""
        found = self.real(path for path, name in self._listed if fnmatchcase(name, pattern))
        return found or tuple(dict.fromkeys(path for path, names in self._cached if _any_fits(names, pattern)))

    def real(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Where the paths lead that lead to a regular file, each once."""
        resolved = (self._files.resolve(path) for path in paths)
        return tuple(dict.fromkeys(path for path in resolved if path is not None and self._is_file(path)))

    def _is_file(self, path: str) -> bool:
        status = self._files.status(path)
        return status is not None and status.is_file

    @cached_property
    def _listed(self) -> tuple[tuple[str, str], ...]:
        """Everything in the directories: path and name."""
        return tuple(
            (join(directory, name), name) for directory in LIBRARY_DIRECTORIES for name in self._files.names(directory)
        )

    @cached_property
    def _cached(self) -> tuple[tuple[str, tuple[str, str]], ...]:
        """The files of the loader's cache, each with the names under which it can be found.

        Libraries are in the cache by their short names; the file of one may have the name that is looked for.
        """
        return tuple(
            (path, (library.name, basename(path)))
            for library in dict.fromkeys(self._ld_cache())
            for path in self.real([library.path])
        )

    def _ld_cache(self) -> tuple[CachedLibrary, ...]:
        file = self._files.open(_LD_CACHE)
        if file is None:
            return ()
        with file:
            try:
                return parse_ld_cache(file.read(LARGEST + 1))
            except (OSError, MalformedLdCache) as error:
                self._findings.warn(f"{_LD_CACHE} of the driver root is not used: {error}")
                return ()


def find_libraries(files: Files, known_version: str, findings: Findings, *, explicit: bool = False) -> DriverLibraries:
    """The driver's libraries. `known_version` is what the loaded driver says, empty if it does not.

    `explicit` adds the libraries of GL and OpenCL that are not NVIDIA's alone, for images that have none.
    """
    search = LibrarySearch(files, findings)
    version = known_version or next(_versions(search), "")
    if not version:
        findings.warn("the driver's version is not known, neither from NVML nor by its libraries: containers get none")
        return DriverLibraries("")
    ending = f".so.{version}"
    directories = tuple(dict.fromkeys(dirname(path) for path in search.find(f"lib*{_literally(ending)}")))
    if not directories:
        findings.warn(_no_libraries(search, version))
        return DriverLibraries(version)
    places = [place for directory in directories for place in (directory, join(directory, "vdpau"))]
    versioned = search.real(
        join(place, name) for place in places for name in files.names(place) if name.endswith(ending)
    )
    driver = [*versioned, *_each(search, _OWN_NUMBERS, findings, "libraries")]
    if explicit:
        driver += _each(search, _EXPLICIT, findings, "libraries")
    graphics = _each(search, _GRAPHICS, findings, "graphics libraries")
    return DriverLibraries(
        version,
        directories,
        tuple(dict.fromkeys(driver)),
        tuple(path for path in graphics if path not in driver),
    )


def library_directories(paths: Iterable[str]) -> tuple[str, ...]:
    """The directories of those files that the loader takes for libraries by their names, each once."""
    return tuple(dict.fromkeys(dirname(path) for path in paths if _any_fits([basename(path)], *_LIBRARY)))


def _versions(search: LibrarySearch) -> Iterator[str]:
    """The versions that file names tell."""
    for pattern in _TELLING:
        for path in search.find(pattern):
            yield basename(path).partition(".so.")[2]


def _no_libraries(search: LibrarySearch, version: str) -> str:
    found = next(_versions(search), None)
    if found is None or found == version:
        return f"there are no libraries of driver {version} below the driver root: containers get none; is it mounted?"
    return (
        f"the libraries below the driver root are those of driver {found}, but driver {version} is loaded: containers "
        "get none; load the new driver (or reboot the node), or correct the driver root"
    )


def _each(search: LibrarySearch, patterns: Iterable[str], findings: Findings, what: str) -> Iterator[str]:
    """What fits any of the patterns; a pattern that nothing fits is noted."""
    for pattern in patterns:
        found = search.find(pattern)
        if not found:
            findings.missing(what, [pattern])
        yield from found


def _any_fits(names: Iterable[str], *patterns: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _literally(text: str) -> str:
    """A pattern that fits this text alone."""
    return re.sub(r"([*?[])", r"[\1]", text)
