"""Reads the cache of the dynamic loader, /etc/ld.so.cache: where the libraries of a system are.

The layout is that of glibc's sysdeps/generic/dl-cache.h: a header with the number of entries, the entries, and after
them their texts, which an entry gives by offset from the header. Since glibc 2.32 the file holds this alone; before,
an older table could stand in front, and is skipped. Numbers are in the byte order of the machine that wrote the file,
which is ours.

Nothing in the file is believed: whatever does not lie in it makes the whole file malformed.
"""

import struct
from dataclasses import dataclass

LARGEST = 8 << 20
"""In bytes: room for some 80,000 libraries, each of which will be looked at; with all of CUDA there are thousands."""

_OLD_MAGIC = b"ld.so-1.7.0"
_OLD_HEADER = struct.Struct("=11sxI")
_OLD_ENTRY = 12
_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("=20sIIB3xI12x")
_ENTRY = struct.Struct("=iIIIQ")
_ALIGNMENT = 8
_LONGEST = 4096
"""PATH_MAX of Linux."""

_REQUIRED = 0xFF00
_64_BIT = frozenset({0x0300, 0x0500, 0x0A00})
"""What an entry requires of the machine: x86-64, 64-bit POWER, AArch64."""


class MalformedLdCache(ValueError):  # noqa: N818 - says what the file is
    """The file is no cache of glibc's, or a damaged one."""


@dataclass(frozen=True, slots=True)
class CachedLibrary:
    """A library: the name by which it is asked for, and its path."""

    name: str
    path: str


def parse_ld_cache(data: bytes) -> tuple[CachedLibrary, ...]:
    """The 64-bit libraries in a cache, in its order.

    Raises:
        MalformedLdCache: `data` is not such a file, or larger than any is.
    """
    if len(data) > LARGEST:
        raise MalformedLdCache(f"it is larger than {LARGEST >> 20} MiB")
    data = data[_skipped(data) :]
    if len(data) < _HEADER.size:
        raise MalformedLdCache("it is too short for its header")
    magic, count, _, _, _ = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise MalformedLdCache("it does not begin as glibc's cache does")
    if _HEADER.size + count * _ENTRY.size > len(data):
        raise MalformedLdCache(f"it is too short for its {count} entries")
    entries = _ENTRY.iter_unpack(data[_HEADER.size : _HEADER.size + count * _ENTRY.size])
    return tuple(
        CachedLibrary(_text(data, key), _text(data, value))
        for flags, key, value, _, _ in entries
        if flags & _REQUIRED in _64_BIT
    )


def _skipped(data: bytes) -> int:
    """The length of the older table in front."""
    if not data.startswith(_OLD_MAGIC):
        return 0
    if len(data) < _OLD_HEADER.size:
        raise MalformedLdCache("it is too short for its header")
    _, count = _OLD_HEADER.unpack_from(data)
    end = _OLD_HEADER.size + int(count) * _OLD_ENTRY
    return end + -end % _ALIGNMENT


def _text(data: bytes, offset: int) -> str:
    """The text at `offset`, up to its zero byte."""
    end = data.find(b"\0", offset, offset + _LONGEST)
    if end < 0:
        raise MalformedLdCache(f"there is no text at {offset}")
    return data[offset:end].decode("utf-8", "surrogateescape")
