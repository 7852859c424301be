"""What calls into NVML tell about themselves, for metrics. Told in whatever thread makes the call."""

from enum import Enum
from typing import Protocol


class CallResult(Enum):
    """How a call ended."""

    OK = "ok"
    FAILED = "failed"
    """NVML answered with an error; what a GPU does not support is one, too."""
    HUNG = "hung"
    """It did not return in time, or was not made because it did not before."""


class CallObserver(Protocol):
    """Is told of each call. Must not raise."""

    def called(self, call: str, seconds: float, result: CallResult) -> None:
        """A function of the bindings was called, and that took so long."""
        ...


class SilentCallObserver:
    """A CallObserver that does nothing with what it is told."""

    def called(self, call: str, seconds: float, result: CallResult) -> None:
        """See CallObserver."""
