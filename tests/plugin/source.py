"""A source of health that says what a test wants."""

import threading
from queue import Empty, SimpleQueue

from gpustow.config import Config
from gpustow.hardware.node import Node
from gpustow.health.event import EventKind, HealthEvent, HealthSource, RecoveryAction, RecoveryProof

WELL = RecoveryProof(
    readable=True,
    uuid_matches=True,
    recovery_action=RecoveryAction.NONE,
    row_remap_pending=False,
    row_remap_failure=False,
    retired_pages_pending=False,
    sram_threshold_exceeded=False,
)
BROKEN = HealthEvent(EventKind.SOURCE_FAILED, detail="NVML is broken")


def xid(code: int, gpu_uuid: str, gpu_instance: int | None = None, compute_instance: int | None = None) -> HealthEvent:
    return HealthEvent(EventKind.XID, gpu_uuid, gpu_instance, compute_instance, xid=code)


class FakeSource:
    """Tells the events that are put into it; every GPU proves to be well unless `proofs` says otherwise."""

    def __init__(self) -> None:
        self.events: SimpleQueue[HealthEvent] = SimpleQueue()
        self.watched: list[tuple[str, ...]] = []
        self.proofs: dict[str, RecoveryProof] = {}
        self.asked: list[str] = []
        self.broken = False
        self.closed = threading.Event()

    def make(self, _config: Config) -> HealthSource:
        return self

    def watch(self, node: Node) -> tuple[HealthEvent, ...]:
        self.watched.append(tuple(gpu.uuid for gpu in node.gpus))
        return (BROKEN,) if self.broken else ()

    def wait(self, seconds: float) -> tuple[HealthEvent, ...]:
        try:
            return (self.events.get(timeout=seconds),)
        except Empty:
            return (BROKEN,) if self.broken else ()

    def proof(self, gpu_uuid: str) -> RecoveryProof:
        self.asked.append(gpu_uuid)
        return self.proofs.get(gpu_uuid, WELL)

    def close(self) -> None:
        self.closed.set()
