"""The parts of the specification of a Tegra board: what L4T's own lists say that a container needs.

The lists are lines of a kind and a path, which may have wildcards:

dev   a device node of the GPU
lib   a library, mounted where its links lead
sym   a link: what it leads to is mounted, and each link on the way is made in the container
dir   a directory

They lie below the driver's root or, where it has none, in our own file system. The board is one device, whatever GPUs
stand beside the integrated one; a line that is none of these is told and skipped. (Lists and rules: the NVIDIA
Container Toolkit 1.20, mode csv.)
"""

from collections.abc import Iterator, Mapping
from posixpath import dirname, join, normpath

from gpustow.hardware.node import Node
from gpustow.injection.cdi.edits import CdiEdits, CdiHook
from gpustow.injection.cdi.generator.files import Files, Status, matches, read_text, target
from gpustow.injection.cdi.generator.generated import Parts
from gpustow.injection.cdi.generator.libraries import library_directories
from gpustow.injection.cdi.generator.sources import Sources
from gpustow.injection.cdi.generator.symlinks import link
from gpustow.injection.cdi.names import ALL
from gpustow.injection.cdi.specification import CdiDevice

DIRECTORY = "/etc/nvidia-container-runtime/host-files-for-container.d"
LISTS = ("devices.csv", "drivers.csv", "l4t.csv")
_RELEASE = "/etc/nv_tegra_release"

_DEVICE, _DIRECTORY, _LIBRARY, _LINK = "dev", "dir", "lib", "sym"
_KINDS = (_DEVICE, _DIRECTORY, _LIBRARY, _LINK)
_LONGEST_CHAIN = 40

_NOTHING = CdiEdits(env=("NVCT_EMPTY_DEVICE=",))
"""The edits of a device for which there is nothing to do, which CDI does not allow to be empty; as the toolkit's."""

_ORIN = (8, 7)
_ORIN_COMPAT_ROOT = "/usr/local/cuda/compat_orin"


def tegra_parts(node: Node, sources: Sources) -> Parts:
    """The one device and the common edits of a Tegra board; no device if the lists name no device nodes."""
    listed = _listed(sources)
    files, search = sources.root.driver, sources.search
    nodes = sources.nodes.edits(_devices(listed[_DEVICE], sources))
    if nodes.is_empty and sources.root.simulated:
        nodes = _NOTHING
    elif nodes.is_empty:
        sources.findings.warn(f"the lists in {DIRECTORY} name no device nodes that are there: there is no device")
    directories = list(_found(listed[_DIRECTORY], sources, kind=_DIRECTORY))
    libraries = list(_found(listed[_LIBRARY], sources, kind=_LIBRARY))
    linked = list(_found(listed[_LINK], sources, kind=_LINK))
    mounted = dict.fromkeys(real for _, real in (*directories, *libraries, *linked))
    release = [_RELEASE] if target(files, _RELEASE) is not None else []
    links = dict.fromkeys(each for path, _ in linked for each in _chain(files, path))
    hooks = (
        *sources.hooks.create_symlinks(links),
        *_cuda_compat(node, sources),
        *sources.hooks.update_ldcache(library_directories(mounted)),
    )
    mounts = tuple(search.mounts((*mounted, *release)))
    return Parts(() if nodes.is_empty else (CdiDevice(ALL, nodes),), CdiEdits(mounts=mounts, hooks=hooks))


def _listed(sources: Sources) -> Mapping[str, list[str]]:
    """The paths in the lists, by kind."""
    listed: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    files = next(
        (files for files in (sources.root.driver, sources.root.system) if _is_directory(target(files, DIRECTORY))), None
    )
    if files is None:
        sources.findings.missing("lists for Tegra", [DIRECTORY])
        return listed
    for name in LISTS:
        path = join(DIRECTORY, name)
        if target(files, path) is None:
            sources.findings.missing("lists for Tegra", [path])
        for number, line in enumerate(read_text(files, path).splitlines(), start=1):
            if line.strip():
                kind, _, listed_path = (part.strip() for part in line.partition(","))
                if kind in listed and listed_path.startswith("/"):
                    listed[kind].append(normpath(listed_path))
                else:
                    sources.findings.warn(f"{path}, line {number} is skipped: not a kind and a path: {line.strip()!r}")
    return listed


def _devices(paths: list[str], sources: Sources) -> Iterator[str]:
    """The device nodes that are there."""
    devices = sources.root.devices
    for pattern in paths:
        found = [path for path in matches(devices, pattern) if _is_device(devices.status(path))]
        if not found:
            sources.findings.missing("device nodes of the lists", [pattern])
        yield from found


def _found(paths: list[str], sources: Sources, *, kind: str) -> Iterator[tuple[str, str]]:
    """The paths that are there, and where their links lead."""
    files = sources.root.driver
    for pattern in paths:
        found = [(path, real) for path in matches(files, pattern) if (real := files.resolve(path)) is not None]
        found = [pair for pair in found if (kind == _DIRECTORY) == _is_directory(files.status(pair[1]))]
        if not found:
            sources.findings.missing(f"files of the lists ({kind})", [pattern])
        yield from found


def _chain(files: Files, path: str) -> Iterator[str]:
    """The links from `path` on, one after the other; each is relative to where its directory really is."""
    for _ in range(_LONGEST_CHAIN):
        text = files.link(path)
        if text is None:
            return
        yield link(text, path)
        path = normpath(join(files.resolve(dirname(path)) or "/", text))


def _cuda_compat(node: Node, sources: Sources) -> tuple[CdiHook, ...]:
    """Where the version of CUDA is known, which is where NVML could be asked."""
    if not node.cuda_version:
        return ()
    arguments = [f"--host-cuda-version={node.cuda_version}"]
    if any(gpu.compute_capability == _ORIN for gpu in node.gpus):
        arguments.append(f"--cuda-compat-container-root={_ORIN_COMPAT_ROOT}")
    return sources.hooks.enable_cuda_compat(*arguments)


def _is_directory(status: Status | None) -> bool:
    return status is not None and status.is_directory


def _is_device(status: Status | None) -> bool:
    return status is not None and status.is_character_device
