"""The other names of the driver's libraries, which are links beside them: what a program asks for is seldom the file.

Programs ask the loader for the name in the library (its SONAME, `libcuda.so.1`), compilers for `libcuda.so`. The links
of the host are made anew in the container, each as `target::link` with a target relative to the link, as the hook
create-symlinks takes them. A name that is no link on the host is not made one, but for a few that programs open whether
or not a package has them.
"""

from collections.abc import Iterable, Iterator
from posixpath import basename, dirname, join

from gpustow.injection.cdi.generator.elf import read_soname
from gpustow.injection.cdi.generator.files import Files

_ALWAYS = (
    ("libcuda.so.{version}", "libcuda.so.1", "libcuda.so"),
    ("libGLX_nvidia.so.{version}", "libGLX_nvidia.so.{version}", "libGLX_indirect.so.0"),
    ("libnvidia-opticalflow.so.{version}", "libnvidia-opticalflow.so.1", "libnvidia-opticalflow.so"),
)
_ALWAYS_GRAPHICS = (
    ("libnvidia-allocator.so.{version}", "../libnvidia-allocator.so.1", "gbm/nvidia-drm_gbm.so"),
    (
        "libnvidia-vulkan-producer.so.{version}",
        "libnvidia-vulkan-producer.so.{version}",
        "libnvidia-vulkan-producer.so",
    ),
    ("libglxserver_nvidia.so.{version}", "libglxserver_nvidia.so.{version}", "libglxserver_nvidia.so"),
)
"""A library; the link beside it that is always made, target first."""


def driver_links(files: Files, libraries: Iterable[str], version: str) -> tuple[str, ...]:
    """The links for the driver's libraries, each once."""
    paths = tuple(libraries)
    found = [*_always(paths, version, _ALWAYS), *(link for path in paths for link in _beside(files, path))]
    return tuple(dict.fromkeys(found))


def graphics_links(files: Files, libraries: Iterable[str], others: Iterable[str], version: str) -> tuple[str, ...]:
    """The links for drawing: for graphics libraries, and for some of the `others` that a container gets."""
    paths = tuple(libraries)
    found = _always((*others, *paths), version, _ALWAYS_GRAPHICS)
    return tuple(dict.fromkeys([*found, *(link for path in paths for link in _beside(files, path))]))


def link(name: str, path: str) -> str:
    """A link at `path` whose text is `name`, as the hook takes it."""
    return f"{name}::{path}"


def _always(paths: tuple[str, ...], version: str, rules: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    for library, name, beside in rules:
        wanted = library.format(version=version)
        for path in paths:
            if basename(path) == wanted:
                yield link(name.format(version=version), join(dirname(path), beside))


def _beside(files: Files, path: str) -> Iterator[str]:
    """The links to a library that lie beside it on the host."""
    directory, name = dirname(path), basename(path)
    soname = _soname(files, path) or name
    if soname != name and files.link(join(directory, soname)) is not None:
        yield link(name, join(directory, soname))
    short = name.partition(".so")[0] + ".so"
    if short not in {name, soname} and files.link(join(directory, short)) is not None:
        yield link(soname, join(directory, short))


def _soname(files: Files, path: str) -> str | None:
    file = files.open(path)
    if file is None:
        return None
    with file:
        return read_soname(file)
