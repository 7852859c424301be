"""Reads the name that a shared library goes by (DT_SONAME), out of its ELF file.

A library is loaded by this name and not by that of its file: `libcuda.so.1` for the file `libcuda.so.550.54.15`. It
stands in the dynamic section, as an offset into a table of strings that is given by its address in memory; the program
headers say where in the file that is. (System V ABI, chapters 4 and 5; elf(5).)

Driver libraries have up to some hundred megabytes, so only the parts that are needed are read. Nothing in the file is
believed: each length has a limit, and what does not make sense is a library without a name.

Limits: 64-bit files only, as are all libraries that we look for.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_HEADER = 64
_PROGRAM_HEADER = 56
_MOST_PROGRAM_HEADERS = 256
_LONGEST_DYNAMIC = 1 << 16
_LONGEST_NAME = 255
"""NAME_MAX of Linux: a longer name cannot be that of a file."""

_CLASS_64 = 2
_BYTE_ORDERS = {1: "<", 2: ">"}
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_STRTAB, _DT_STRSZ, _DT_SONAME = 0, 5, 10, 14


@dataclass(frozen=True, slots=True)
class _Segment:
    """A part of the file: its type, its place and size in the file, and its address in memory."""

    type: int
    offset: int
    address: int
    size: int


def read_soname(file: BinaryIO) -> str | None:
    """The library's own name; None if it has none, or the file is no 64-bit ELF file that makes sense."""
    try:
        return _soname(file)
    except (struct.error, OSError, OverflowError, ValueError):
        return None


def _soname(file: BinaryIO) -> str | None:
    header = _read(file, 0, _HEADER)
    if header[:4] != b"\x7fELF" or header[4] != _CLASS_64:
        return None
    order = _BYTE_ORDERS.get(header[5], "<")
    segments = list(_segments(file, header, order))
    dynamic = next((segment for segment in segments if segment.type == _PT_DYNAMIC), None)
    if dynamic is None:
        return None
    entries = dict(_entries(_read(file, dynamic.offset, min(dynamic.size, _LONGEST_DYNAMIC)), order))
    if not entries.keys() >= {_DT_SONAME, _DT_STRTAB, _DT_STRSZ} or entries[_DT_SONAME] >= entries[_DT_STRSZ]:
        return None
    strings = _place(segments, entries[_DT_STRTAB])
    if strings is None:
        return None
    longest = min(entries[_DT_STRSZ] - entries[_DT_SONAME], _LONGEST_NAME + 1)
    return _name(_read_up_to(file, strings + entries[_DT_SONAME], longest))


def _segments(file: BinaryIO, header: bytes, order: str) -> Iterator[_Segment]:
    (start,) = struct.unpack_from(f"{order}Q", header, 32)
    size, count = struct.unpack_from(f"{order}HH", header, 54)
    if size < _PROGRAM_HEADER or count > _MOST_PROGRAM_HEADERS:
        return
    table = _read(file, start, size * count)
    for at in range(0, size * count, size):
        kind, _, offset, address, _, in_file, _, _ = struct.unpack_from(f"{order}IIQQQQQQ", table, at)
        yield _Segment(kind, offset, address, in_file)


def _entries(dynamic: bytes, order: str) -> Iterator[tuple[int, int]]:
    """The tags of the dynamic section and their values."""
    whole = len(dynamic) - len(dynamic) % 16
    for tag, value in struct.iter_unpack(f"{order}qQ", dynamic[:whole]):
        if tag == _DT_NULL:
            return
        yield tag, value


def _place(segments: list[_Segment], address: int) -> int | None:
    """Where in the file an address in memory is."""
    for segment in segments:
        if segment.type == _PT_LOAD and segment.address <= address < segment.address + segment.size:
            return segment.offset + address - segment.address
    return None


def _name(text: bytes) -> str | None:
    """The text up to its zero byte, if a file can be called so."""
    name, zero, _ = text.partition(b"\0")
    decoded = name.decode("ascii")
    return decoded if zero and decoded and "/" not in decoded and decoded not in {".", ".."} else None


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    """Exactly these bytes. Raises ValueError if the file ends before."""
    data = _read_up_to(file, offset, size)
    if len(data) < size:
        raise ValueError("the file is too short")
    return data


def _read_up_to(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)
