"""Watching GPUs: an NVML that is up, an event set, and the GPUs that are registered with it.

Handles hold as long as NVML is up, so they are not kept longer than this.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gpustow.hardware.node import Gpu
from gpustow.hardware.nvml.events import EventSet, NvmlEvent, address
from gpustow.hardware.nvml.library import Nvml, NvmlFailure
from gpustow.hardware.nvml.selfreport import SelfReport, read_self_report

MOST_EVENTS = 256
"""More events than this are left for the next wait."""


@dataclass(frozen=True, slots=True)
class WatchedGpu:
    """A GPU and its handle."""

    gpu: Gpu
    handle: Any


class GpuWatch:
    """Watches GPUs, each of which is registered once. `name` is that of the event set.

    Raises NvmlFailure if there is no event set to be had.
    """

    def __init__(self, nvml: Nvml, name: str, gpus: Sequence[Gpu]) -> None:
        self._nvml = nvml
        self._by_uuid = {gpu.uuid: gpu for gpu in gpus}
        self._events = EventSet(nvml, name)
        self._watched: dict[int | None, WatchedGpu] = {}

    @property
    def watched(self) -> tuple[WatchedGpu, ...]:
        """The GPUs that were to be registered and have a handle."""
        return tuple(self._watched.values())

    def register(self, gpu: Gpu) -> bool:
        """Has the GPU send its events here; False if it sends no XIDs.

        Raises NvmlFailure.
        """
        handle = self._handle(gpu.uuid)
        self._watched[address(handle)] = WatchedGpu(gpu, handle)
        return self._events.register(handle, self._about(gpu.uuid))

    def wait(self, seconds: float) -> list[NvmlEvent]:
        """What comes within so many seconds, as soon as there is something.

        Raises NvmlFailure if there is nothing because waiting fails.
        """
        event = self._events.wait(seconds)
        came: list[NvmlEvent] = []
        with suppress(NvmlFailure):  # the next wait fails too, and loses nothing
            while event is not None:
                came.append(event)
                event = self._events.wait(0.0) if len(came) < MOST_EVENTS else None
        return came

    def gpu_of(self, event: NvmlEvent) -> Gpu | None:
        """The watched GPU that sent the event."""
        watched = self._watched.get(event.device)
        return None if watched is None else watched.gpu

    def uuid_of(self, event: NvmlEvent) -> str:
        """The UUID that the handle of an event names, whoever that is. Raises NvmlFailure."""
        return str(self._nvml.call("nvmlDeviceGetUUID", event.handle, about="the GPU of an event"))

    def read_uuid(self, watched: WatchedGpu) -> str:
        """The UUID of a watched GPU, read again. Raises NvmlFailure."""
        return str(self._nvml.call("nvmlDeviceGetUUID", watched.handle, about=self._about(watched.gpu.uuid)))

    def read_again(self, uuid: str) -> tuple[str, SelfReport]:
        """The UUID that the handle for this UUID names, and what the GPU says of itself. Raises NvmlFailure."""
        about = self._about(uuid)
        handle = self._handle(uuid)
        found = str(self._nvml.call("nvmlDeviceGetUUID", handle, about=about))
        return found, read_self_report(self._nvml, handle, about)

    def free(self) -> None:
        """Ends watching."""
        with suppress(NvmlFailure):
            self._events.free()

    def _about(self, uuid: str) -> str:
        gpu = self._by_uuid.get(uuid)
        return uuid if gpu is None else f"GPU {gpu.index}"

    def _handle(self, uuid: str) -> Any:
        """The handle of the GPU with this UUID.

        NVML may touch every GPU to find one by its UUID, and fail because another one is lost; then the index helps.
        """
        about = self._about(uuid)
        try:
            return self._nvml.call("nvmlDeviceGetHandleByUUID", uuid, about=about)
        except NvmlFailure as failure:
            if failure.code is not None and uuid in self._by_uuid:
                with suppress(NvmlFailure):
                    handle = self._nvml.call("nvmlDeviceGetHandleByIndex", self._by_uuid[uuid].index, about=about)
                    if self._nvml.call("nvmlDeviceGetUUID", handle, about=about) == uuid:
                        return handle
            raise
