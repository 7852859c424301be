"""The loader's cache, as glibc writes it and as nobody should."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.injection.cdi.generator.ldcache import CachedLibrary, MalformedLdCache, parse_ld_cache
from tests.injection.cdi.generator.drivertree import AARCH64, I386, X86_64, ld_cache

_ENTRIES = [
    ("libcuda.so.1", "/usr/lib64/libcuda.so.1", X86_64),
    ("libcuda.so.1", "/usr/lib/libcuda.so.1", I386),
    ("libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1", AARCH64),
]
_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@pytest.mark.parametrize("old", [None, 0, 1, 2, 7])
def test_the_64_bit_libraries_are_read_with_or_without_an_older_table_in_front(old: int | None) -> None:
    assert parse_ld_cache(ld_cache(_ENTRIES, old=old)) == (
        CachedLibrary("libcuda.so.1", "/usr/lib64/libcuda.so.1"),
        CachedLibrary("libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1"),
    )


@given(st.lists(st.tuples(_TEXTS, _TEXTS, st.sampled_from([X86_64, I386, AARCH64, 0x0500])), max_size=5))
def test_every_entry_is_read_back_in_its_order(entries: list[tuple[str, str, int]]) -> None:
    expected = tuple(CachedLibrary(name, path) for name, path, flags in entries if flags != I386)
    assert parse_ld_cache(ld_cache(entries)) == expected


@given(st.binary(max_size=200))
def test_any_bytes_are_a_cache_or_malformed(data: bytes) -> None:
    with pytest.raises(MalformedLdCache):
        parse_ld_cache(data)


@given(st.data())
def test_a_cache_with_changed_bytes_is_read_or_malformed(data: st.DataObject) -> None:
    cache = bytearray(ld_cache(_ENTRIES, old=data.draw(st.sampled_from([None, 2]))))
    for _ in range(data.draw(st.integers(1, 6))):
        cache[data.draw(st.integers(0, len(cache) - 1))] = data.draw(st.integers(0, 255))
    cache = cache[: data.draw(st.integers(0, len(cache)))] if data.draw(st.booleans()) else cache
    try:
        libraries = parse_ld_cache(bytes(cache))
    except MalformedLdCache:
        return
    assert len(libraries) <= len(_ENTRIES)


@pytest.mark.parametrize(
    ("cache", "message"),
    [
        (b"", "too short for its header"),
        (b"ld.so-1.7.0", "too short for its header"),
        (b"ld.so-1.7.0\0" + struct.pack("=I", 1 << 31), "too short for its header"),
        (b"x" * 64, "does not begin as glibc's cache does"),
        (ld_cache(_ENTRIES)[:100], "too short for its 3 entries"),
        (ld_cache(_ENTRIES)[:-1], None),
        (ld_cache([("a", "/" + "x" * 5000, X86_64)]), "there is no text at"),
    ],
)
def test_what_is_wrong_with_a_cache_is_told(cache: bytes, message: str | None) -> None:
    with pytest.raises(MalformedLdCache, match=message):
        parse_ld_cache(cache)


def test_the_cache_of_this_machine_is_read_if_it_has_one() -> None:
    path = Path("/etc/ld.so.cache")
    if not path.exists():
        pytest.skip("this machine has no cache of glibc's")
    assert all(library.path.startswith("/") for library in parse_ld_cache(path.read_bytes()))
