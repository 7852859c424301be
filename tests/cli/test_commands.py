import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import NO_DRIVER, check_safe, environment
from tests.nvml.build import LIBRARY, built_library


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("gpustow", ("plugin",)),
        ("gpustow", ("plugin", "--node-model=t4-4")),
        ("nvidia-device-plugin", ()),
        ("nvidia-device-plugin", ("--fail-on-init-error", "false", "--kubelet-socket=/x/kubelet.sock")),
    ],
)
def test_a_daemon_that_would_find_the_kubelet_of_this_machine_is_not_started(
    program: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(AssertionError, match="needs a socket"):
        check_safe(program, words)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("gpustow", ("simulate",)),
        ("gpustow", ("plugin", "--help")),
        ("nvidia-device-plugin", ("-v=true",)),
        ("nvidia-device-plugin", ("--kubelet-socket=/x/kubelet.sock",)),
    ],
)
def test_what_ends_at_once_or_has_a_socket_of_its_own_is_started(program: str, words: tuple[str, ...]) -> None:
    check_safe(program, words)


@pytest.mark.parametrize("library", sorted(path.name for path in NO_DRIVER.iterdir()))
def test_a_driver_of_this_machine_is_hidden(library: str, tmp_path: Path) -> None:
    (tmp_path / library).symlink_to(built_library())
    assert _load(library, str(tmp_path)).returncode == 0
    hidden = _load(library, f"{NO_DRIVER}:{tmp_path}")
    assert hidden.returncode == 1
    assert f"OSError: {NO_DRIVER}/{library}" in hidden.stderr


def _load(library: str, folders: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import ctypes; ctypes.CDLL({library!r})"],
        env=environment({"LD_LIBRARY_PATH": folders}),
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_hidden_is_what_a_driver_is_found_by() -> None:
    assert LIBRARY in {path.name for path in NO_DRIVER.iterdir()}
