"""What a GPU says of itself: what the driver wants done to it, and which repairs of its memory wait or have failed.

Cards of Ampere and newer remap rows, older ones retire pages; each is silent about the other. A card with MIG devices
does not tell of its rows in one call, as nvml.h says of nvmlDeviceGetRemappedRows; then the fields for it are tried.
"""

from ctypes import byref
from dataclasses import dataclass
from typing import Any

from gpustow.hardware.nvml.library import (
    ARGUMENT_VERSION_MISMATCH,
    DEPRECATED,
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNKNOWN,
    Nvml,
    NvmlFailure,
)

_REMAPPED_PENDING = 144
_REMAPPED_FAILURE = 145
_RECOVERY_ACTION = 230
"""Numbers of fields: NVML_FI_DEV_REMAPPED_PENDING, _REMAPPED_FAILURE and _GET_GPU_RECOVERY_ACTION."""

_INTEGERS = {1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""Where the value of a field is, by NVML's number for its type."""

_CANNOT_TELL = frozenset(
    {NOT_SUPPORTED, FUNCTION_NOT_FOUND, INVALID_ARGUMENT, ARGUMENT_VERSION_MISMATCH, DEPRECATED, NO_PERMISSION}
)
"""Return codes that say nothing about the GPU: the card, the driver or our rights are not such that it could tell."""


@dataclass(frozen=True, slots=True)
class SelfReport:
    """What a GPU says; None where it cannot tell.

    `recovery_action` is NVML's number for what is to be done, 0 for nothing. `sram_threshold_exceeded` is whether its
    SRAM has had more uncorrectable errors than it may.
    """

    recovery_action: int | None = None
    row_remap_pending: bool | None = None
    row_remap_failure: bool | None = None
    retired_pages_pending: bool | None = None
    sram_threshold_exceeded: bool | None = None


def read_self_report(nvml: Nvml, handle: Any, about: str) -> SelfReport:
    """What the GPU with this handle says; `about` names it.

    Raises:
        NvmlFailure: a call failed in a way that is no answer, or answered with what cannot be.
    """
    reading = _Reading(nvml, handle, about)
    action = reading.field(_RECOVERY_ACTION)
    pending, failure = reading.row_remap()
    return SelfReport(action, pending, failure, reading.retired_pages(), reading.sram_threshold_exceeded())


class _Reading:
    """Asks one GPU."""

    def __init__(self, nvml: Nvml, handle: Any, about: str) -> None:
        self._nvml = nvml
        self._handle = handle
        self._about = about

    def field(self, number: int) -> int | None:
        """The value of a field that is an integer."""
        call = "nvmlDeviceGetFieldValues"
        fields = self._ask(call, [number])
        if fields is None:
            return None
        code, kind = int(fields[0].nvmlReturn), int(fields[0].valueType)
        if code in _CANNOT_TELL:
            return None
        if code != 0:
            raise NvmlFailure(call, code, f"field {number}: {self._nvml.bindings.NVMLError(code)}")
        if kind not in _INTEGERS:
            raise NvmlFailure(call, UNKNOWN, f"field {number} is of type {kind}, which is no integer")
        return int(getattr(fields[0].value, _INTEGERS[kind]))

    def row_remap(self) -> tuple[bool | None, bool | None]:
        """Whether a row remap is pending, and whether one has failed."""
        call = "nvmlDeviceGetRemappedRows"
        rows = self._ask(call)
        if rows is not None:
            return _flag(call, rows[2]), _flag(call, rows[3])
        pending, failure = self.field(_REMAPPED_PENDING), self.field(_REMAPPED_FAILURE)
        return _flag("nvmlDeviceGetFieldValues", pending), _flag("nvmlDeviceGetFieldValues", failure)

    def retired_pages(self) -> bool | None:
        """Whether a page retirement is pending."""
        call = "nvmlDeviceGetRetiredPagesPendingStatus"
        return _flag(call, self._ask(call))

    def sram_threshold_exceeded(self) -> bool | None:
        call = "nvmlDeviceGetSramEccErrorStatus"
        status = self._nvml.bindings.c_nvmlEccSramErrorStatus_v1_t()
        answered = self._ask(call, byref(status))
        return None if answered is None else _flag(call, status.bThresholdExceeded)

    def _ask(self, call: str, *arguments: Any) -> Any | None:
        """The answer, or None where there can be none."""
        try:
            return self._nvml.call(call, self._handle, *arguments, about=self._about)
        except NvmlFailure as failure:
            if failure.code in _CANNOT_TELL:
                return None
            raise


def _flag(call: str, number: int | None) -> bool | None:
    if number is None:
        return None
    if number not in {0, 1}:
        raise NvmlFailure(call, UNKNOWN, f"the answer {number} is neither yes nor no")
    return bool(number)
