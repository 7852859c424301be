"""Events of the driver: a set that GPUs are registered with, and waiting for what they send.

A set whose wait has not returned is not freed: the driver still uses it. It stays in memory with the call.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

from gpustow.hardware.nvml.library import TIMEOUT, UNKNOWN, Nvml, NvmlFailure

SINGLE_BIT_ECC = 0x1
DOUBLE_BIT_ECC = 0x2
XID_CRITICAL = 0x8

WANTED = SINGLE_BIT_ECC | DOUBLE_BIT_ECC | XID_CRITICAL
"""The types that k8s-device-plugin v0.20.0 asks for."""

_NO_INSTANCE = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class NvmlEvent:
    """One event; `kind` is one of the types above. `device` is the address of the GPU's handle, None for no GPU.

    `handle` is that handle. The instances are None where the event is about the whole GPU.
    """

    kind: int
    data: int
    handle: Any
    device: int | None
    gpu_instance: int | None
    compute_instance: int | None


class EventSet:
    """A set of events. `name` tells it from others when a wait for it hangs. Raises NvmlFailure."""

    def __init__(self, nvml: Nvml, name: str) -> None:
        self._nvml = nvml
        self._name = name
        self._set = nvml.call("nvmlEventSetCreate", about=name)
        self._in_use = False

    def register(self, handle: Any, about: str) -> bool:
        """Has the GPU send what it supports of the wanted types; False if XIDs are not among them.

        Raises NvmlFailure.
        """
        types = WANTED & self._nvml.call("nvmlDeviceGetSupportedEventTypes", handle, about=about)
        if types:
            self._nvml.call("nvmlDeviceRegisterEvents", handle, types, self._set, about=about)
        return bool(types & XID_CRITICAL)

    def wait(self, seconds: float) -> NvmlEvent | None:
        """The next event, or None if there was none for so long.

        Raises:
            NvmlFailure: the wait fails or does not return, or what came is not what was asked for.
        """
        wait, milliseconds = "nvmlEventSetWait_v2", int(seconds * 1000)
        try:
            data = self._nvml.call(wait, self._set, milliseconds, about=self._name, waits=seconds)
        except NvmlFailure as failure:
            if failure.code == TIMEOUT:
                return None
            self._in_use = failure.code is None
            raise
        if data.eventType not in {SINGLE_BIT_ECC, DOUBLE_BIT_ECC, XID_CRITICAL}:
            text = f"an event of type {data.eventType:#x} came, which was not asked for"
            raise NvmlFailure(wait, UNKNOWN, text)
        return NvmlEvent(
            kind=int(data.eventType),
            data=int(data.eventData),
            handle=data.device,
            device=address(data.device),
            gpu_instance=_instance(data.gpuInstanceId),
            compute_instance=_instance(data.computeInstanceId),
        )

    def free(self) -> None:
        """Frees the set, unless a wait for it has not returned. Raises NvmlFailure."""
        if not self._in_use:
            self._nvml.call("nvmlEventSetFree", self._set, about=self._name)


def address(handle: Any) -> int | None:
    """Where a handle points: the same for all handles of a GPU, as long as NVML is up."""
    return ctypes.cast(handle, ctypes.c_void_p).value


def _instance(number: int) -> int | None:
    return None if number == _NO_INSTANCE else int(number)
