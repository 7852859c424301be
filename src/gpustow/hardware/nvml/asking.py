"""Asking NVML about one GPU, where no answer has its price: the reading alone, or the GPU.

A reading that fails costs that reading, is told, and the rest goes on. What a GPU cannot be served without, and a GPU
that NVML calls lost, costs that GPU. A call that has hung for a GPU is not made for it again in the same reading, nor
in later ones until it returns. One that has hung for two GPUs is not made for the others either, unless they cannot be
served without its answer: the deadline is paid per call, not per GPU.
"""

from collections.abc import Collection
from typing import Any

from gpustow.hardware.nvml.findings import Findings
from gpustow.hardware.nvml.library import GPU_IS_LOST, RESET_REQUIRED, Nvml, NvmlFailure

_LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED})
_HANGS_BEFORE_LEAVING = 2


class LeftOut(Exception):  # noqa: N818 - names what happens to it
    """The GPU cannot be served, because `what` cannot be read. `lost`: because NVML says that the GPU is lost."""

    def __init__(self, what: str, failure: NvmlFailure) -> None:
        super().__init__(f"left out, because its {what} cannot be read: {failure}")
        self.failure = failure
        self.lost = failure.code in _LOST


class GpuQuestions:
    """Questions about the GPU with one NVML index."""

    def __init__(self, nvml: Nvml, index: int, findings: Findings) -> None:
        self.nvml = nvml
        self.index = index
        self.findings = findings

    def need(self, what: str, call: str, *arguments: Any, absent: Collection[int] = ()) -> Any:
        """The answer to what the GPU cannot be served without; `what` names it in messages.

        `absent` are return codes that are an answer: there is no such thing on this GPU; then the answer is None.

        Raises:
            LeftOut: there is no answer.
        """
        try:
            return self.nvml.call(call, *arguments, about=self._about(None))
        except NvmlFailure as failure:
            if failure.code in absent:
                return None
            raise LeftOut(what, failure) from failure

    def ask(
        self,
        what: str,
        call: str,
        *arguments: Any,
        subject: str | None = None,
        quiet: Collection[int] = (),
        failed: Any = None,
    ) -> Any | None:
        """The answer; None where the return code is one of `quiet`, otherwise `failed`, which is told.

        `subject` is what is asked about, the GPU where None.

        Raises:
            LeftOut: NVML says that the GPU is lost.
        """
        try:
            return self._answer(self._about(subject), call, *arguments)
        except NvmlFailure as failure:
            if failure.code in _LOST:
                raise LeftOut(what, failure) from failure
            if failure.code in quiet:
                return None
            self.tell(f"{what} cannot be read: {failure}", subject)
            return failed

    def tell(self, text: str, subject: str | None = None) -> None:
        """Adds something to what is told about the GPU, or about `subject`."""
        self.findings.add(self._about(subject), text)

    def _about(self, subject: str | None) -> str:
        return subject or f"GPU {self.index}"

    def _answer(self, about: str, call: str, *arguments: Any) -> Any:
        hung = self.nvml.hung[call]
        if self.index in hung:
            raise NvmlFailure(call, None, "not asked again, because it did not answer before")
        if len(hung) >= _HANGS_BEFORE_LEAVING:
            raise NvmlFailure(call, None, "not asked, because it did not answer for other GPUs")
        try:
            return self.nvml.call(call, *arguments, about=about)
        except NvmlFailure as failure:
            if failure.code is None:
                hung.add(self.index)
            raise
