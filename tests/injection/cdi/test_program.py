"""Programs of the host's that may do anything."""

import os
import signal
import time
from pathlib import Path

import pytest

from gpustow.injection.cdi.program import MOST_BYTES, OutputTooLong, run_program


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_program_gets_words_and_variables_as_they_are(tmp_path: Path) -> None:
    program = script(tmp_path / "program", 'printf "%s|" "$@" "$A" "$HOME" "$(pwd)"; printf oh >&2; exit 3')
    result = run_program([program, "a b", "$A", ""], {"A": "1"}, 60)
    assert (result.code, result.output, result.errors) == (3, "a b|$A||1||/|", "oh")


def test_a_program_gets_no_input(tmp_path: Path) -> None:
    assert run_program([script(tmp_path / "program", "/bin/cat")], {}, 60).output == ""


def test_output_that_is_no_text_is_taken(tmp_path: Path) -> None:
    assert run_program([script(tmp_path / "program", "printf '\\377'")], {}, 60).output == "�"


def test_a_program_that_dies_tells_its_signal(tmp_path: Path) -> None:
    assert run_program([script(tmp_path / "program", "kill -9 $$")], {}, 60).code == -signal.SIGKILL


def test_a_program_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_program([str(tmp_path / "none")], {}, 60)


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_program_that_talks_for_ever_is_killed_before_our_memory_is_full(stream: str, tmp_path: Path) -> None:
    talk = script(tmp_path / "program", f"exec /usr/bin/yes{stream}")
    with pytest.raises(OutputTooLong, match="it has said more than 16 MiB"):
        run_program([talk], {}, 600)


def test_as_much_as_is_allowed_is_taken_whole(tmp_path: Path) -> None:
    program = script(tmp_path / "program", f"/usr/bin/head -c {MOST_BYTES} /dev/zero")
    assert len(run_program([program], {}, 600).output) == MOST_BYTES


def test_a_program_that_closes_its_output_and_goes_on_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        run_program([script(tmp_path / "program", "exec >&- 2>&-; /bin/sleep 600")], {}, 0.2)


def test_a_program_that_hangs_is_killed_with_its_children_though_they_hold_its_output(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    opened = os.open(pids, os.O_RDWR)
    program = script(tmp_path / "program", f"/bin/sleep 600 & echo $! > {pids}; wait")
    with pytest.raises(TimeoutError, match=r"it has not ended after 0.5 s"):
        run_program([program], {}, 0.5)
    child = int(os.read(opened, 100))
    os.close(opened)
    deadline = time.monotonic() + 60
    while _lives(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _lives(child)


def _lives(pid: int) -> bool:
    """Whether the process runs; one that has ended and that nobody has waited for does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
