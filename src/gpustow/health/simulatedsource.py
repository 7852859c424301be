"""The health of simulated GPUs, from the schedule of faults of a node model.

An XID and the loss of a GPU are told at their time. XIDs from before the first `watch` are told too, so that a fault at
the beginning of a schedule is not missed by a daemon that takes a moment to start. An XID leaves nothing behind: the
GPU says at once that it is well. A GPU that is lost is not readable until it is back. A slow NVML makes `watch` and
`proof` slow, as it does reading.

Limits: a schedule has no ECC events, no pending repairs and no recovery actions.
"""

import time
from collections.abc import Callable, Iterable

from gpustow.hardware.faults import GpuLost, XidFault, reading_delay
from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import NodeModel
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof

_BEFORE_ALL = -1.0


class SimulatedSource:
    """A HealthSource for a node model. `elapsed` is that of its reader: seconds since the schedule began."""

    def __init__(
        self, model: NodeModel, *, elapsed: Callable[[], float], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._faults = model.faults
        self._happenings = sorted(
            (fault for fault in model.faults if isinstance(fault, XidFault | GpuLost)), key=lambda fault: fault.after
        )
        self._uuids = {gpu.index: gpu.uuid for gpu in model.node.gpus}
        self._elapsed = elapsed
        self._sleep = sleep
        self._watched: frozenset[str] | None = None
        self._told_until = _BEFORE_ALL

    def watch(self, node: Node) -> tuple[HealthEvent, ...]:
        """Watches the GPUs of the node from now on, see HealthSource."""
        self._be_slow()
        self._watched = frozenset(gpu.uuid for gpu in node.gpus)
        now = self._elapsed()
        return self._told(fault for fault in self._happenings if isinstance(fault, GpuLost) and fault.is_on(now))

    def wait(self, seconds: float) -> tuple[HealthEvent, ...]:
        """What happens within so many seconds, see HealthSource."""
        if self._watched is None:
            self._sleep(seconds)
            return (HealthEvent(EventKind.SOURCE_FAILED, detail="nothing is watched yet"),)
        now = self._elapsed()
        next_one = min((fault.after for fault in self._happenings if fault.after > self._told_until), default=None)
        left = seconds if next_one is None else min(seconds, next_one - now)
        if left > 0:
            self._sleep(left)
        before, self._told_until = self._told_until, max(self._elapsed(), self._told_until)
        came = (fault for fault in self._happenings if before < fault.after <= self._told_until)
        return self._told(fault for fault in came if isinstance(fault, XidFault) or fault.is_on(self._told_until))

    def proof(self, gpu_uuid: str) -> RecoveryProof:
        """What the GPU says when it is read again, see HealthSource."""
        self._be_slow()
        if gpu_uuid not in self._uuids.values():
            return RecoveryProof(readable=False, uuid_matches=False, detail="the node model has no such GPU")
        if gpu_uuid in self._lost():
            return RecoveryProof(readable=False, uuid_matches=False, detail="the GPU is lost")
        return RecoveryProof(
            readable=True,
            uuid_matches=True,
            recovery_action=RecoveryAction.NONE,
            row_remap_pending=False,
            row_remap_failure=False,
            retired_pages_pending=False,
            sram_threshold_exceeded=False,
        )

    def close(self) -> None:
        """Ends watching."""
        self._watched = None

    def _be_slow(self) -> None:
        delay = reading_delay(self._faults, self._elapsed())
        if delay:
            self._sleep(delay)

    def _lost(self) -> set[str]:
        now = self._elapsed()
        return {self._uuids[fault.gpu] for fault in self._faults if isinstance(fault, GpuLost) and fault.is_on(now)}

    def _told(self, faults: Iterable[XidFault | GpuLost]) -> tuple[HealthEvent, ...]:
        """The events that the faults of watched GPUs make."""
        watched = self._watched or frozenset()
        return tuple(self._event(fault) for fault in faults if self._uuids[fault.gpu] in watched)

    def _event(self, fault: XidFault | GpuLost) -> HealthEvent:
        uuid = self._uuids[fault.gpu]
        if isinstance(fault, GpuLost):
            return HealthEvent(EventKind.LOST, uuid, detail=fault.text)
        return HealthEvent(
            EventKind.XID,
            uuid,
            gpu_instance=fault.gpu_instance,
            compute_instance=fault.compute_instance,
            xid=fault.code,
        )
