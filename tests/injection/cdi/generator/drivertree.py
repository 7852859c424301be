"""Trees of a driver's files for tests: libraries that are real ELF files, a real loader's cache, device nodes.

Device nodes cannot be made without privileges, so that they are empty files here, of which `Tree.files` says that they
are device nodes.
"""

import stat
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpustow.injection.cdi.generator.files import RootFiles, Status
from gpustow.injection.cdi.generator.roots import DriverRoot

X86_64, I386, AARCH64 = 0x0303, 0x0003, 0x0A03
"""The flags of an entry of the loader's cache."""


def elf_library(soname: str | None, *, order: str = "<") -> bytes:
    """A shared library of nothing but its name: header, two program headers, dynamic section, texts."""
    base = 0x1000
    texts = b"\0" + (soname or "").encode() + b"\0"
    dynamic_at = 64 + 2 * 56
    entries = [(5, base + dynamic_at + 4 * 16), (10, len(texts))]
    entries += [(14, 1)] if soname is not None else [(1, 1)]
    dynamic = b"".join(struct.pack(f"{order}qQ", *entry) for entry in [*entries, (0, 0)])
    size = dynamic_at + len(dynamic) + len(texts)
    ident = b"\x7fELF" + bytes([2, 1 if order == "<" else 2, 1]) + bytes(9)
    header = ident + struct.pack(f"{order}HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack(f"{order}IIQQQQQQ", 1, 5, 0, base, base, size, size, base)
    section = struct.pack(f"{order}IIQQQQQQ", 2, 6, dynamic_at, base + dynamic_at, 0, len(dynamic), len(dynamic), 8)
    return header + load + section + dynamic + texts


def ld_cache(entries: Sequence[tuple[str, str, int]], *, old: int | None = None) -> bytes:
    """A loader's cache of (name, path, flags); with a table of the older kind in front, if `old` says how long."""
    texts = b""
    table = b""
    start = 48 + 24 * len(entries)
    for name, path, flags in entries:
        offsets = []
        for text in (name, path):
            offsets.append(start + len(texts))
            texts += text.encode() + b"\0"
        table += struct.pack("=iIIIQ", flags, *offsets, 0, 0)
    front = b""
    if old is not None:
        front = b"ld.so-1.7.0\0" + struct.pack("=I", old) + bytes(12 * old)
        front += bytes(-len(front) % 8)
    return front + b"glibc-ld.so.cache1.1" + struct.pack("=II", len(entries), len(texts)) + bytes(20) + table + texts


class Tree:
    """A tree of files below `path`. Paths in it are absolute."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._devices: dict[str, Status] = {}

    def file(self, path: str, content: str | bytes = "", mode: int = 0o644) -> "Tree":
        at = self._outside(path)
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(content.encode() if isinstance(content, str) else content)
        at.chmod(mode)
        return self

    def library(self, path: str, soname: str | None = None) -> "Tree":
        return self.file(path, elf_library(soname))

    def program(self, path: str) -> "Tree":
        return self.file(path, "#!", 0o755)

    def directory(self, path: str) -> "Tree":
        self._outside(path).mkdir(parents=True, exist_ok=True)
        return self

    def link(self, path: str, text: str) -> "Tree":
        at = self._outside(path)
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(text)
        return self

    def device(self, path: str, *, mode: int = 0o666, gid: int = 0) -> "Tree":
        self._devices[path] = Status(stat.S_IFCHR | mode, gid)
        return self.file(path)

    def files(self) -> RootFiles:
        return _FilesWithDevices(self.path, self._devices)

    def root(self, driver_root: str = "/", dev_root: str = "/") -> DriverRoot:
        files = self.files()
        return DriverRoot(files, files, files, driver_root, dev_root)

    def _outside(self, path: str) -> Path:
        return self.path / path.lstrip("/")


class _FilesWithDevices(RootFiles):
    def __init__(self, root: Path, devices: Mapping[str, Status]) -> None:
        super().__init__(root)
        self._devices = devices

    def status(self, path: str) -> Status | None:
        return self._devices.get(path) or super().status(path)
