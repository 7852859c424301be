"""Reading how the GPUs are linked: each GPU's NVLinks are walked once, each pair's PCIe level is asked once.

An NVLink ends at another GPU, known by its PCI bus id, or at an NVSwitch. Through switches two GPUs have as many links
as the one with fewer, for no more can be in use at once. What cannot be read counts as the lowest: a level as unknown,
an NVLink as none, and the others of the GPU count.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from gpustow.hardware.links import Link, Links, PcieLevel
from gpustow.hardware.node import Gpu
from gpustow.hardware.nvml.asking import GpuQuestions, LeftOut
from gpustow.hardware.nvml.library import FUNCTION_NOT_FOUND, INVALID_ARGUMENT, NOT_SUPPORTED

_MOST_LINKS = 36
"""NVML_NVLINK_MAX_LINKS of nvidia-ml-py 13."""

_TO_SWITCH = 2
_ACTIVE = 1
_UNREAD = -1
_NO_LINK = frozenset({NOT_SUPPORTED, INVALID_ARGUMENT, FUNCTION_NOT_FOUND})

Opened = tuple[Gpu, Any, GpuQuestions]
"""A GPU that was read, its handle, and how to ask about it."""


class LinkWalk:
    """Reads the links of the GPUs; `lost` are the indices of those that turned out to be lost on the way."""

    def __init__(self, gpus: Sequence[Opened]) -> None:
        self._gpus = gpus
        self._by_bus = {gpu.pci_bus_id: gpu.index for gpu, _, _ in gpus if gpu.pci_bus_id}
        self._direct: Counter[tuple[int, int]] = Counter()
        self._switched: Counter[int] = Counter()
        self.lost: dict[int, LeftOut] = {}

    def links(self) -> Links:
        """The links between all GPUs that are not lost."""
        for gpu, handle, questions in self._gpus:
            try:
                self._walk(gpu.index, handle, questions)
            except LeftOut as left_out:
                self.lost[gpu.index] = left_out
        readings: dict[tuple[int, int], Link] = {}
        for first, second in combinations(self._gpus, 2):
            a, b = first[0].index, second[0].index
            level = self._level(first, second)
            switched = min(self._switched[a], self._switched[b])
            readings[a, b] = Link(level, self._direct[a, b] + switched)
            readings[b, a] = Link(level, self._direct[b, a] + switched)
        kept = ((pair, link) for pair, link in readings.items() if not self.lost.keys() & set(pair))
        return Links(tuple(sorted(kept, key=lambda reading: reading[0])))

    def _walk(self, index: int, handle: Any, questions: GpuQuestions) -> None:
        """Counts the active NVLinks of one GPU by where they end."""
        for number in self._active_links(handle, questions):
            remote = questions.ask(
                "far end of an NVLink",
                "nvmlDeviceGetNvLinkRemoteDeviceType",
                handle,
                number,
                quiet={FUNCTION_NOT_FOUND},
            )
            if remote == _TO_SWITCH:
                self._switched[index] += 1
                continue
            pci = questions.ask("far end of an NVLink", "nvmlDeviceGetNvLinkRemotePciInfo", handle, number)
            other = None if pci is None else self._by_bus.get(str(pci.busId).upper())
            if other is not None:
                self._direct[index, other] += 1

    def _active_links(self, handle: Any, questions: GpuQuestions) -> Iterator[int]:
        """The numbers of the active NVLinks; the first number that NVML does not know is behind the last link."""
        for number in range(_MOST_LINKS):
            state = questions.ask("NVLinks", "nvmlDeviceGetNvLinkState", handle, number, quiet=_NO_LINK, failed=_UNREAD)
            if state is None:
                return
            if state == _ACTIVE:
                yield number

    def _find_lost(self, *pair: Opened) -> bool:
        """Finds out which of two GPUs is lost, when NVML says so of both together; false if neither seems to be."""
        before = len(self.lost)
        for gpu, handle, questions in pair:
            try:
                questions.need("UUID", "nvmlDeviceGetUUID", handle)
            except LeftOut as left_out:
                self.lost[gpu.index] = left_out
        return len(self.lost) > before

    def _level(self, first: Opened, second: Opened) -> PcieLevel | None:
        """The PCIe level of a pair, from its first end; None where it is unknown or one of them is lost."""
        if self.lost.keys() & {first[0].index, second[0].index}:
            return None
        _, handle, questions = first
        try:
            level = questions.ask("PCIe level", "nvmlDeviceGetTopologyCommonAncestor", handle, second[1])
        except LeftOut as left_out:
            if not self._find_lost(first, second):
                questions.tell(f"PCIe level cannot be read: {left_out.failure}")
            return None
        try:
            return None if level is None else PcieLevel(level)
        except ValueError:
            questions.tell(f"PCIe level {level} is not known")
            return None
