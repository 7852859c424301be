"""The name of a library is read from any file, and a file that makes no sense has none."""

import struct
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.injection.cdi.generator.elf import read_soname
from tests.injection.cdi.generator.drivertree import elf_library

_LIBRARY = elf_library("libcuda.so.1")


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_name_is_read_in_either_byte_order(order: str) -> None:
    assert read_soname(BytesIO(elf_library("libcuda.so.1", order=order))) == "libcuda.so.1"


def test_a_library_need_not_have_a_name() -> None:
    assert read_soname(BytesIO(elf_library(None))) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "x" * 256, "libé.so"])
def test_a_name_that_no_link_can_have_is_none(name: str) -> None:
    assert read_soname(BytesIO(elf_library(name))) is None


def test_the_longest_name_of_a_file_is_read() -> None:
    assert read_soname(BytesIO(elf_library("x" * 255))) == "x" * 255


def _changed(offset: int, new: bytes) -> bytes:
    return _LIBRARY[:offset] + new + _LIBRARY[offset + len(new) :]


_HEADERS, _DYNAMIC = 64, 64 + 2 * 56


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"#!/bin/sh\n" * 20,
        _changed(4, b"\x01"),  # a file of 32 bits
        _changed(54, struct.pack("<H", 8)),  # program headers that are too small
        _changed(56, struct.pack("<H", 9999)),  # too many of them
        _changed(32, struct.pack("<Q", 1 << 40)),  # far behind the end
        _changed(32, struct.pack("<Q", (1 << 64) - 1)),
        _changed(_HEADERS + 56, struct.pack("<I", 4)),  # no dynamic section
        _changed(_HEADERS + 56 + 8, struct.pack("<Q", 1 << 40)),  # one far behind the end
        _changed(_HEADERS, struct.pack("<I", 4)),  # nothing is loaded
        _changed(_DYNAMIC + 8, struct.pack("<Q", 1 << 50)),  # texts at no address
        _changed(_DYNAMIC + 40, struct.pack("<Q", 1 << 50)),  # a name behind the texts
        _LIBRARY[:-1],  # a name without an end
    ],
)
def test_a_damaged_file_has_no_name(data: bytes) -> None:
    assert read_soname(BytesIO(data)) is None


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    assert read_soname(BytesIO(data)) is None


@given(st.lists(st.tuples(st.integers(4, len(_LIBRARY) - 1), st.integers(0, 255)), max_size=8))
def test_a_library_with_changed_bytes_gives_a_name_of_a_file_or_none(changes: list[tuple[int, int]]) -> None:
    data = bytearray(_LIBRARY)
    for at, byte in changes:
        data[at] = byte
    name = read_soname(BytesIO(bytes(data)))
    assert name is None or ("/" not in name and 0 < len(name) <= 255)


@given(st.text(st.characters(codec="ascii", exclude_characters="\0/"), min_size=1, max_size=255))
def test_every_name_of_a_file_is_read(name: str) -> None:
    assert read_soname(BytesIO(elf_library(name))) == (None if name in {".", ".."} else name)
