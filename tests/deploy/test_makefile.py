"""The Makefile in a folder of its own, with a stand-in for Python that records what it is asked for."""

import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"

_MAKES_HALF = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 0
mkdir -p "$3/bin" && touch "$3/pyvenv.cfg" && ln -s /bin/true "$3/bin/python"
exit 1
"""

_MAKES_ALL = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 0
[ ! -e "$3" ] || exit 1
mkdir -p "$3/bin" && touch "$3/pyvenv.cfg" && ln -s /bin/true "$3/bin/python" && ln -s /bin/true "$3/bin/pip"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copy(MAKEFILE, tmp_path)
    for name in ("requirements-dev.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    return tmp_path


def make(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *words], cwd=checkout, capture_output=True, text=True, check=False
    )


def python(checkout: Path, script: str) -> str:
    path = checkout / "python"
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return f"PYTHON={path}"


def test_a_virtual_environment_that_failed_halfway_leaves_nothing(checkout: Path) -> None:
    ended = make(checkout, "setup", python(checkout, _MAKES_HALF))
    assert ended.returncode != 0
    assert "cannot make a virtual environment" in ended.stderr
    assert not (checkout / ".venv").exists()


def test_half_a_virtual_environment_of_before_is_made_anew(checkout: Path) -> None:
    half = checkout / ".venv" / "bin"
    half.mkdir(parents=True)
    (half / "python").symlink_to("/bin/true")
    (half.parent / "pyvenv.cfg").touch()
    ended = make(checkout, "setup", python(checkout, _MAKES_ALL))
    assert ended.returncode == 0, ended.stderr
    assert (checkout / ".venv" / ".ready").exists()


def test_a_folder_that_is_no_virtual_environment_is_never_removed(checkout: Path) -> None:
    mine = checkout / "mine"
    mine.mkdir()
    (mine / "letter").touch()
    assert make(checkout, "setup", "VENV=mine", python(checkout, _MAKES_ALL)).returncode != 0
    assert make(checkout, "clean", "VENV=mine").returncode == 0
    assert (mine / "letter").exists()


def test_clean_removes_what_tests_leave_and_nothing_else(checkout: Path) -> None:
    for name in (".coverage", ".coverage.host.1.x", "notes.txt"):
        (checkout / name).touch()
    assert make(checkout, "clean").returncode == 0
    assert {path.name for path in checkout.iterdir()} == {
        "Makefile",
        "notes.txt",
        "pyproject.toml",
        "requirements-dev.lock",
    }


def test_help_lists_every_target_in_columns(checkout: Path) -> None:
    text = MAKEFILE.read_text(encoding="utf-8")
    [phony] = [line for line in text.splitlines() if line.startswith(".PHONY:")]
    lines = make(checkout).stdout.splitlines()
    assert [line.split()[1] for line in lines] == phony.split()[1:]
    gap = max(line.index(line.split()[2], 7) for line in lines)
    assert all(line[gap - 1] == " " != line[gap] for line in lines)
