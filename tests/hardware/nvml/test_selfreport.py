"""What a GPU says of itself, where the answer is a structure; how each call fails is tried on the fake library."""

from ctypes import c_ulonglong
from types import SimpleNamespace
from typing import Any

import pytest

from gpustow.hardware.nvml.events import NvmlEvent
from gpustow.hardware.nvml.library import GPU_IS_LOST, NOT_SUPPORTED, Nvml, NvmlFailure
from gpustow.hardware.nvml.selfreport import SelfReport, read_self_report
from gpustow.hardware.nvml.watch import GpuWatch

UNSIGNED_INT, UNSIGNED_LONG_LONG, DOUBLE = 1, 3, 0


class _Answers(Nvml):
    """An NVML in which fields have this answer, and nothing else is supported."""

    def __init__(self, code: int, kind: int, value: int) -> None:
        self.bindings = SimpleNamespace(NVMLError=lambda number: f"error {number}", **_STRUCTURES)
        self._field = SimpleNamespace(
            nvmlReturn=code, valueType=kind, value=SimpleNamespace(uiVal=value, ullVal=value + (1 << 32))
        )

    def call(self, name: str, *arguments: Any, about: str = "", waits: float = 0.0) -> Any:
        del arguments, waits
        if name == "nvmlDeviceGetFieldValues":
            return [self._field]
        if name in {"nvmlDeviceGetUUID", "nvmlEventSetCreate"}:
            return about
        raise NvmlFailure(name, NOT_SUPPORTED, "Not Supported")


_STRUCTURES = {"c_nvmlEccSramErrorStatus_v1_t": c_ulonglong}


def test_a_field_is_read_by_its_type() -> None:
    assert read_self_report(_Answers(0, UNSIGNED_INT, 1), None, "GPU 0") == SelfReport(
        recovery_action=1, row_remap_pending=True, row_remap_failure=True
    )
    with pytest.raises(NvmlFailure, match="4294967297 is neither yes nor no"):
        read_self_report(_Answers(0, UNSIGNED_LONG_LONG, 1), None, "GPU 0")


def test_a_field_that_is_not_supported_says_nothing() -> None:
    assert read_self_report(_Answers(NOT_SUPPORTED, UNSIGNED_INT, 1), None, "GPU 0") == SelfReport()


def test_a_field_that_fails_is_a_failure_with_its_own_code() -> None:
    with pytest.raises(NvmlFailure, match="field 230: error 15") as caught:
        read_self_report(_Answers(GPU_IS_LOST, UNSIGNED_INT, 0), None, "GPU 0")
    assert caught.value.code == GPU_IS_LOST


def test_a_field_that_is_no_integer_is_no_answer() -> None:
    with pytest.raises(NvmlFailure, match="field 230 is of type 0, which is no integer"):
        read_self_report(_Answers(0, DOUBLE, 0), None, "GPU 0")


def test_the_gpu_of_an_event_can_be_asked_for_its_uuid() -> None:
    event = NvmlEvent(8, 79, handle=None, device=7, gpu_instance=None, compute_instance=None)
    watch = GpuWatch(_Answers(0, UNSIGNED_INT, 0), "events", ())
    assert watch.gpu_of(event) is None
    assert watch.uuid_of(event) == "the GPU of an event"
