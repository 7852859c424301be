"""The Go program: that it is in order, that it is kept, and what is said where it cannot be had."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.devicemanager import program
from tests.devicemanager.backend import Backend
from tests.devicemanager.program import PROGRAMS, SOURCE, Program, ProgramUnavailableError


@pytest.mark.slow
@pytest.mark.timeout(1800)  # the first time Go looks at all of Kubernetes that is linked
def test_the_program_is_vetted_and_formatted(device_manager: Backend) -> None:
    PROGRAMS[device_manager.version].go("vet", ".")
    done = subprocess.run(["gofmt", "-l", SOURCE], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_the_program_is_built_once_and_kept(device_manager: Backend) -> None:
    built = PROGRAMS[device_manager.version].build()
    before = built.stat().st_mtime_ns
    assert PROGRAMS[device_manager.version].build() == built
    assert built.stat().st_mtime_ns == before


def test_the_module_files_require_the_versions_that_they_are_named_after() -> None:
    for version, known in PROGRAMS.items():
        assert known.release.startswith(f"{version}.")


def test_without_go_it_is_said_that_go_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ProgramUnavailableError, match="there is no Go toolchain"):
        program._toolchain.__wrapped__()


def test_a_build_that_fails_says_what_go_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho one >&2; echo 'k8s.io/kubernetes: no such host' >&2; exit 1\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ProgramUnavailableError, match=r"`go vet .*1\.36.*one / k8s.io/kubernetes: no such host"):
        Program("1.36").go("vet", ".")


def test_without_root_it_is_said_that_root_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert program.missing.__wrapped__() == "it needs root, to have /var/lib/kubelet for itself"


def test_without_unshare_it_is_said_that_unshare_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert program.missing.__wrapped__() == "there is no `unshare` (util-linux)"


def test_without_a_mount_namespace_it_is_said_what_unshare_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unshare = tmp_path / "unshare"
    unshare.write_text("#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2; exit 1\n")
    unshare.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert program.missing.__wrapped__() == (
        "there is no mount namespace to be had: unshare failed: Operation not permitted"
    )
