"""The Go program in `kubelet/`: which versions of Kubernetes it is built with, and how it is built and kept.

It is built once for each version and kept in `build/devicemanager/` by what it is made of: its source, go.mod, go.sum
and the Go toolchain. Where there is no toolchain, or the modules cannot be had, or the program could not run
(`missing`), whoever needs it is told why.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent / "kubelet"
BUILDS = Path(__file__).parents[2] / "build" / "devicemanager"

_MOUNT = """
if ! [ -d /var/lib/kubelet ]; then mount -t tmpfs -o mode=755 none /var/lib && mkdir /var/lib/kubelet; fi &&
mount --bind "$1" /var/lib/kubelet && shift && exec "$@"
"""
IN_OWN_NAMESPACE = ("unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNT, "sh")
"""Runs a command for which the directory that follows is /var/lib/kubelet; needs root."""


class ProgramUnavailableError(Exception):
    """The program cannot be built or run here; the text says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program with the device manager of one minor version of Kubernetes."""

    version: str
    module_file: str = "go.mod"
    tags: str = ""

    @property
    def release(self) -> str:
        """The exact version, as the module file requires it."""
        text = (SOURCE / self.module_file).read_text(encoding="utf-8")
        found = re.search(r"^\s*(?:require )?k8s\.io/kubernetes v(\S+)$", text, re.MULTILINE)
        assert found is not None, f"{self.module_file} does not require k8s.io/kubernetes"
        return found[1]

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return BUILDS / f"kubelet-{self.release}-{self._digest()}"

    def _digest(self) -> str:
        modules = SOURCE / self.module_file
        digest = hashlib.sha256(_toolchain().encode())
        for path in (*sorted(SOURCE.glob("*.go")), modules, modules.with_suffix(".sum")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:16]

    def build(self) -> Path:
        """Builds it if it is not there; raises ProgramUnavailableError."""
        if self.path.exists():
            return self.path
        BUILDS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILDS) as folder:
            new = Path(folder) / "kubelet"
            self.go("build", "-ldflags=-s -w", "-o", str(new), ".")
            for old in BUILDS.glob(f"kubelet-{self.release}-*"):
                old.unlink()
            new.rename(self.path)
        return self.path

    def go(self, verb: str, *arguments: str) -> None:
        """Runs a command of the toolchain on the program; raises ProgramUnavailableError with what it said."""
        command = ["go", verb, f"-modfile={self.module_file}", f"-tags={self.tags}", *arguments]
        environment = {**os.environ, "GOWORK": "off", "GOFLAGS": "-mod=readonly -buildvcs=false"}
        done = subprocess.run(command, cwd=SOURCE, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            said = " / ".join(done.stderr.strip().splitlines()[-3:])
            raise ProgramUnavailableError(f"`{' '.join(command)}` failed for Kubernetes {self.release}: {said}")


PROGRAMS = {
    "1.35": Program("1.35", "kubernetes-1.35.mod"),
    "1.36": Program("1.36"),
    "1.37": Program("1.37", "kubernetes-1.37.mod", tags="kubernetes_1_37"),
}
"""By minor version."""


@cache
def _toolchain() -> str:
    if shutil.which("go") is None:
        raise ProgramUnavailableError("there is no Go toolchain; put `go` on PATH")
    return subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()


@cache
def missing() -> str | None:
    """What the machine lacks to run the program, whichever version; None if nothing."""
    if os.geteuid() != 0:
        return "it needs root, to have /var/lib/kubelet for itself"
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run([*IN_OWN_NAMESPACE, folder, "true"], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "there is no `unshare` (util-linux)"
    return f"there is no mount namespace to be had: {done.stderr.strip()}" if done.returncode else None


def main(versions: list[str]) -> int:
    """Builds the versions named, or all, and tells how long each took."""
    for version in versions or PROGRAMS:
        program = PROGRAMS[version]
        start = time.monotonic()
        try:
            kept = program.path.exists()
            path = program.build()
        except ProgramUnavailableError as error:
            sys.stderr.write(f"device manager of Kubernetes {version}: {error}\n")
            return 1
        took = "kept from an earlier build" if kept else f"built in {time.monotonic() - start:.0f} s"
        sys.stdout.write(f"device manager of Kubernetes {program.release}: {took} ({path.stat().st_size >> 20} MiB)\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
