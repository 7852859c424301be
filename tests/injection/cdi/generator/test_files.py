"""Files as seen from inside a tree: links lead nowhere out of it."""

import os
import stat
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.injection.cdi.generator.files import RootFiles, SimulatedFiles, Status, matches, read_text, target
from tests.injection.cdi.generator.drivertree import Tree

_NAMES = st.sampled_from(["a", "b", "c"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)
_TEXTS = st.tuples(
    st.sampled_from(["", "/"]), st.lists(st.sampled_from(["a", "b", "c", ".."]), min_size=1, max_size=4).map("/".join)
).map("".join)
_ENTRIES = st.lists(st.tuples(_PATHS, st.one_of(st.none(), st.just(""), _TEXTS)), max_size=8)
"""What is in a tree: paths, each a directory (None), a file, or a link with a text."""


def _plant(root: Path, entries: list[tuple[str, str | None]]) -> None:
    """Makes what can be made; what is in the way of the rest stays."""
    for path, text in entries:
        at = root / path
        with suppress(OSError):
            if text is None:
                at.mkdir(parents=True)
            elif text:
                at.symlink_to(text)
            else:
                at.touch()


@given(_ENTRIES, _TEXTS)
def test_no_path_leads_out_of_the_tree_and_none_that_is_found_has_a_link_in_it(
    entries: list[tuple[str, str | None]], path: str
) -> None:
    with TemporaryDirectory() as directory:
        root = Path(directory).resolve() / "jail"
        root.mkdir()
        (root.parent / "a").mkdir()
        _plant(root, entries)
        real = RootFiles(root).resolve(path)
        if real is not None:
            outside = os.path.normpath(f"{root}{real}")
            assert os.path.realpath(outside, strict=True) == outside
            assert Path(outside).is_relative_to(root)


@given(_ENTRIES, _TEXTS)
def test_with_the_machines_own_root_paths_lead_where_the_kernel_says(
    entries: list[tuple[str, str | None]], path: str
) -> None:
    with TemporaryDirectory() as directory:
        _plant(Path(directory), entries)
        asked = f"{directory}/{path}"
        expected = os.path.realpath(asked) if Path(asked).exists() else None
        assert RootFiles(Path("/")).resolve(asked) == expected


def test_absolute_links_mean_the_tree_and_not_the_machine(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "jail").file("/etc/alternatives/x", "inside").link("/usr/lib/x", "/etc/alternatives/x")
    (tmp_path / "etc").mkdir()
    assert tree.files().resolve("/usr/lib/x") == "/etc/alternatives/x"
    assert read_text(tree.files(), "/usr/lib/x") == "inside"
    assert tree.files().resolve("/usr/lib/../../../../etc/alternatives/x") == "/etc/alternatives/x"


def test_a_root_that_is_a_link_is_followed_on_the_machine(tmp_path: Path) -> None:
    Tree(tmp_path / "real").file("/usr/x").link("/up", "../usr")
    (tmp_path / "root").symlink_to("real")
    files = RootFiles(tmp_path / "root")
    assert files.resolve("/up/x") == "/usr/x"
    root = files.status("/")
    assert root is not None
    assert root.is_directory


def test_links_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    files = Tree(tmp_path).link("/a", "b").link("/b", "a").files()
    assert files.resolve("/a") is None
    assert files.link("/a") == "b"
    status = files.status("/a")
    assert status is not None
    assert status.is_link


def test_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    files = Tree(tmp_path).file("/file").link("/dangling", "gone").files()
    for path in ("/gone", "/dangling", "/file/inside", "/zero\0byte", "/\udcff"):
        assert files.resolve(path) is None
        assert files.names(path) == ()
        assert files.open(path) is None
        assert read_text(files, path) == ""
        assert target(files, path) is None
    assert files.link("/gone") is None
    assert files.link("/file") is None
    assert files.status("/gone") is None


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    files = Tree(tmp_path).directory("/directory").files()
    assert files.open("/pipe") is None
    assert files.open("/directory") is None
    assert files.names("/pipe") == ()


def test_names_that_are_not_utf_8_are_passed_over(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.so")).touch()
    assert Tree(tmp_path).file("/good.so").files().names("/") == ("good.so",)


def test_what_may_not_be_read_counts_as_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    files = Tree(tmp_path).file("/file", "text").link("/link", "file").files()
    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "iterdir", refuse)
    monkeypatch.setattr(Path, "readlink", refuse)
    assert files.open("/file") is None
    assert files.names("/") == ()
    assert files.link("/link") is None
    assert files.resolve("/link") is None


def test_a_file_that_fails_while_it_is_read_has_no_text(tmp_path: Path) -> None:
    class Unreadable(BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(size)

    class Failing(RootFiles):
        def open(self, path: str) -> BinaryIO:
            return Unreadable(path.encode())

    assert read_text(Failing(tmp_path), "/x") == ""


def test_wildcards_fit_in_any_part_of_a_path(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for path in ("/dev/nvhost-gpu", "/dev/nvhost-ctrl", "/dev/other", "/usr/lib/a/x.so", "/usr/lib/b/x.so"):
        tree.file(path)
    files = tree.files()
    assert matches(files, "/dev/nvhost-*") == ("/dev/nvhost-ctrl", "/dev/nvhost-gpu")
    assert matches(files, "/usr/lib/[ab]/x.s?") == ("/usr/lib/a/x.so", "/usr/lib/b/x.so")
    assert matches(files, "/*/*/a/*") == ("/usr/lib/a/x.so",)
    assert matches(files, "//usr/./lib/a/x.so") == ("/usr/lib/a/x.so",)
    assert matches(files, "/dev/gone") == ()


def test_a_simulated_node_has_every_device_node_and_nothing_else() -> None:
    files = SimulatedFiles()
    assert files.status("/dev/nvidia7") == Status(stat.S_IFCHR | 0o666)
    assert files.resolve("/dev/nvidia7") == "/dev/nvidia7"
    assert files.status("/usr/bin/nvidia-smi") is None
    assert files.resolve("/usr/bin/nvidia-smi") is None
    assert files.link("/dev/dri/by-path/x") is None
    assert files.names("/dev") == ()
    assert files.open("/dev/nvidia7") is None
