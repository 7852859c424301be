"""The parts of the specification of a node under WSL: Windows' one device node, and the driver's files from Windows.

Windows mounts its driver store into Linux, a directory for each driver that it has. Which of them is in use only
Windows' own library could tell; as the NVIDIA Container Toolkit does, the one with CUDA in it is taken. Where there are
several, after an update, it is the newest.

All GPUs are one device, and its edits are the node's. Everything else is common.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from posixpath import join

from gpustow.injection.cdi.edits import CdiEdits
from gpustow.injection.cdi.generator.files import target
from gpustow.injection.cdi.generator.generated import Parts
from gpustow.injection.cdi.generator.libraries import library_directories
from gpustow.injection.cdi.generator.sources import Sources
from gpustow.injection.cdi.generator.symlinks import link
from gpustow.injection.cdi.names import ALL
from gpustow.injection.cdi.specification import CdiDevice
from gpustow.resources.gpu import WSL_PATHS

_DXCORE = "/usr/lib/wsl/lib/libdxcore.so"
_STORE = "/usr/lib/wsl/drivers"
_CUDA = "libcuda.so.1.1"
_EXPECTED = (
    _CUDA,
    "libcuda_loader.so",
    "libnvidia-ptxjitcompiler.so.1",
    "libnvidia-ml.so.1",
    "libnvidia-ml_loader.so",
    "libnvdxgdmal.so.1",
    "nvcubins.bin",
    "nvidia-smi",
)
_ALSO = ("*.so*", "*.bin", "*.dll")
_PROGRAM = "nvidia-smi"


def wsl_parts(sources: Sources) -> Parts:
    """The one device and the common edits of a node under WSL."""
    files = sources.root.driver
    paths = [_DXCORE] if _is_file(sources, _DXCORE) else []
    if not paths:
        sources.findings.missing("libraries", [_DXCORE])
    directory = _driver(sources)
    links = []
    if directory is not None:
        names = [name for name in files.names(directory) if _is_file(sources, join(directory, name))]
        sources.findings.missing("files of the Windows driver", [name for name in _EXPECTED if name not in names])
        paths += [join(directory, name) for name in names if name in _EXPECTED or _fits(name)]
        links = [link(join(directory, _PROGRAM), f"/usr/bin/{_PROGRAM}")] if _PROGRAM in names else []
    edits = CdiEdits(
        mounts=tuple(sources.search.mounts(paths)),
        hooks=sources.hooks.create_symlinks(links) + sources.hooks.update_ldcache(library_directories(paths)),
    )
    return Parts((CdiDevice(ALL, sources.nodes.edits(WSL_PATHS)),), edits)


def _driver(sources: Sources) -> str | None:
    """The directory of the newest driver with CUDA in it."""
    found = sorted(_drivers(sources), reverse=True)
    if not found:
        sources.findings.warn(f"no directory below {_STORE} has {_CUDA}: containers get no libraries of a driver")
        return None
    if len(found) > 1:
        sources.findings.warn(f"{_STORE} has {len(found)} drivers with {_CUDA}; the newest is taken, {found[0][1]}")
    return found[0][1]


def _drivers(sources: Sources) -> Iterator[tuple[float, str]]:
    """Each driver with CUDA in it, and since when it is there."""
    for name in sources.root.driver.names(_STORE):
        directory = join(_STORE, name)
        status = target(sources.root.driver, join(directory, _CUDA))
        if status is not None and status.is_file:
            yield status.modified, directory


def _is_file(sources: Sources, path: str) -> bool:
    status = target(sources.root.driver, path)
    return status is not None and status.is_file


def _fits(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _ALSO)
