"""The NVML reader: the node as the driver tells it.

One reading: NVML comes up, each GPU is read, then the links between them, and NVML is shut down. Links do not change
while a machine runs, so they are read once and again only if the GPUs are not the same ones, or something about them
could not be read. A GPU that cannot be served is left out of the node, and whatever could not be read is told in the
node's notes. Only a driver that cannot be read at all is an error.
"""

import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gpustow.hardware.links import Links
from gpustow.hardware.node import Gpu, Node, Platform
from gpustow.hardware.nvml.asking import GpuQuestions, LeftOut
from gpustow.hardware.nvml.deadline import DeadlineCaller
from gpustow.hardware.nvml.findings import Findings
from gpustow.hardware.nvml.gpus import read_gpu
from gpustow.hardware.nvml.library import Nvml
from gpustow.hardware.nvml.linkwalk import LinkWalk, Opened
from gpustow.hardware.nvml.observer import CallObserver
from gpustow.hardware.nvml.versions import cuda_version, driver_version
from gpustow.hardware.systemfiles import MigMinors, mig_minors

DEADLINE = 5.0
"""Seconds that one call may take. Slow drivers need up to a second for one; a call that hangs never returns."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are: the driver's root as it is mounted here, and the root that has the host's /sys and /proc."""

    driver_root: str = ""
    system_root: Path = Path("/")


class NvmlReader:
    """A NodeReader for machines with NVIDIA's driver. `name` is the node's; `deadline` is for each call, in seconds.

    `calls` is told of each.
    """

    def __init__(
        self,
        name: str,
        places: Places | None = None,
        *,
        deadline: float = DEADLINE,
        calls: CallObserver | None = None,
    ) -> None:
        self._name = name
        self._places = places or Places()
        self._caller = DeadlineCaller(deadline, calls)
        self._lock = threading.Lock()
        self._links: tuple[tuple[tuple[int, str], ...], Links] | None = None

    def read(self) -> Node:
        """The node as it is now.

        Raises:
            HardwareError: there is no driver, or it does not say how many GPUs there are.
        """
        with self._lock, closing(self._caller), closing(Nvml(self._places.driver_root, self._caller)) as nvml:
            return self._read(nvml)

    def _read(self, nvml: Nvml) -> Node:
        findings = Findings()
        minors = mig_minors(self._places.system_root)
        opened = []
        for index in range(nvml.need("nvmlDeviceGetCount")):
            questions = GpuQuestions(nvml, index, findings)
            try:
                entry = self._open(questions, minors)
            except LeftOut as left_out:
                _leave_out(questions, left_out)
            else:
                opened += [entry] if entry is not None else []
        gpus, links = self._linked(opened, findings)
        return Node(
            name=self._name,
            platform=Platform.NVML,
            gpus=gpus,
            links=links,
            driver_version=driver_version(nvml, findings),
            cuda_version=cuda_version(nvml, findings),
            notes=findings.notes(),
            unreadable=findings.unreadable,
        )

    def _open(self, questions: GpuQuestions, minors: MigMinors) -> Opened | None:
        handle = questions.need("handle", "nvmlDeviceGetHandleByIndex", questions.index)
        gpu = read_gpu(questions, handle, self._places.system_root, minors)
        return None if gpu is None else (gpu, handle, questions)

    def _linked(self, opened: Sequence[Opened], findings: Findings) -> tuple[tuple[Gpu, ...], Links]:
        """The GPUs that are still there, and their links."""
        who = tuple((gpu.index, gpu.uuid) for gpu, _, _ in opened)
        if self._links is not None and self._links[0] == who:
            return tuple(gpu for gpu, _, _ in opened), self._links[1]
        told = findings.notes()
        walk = LinkWalk(opened)
        links = walk.links()
        for _, _, questions in opened:
            if questions.index in walk.lost:
                _leave_out(questions, walk.lost[questions.index])
        if findings.notes() == told:
            self._links = who, links
        return tuple(gpu for gpu, _, _ in opened if gpu.index not in walk.lost), links


def _leave_out(questions: GpuQuestions, left_out: LeftOut) -> None:
    questions.findings.left_out(questions.index)
    if left_out.lost:
        questions.findings.lost(questions.index)
    else:
        questions.tell(str(left_out))
