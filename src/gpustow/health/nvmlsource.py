"""The health of real GPUs, from NVML: one event set, with each physical GPU registered once.

NVML counts how often it was started. This source starts it for itself and keeps it up, so a reader that starts it and
shuts it down meanwhile takes nothing from it.

A GPU that NVML calls lost is told without waiting for an XID 79, which may never come: GPUs are looked at from time to
time. One that does not answer, or fails in another way, twice in a row cannot be watched. While one is lost or not
watched, NVML is started anew from time to time, because a process that keeps it up need not see that a GPU is back; the
reader sees it then too.

A wait that fails ends the watch, after a look at who is lost; `watch` begins with a new event set. Each call has a
deadline, and one that hangs is not made again before it returns (see `hardware.nvml.deadline`); names of event sets
come again, so that only few waits can hang.

Limits: an event in the moment between two event sets is lost, unless it has left something that can still be read.
"""

import logging
import time
from collections.abc import Callable
from itertools import count

from gpustow.errors import HardwareError
from gpustow.hardware.node import Gpu, Node
from gpustow.hardware.nvml import DEADLINE
from gpustow.hardware.nvml.deadline import DeadlineCaller
from gpustow.hardware.nvml.events import DOUBLE_BIT_ECC, SINGLE_BIT_ECC, XID_CRITICAL, NvmlEvent
from gpustow.hardware.nvml.library import GPU_IS_LOST, NOT_SUPPORTED, RESET_REQUIRED, Nvml, NvmlFailure
from gpustow.hardware.nvml.observer import CallObserver
from gpustow.hardware.nvml.watch import GpuWatch
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof
from gpustow.health.xids import FALLEN_OFF_THE_BUS

log = logging.getLogger(__name__)

LOOK_EVERY = 30.0
"""Seconds after which the GPUs are looked at, to see whether they are there."""

RENEW_EVERY = 60.0
"""Seconds after which NVML is started anew while a GPU is lost or not watched."""

_LONGEST_WAIT = 5.0
_EVENT_SETS = 3
_HANGS_BEFORE_LEAVING = 2
_LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED})
_KINDS = {
    XID_CRITICAL: EventKind.XID,
    DOUBLE_BIT_ECC: EventKind.ECC_DOUBLE,
    SINGLE_BIT_ECC: EventKind.ECC_SINGLE,
}


class NvmlSource:
    """A HealthSource for a machine with NVIDIA's driver. `driver_root` is where the driver is mounted.

    `deadline` is for each call, in seconds; `clock` is monotonic, `sleep` waits where NVML does not;
    `calls` is told of each call.
    """

    def __init__(
        self,
        driver_root: str = "",
        *,
        deadline: float = DEADLINE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        calls: CallObserver | None = None,
    ) -> None:
        self._driver_root = driver_root
        self._caller = DeadlineCaller(deadline, calls)
        self._clock = clock
        self._sleep = sleep
        self._nvml: Nvml | None = None
        self._watch: GpuWatch | None = None
        self._idle_because = "nothing is watched yet"
        self._sets = count()
        self._gpus: tuple[Gpu, ...] = ()
        self._unwatched: dict[str, HealthEvent] = {}
        self._sought: set[str] = set()
        self._silent: set[str] = set()
        self._pending: list[HealthEvent] = []
        self._looked_at = self._renewed_at = clock()

    def watch(self, node: Node) -> tuple[HealthEvent, ...]:
        """Watches the GPUs of the node from now on, see HealthSource."""
        self._keep_what_came()
        self._gpus = node.gpus
        return self._start()

    def wait(self, seconds: float) -> tuple[HealthEvent, ...]:
        """What happens within so many seconds, see HealthSource."""
        now = self._clock()
        if self._watch is not None and self._sought and now - self._renewed_at >= RENEW_EVERY:
            self._keep_what_came()
            self._pending += self._start()
        if self._watch is not None and now - self._looked_at >= LOOK_EVERY:
            self._pending += self._look(self._watch)
        pending, self._pending = self._pending, []
        if self._watch is None:
            if not pending:
                self._sleep(seconds)
                pending = [self._failed()]
            return tuple(pending)
        return (*pending, *self._gather(self._watch, 0.0 if pending else seconds))

    def proof(self, gpu_uuid: str) -> RecoveryProof:
        """What the GPU says when it is read again, see HealthSource. One that is not watched proves nothing."""
        if self._watch is None:
            return RecoveryProof(readable=False, uuid_matches=False, detail=self._idle_because)
        if gpu_uuid in self._unwatched:
            detail = f"it is not watched: {self._unwatched[gpu_uuid].detail}"
            return RecoveryProof(readable=False, uuid_matches=False, detail=detail)
        try:
            found, report = self._watch.read_again(gpu_uuid)
        except NvmlFailure as failure:
            self._sought.add(gpu_uuid)
            return RecoveryProof(readable=False, uuid_matches=False, detail=str(failure))
        action = None if report.recovery_action is None else RecoveryAction.of(report.recovery_action)
        return RecoveryProof(
            readable=True,
            uuid_matches=found == gpu_uuid,
            recovery_action=action,
            row_remap_pending=report.row_remap_pending,
            row_remap_failure=report.row_remap_failure,
            retired_pages_pending=report.retired_pages_pending,
            sram_threshold_exceeded=report.sram_threshold_exceeded,
            detail="" if found == gpu_uuid else f"it names itself {found}",
        )

    def close(self) -> None:
        """Ends watching and shuts NVML down, unless one of its calls still hangs: that is left behind."""
        self._let_go("it is closed")
        if self._nvml is not None and not self._caller.stuck:
            self._nvml.close()
        self._nvml = None
        self._caller.close()

    def _start(self) -> tuple[HealthEvent, ...]:
        """Watches with a new event set, on an NVML that is started anew unless one of its calls still hangs."""
        self._renewed_at = self._looked_at = self._clock()
        self._let_go("it is started anew")
        try:
            watch = GpuWatch(self._open(), f"event set {next(self._sets) % _EVENT_SETS}", self._gpus)
        except (HardwareError, NvmlFailure) as error:
            self._idle_because = str(error)
            return (self._failed(),)
        missed = {gpu.uuid: event for gpu in self._gpus if (event := _register(watch, gpu)) is not None}
        self._watch = watch
        self._unwatched = {uuid: event for uuid, event in missed.items() if event.kind is not EventKind.UNSUPPORTED}
        self._sought -= {gpu.uuid for gpu in self._gpus}
        self._sought |= self._unwatched.keys()
        return tuple(missed.values())

    def _open(self) -> Nvml:
        if self._nvml is not None and not self._caller.stuck:
            self._nvml.close()
            self._nvml = None
        if self._nvml is None:
            self._nvml = Nvml(self._driver_root, self._caller)
        return self._nvml

    def _let_go(self, why: str) -> None:
        if self._watch is not None:
            self._watch.free()
        self._watch = None
        self._idle_because = why

    def _failed(self) -> HealthEvent:
        return HealthEvent(EventKind.SOURCE_FAILED, detail=self._idle_because)

    def _keep_what_came(self) -> None:
        """Takes what the event set has, before it goes."""
        if self._watch is not None:
            try:
                self._pending += [self._event(self._watch, event) for event in self._watch.wait(0.0)]
            except NvmlFailure as failure:
                log.warning("what happened lately may not be told: %s", failure)

    def _gather(self, watch: GpuWatch, seconds: float) -> tuple[HealthEvent, ...]:
        """What the driver tells within so many seconds."""
        left = seconds
        while True:
            part = min(left, _LONGEST_WAIT)
            began = self._clock()
            try:
                came = watch.wait(part)
            except NvmlFailure as failure:
                found = self._look(watch)
                self._let_go(str(failure))
                return (*found, self._failed())
            left -= part
            early = part - (self._clock() - began)
            if came:
                return tuple(self._event(watch, event) for event in came)
            if early > 0:
                self._sleep(early)
            if left <= 0:
                return ()

    def _look(self, watch: GpuWatch) -> list[HealthEvent]:
        """Finds out which of the watched GPUs are lost, or have failed the last time too."""
        self._looked_at = self._clock()
        silent: set[str] = set()
        found = []
        hangs = 0
        for watched in watch.watched:
            uuid = watched.gpu.uuid
            if hangs == _HANGS_BEFORE_LEAVING:
                silent |= self._silent & {uuid}
                continue
            try:
                watch.read_uuid(watched)
            except NvmlFailure as failure:
                if failure.code in _LOST:
                    found.append(HealthEvent(EventKind.LOST, uuid, detail=str(failure)))
                    continue
                silent.add(uuid)
                if uuid in self._silent:
                    found.append(HealthEvent(EventKind.UNWATCHED, uuid, detail=str(failure)))
                elif failure.code is None:
                    hangs += 1
        self._silent = silent
        self._sought |= {event.gpu_uuid for event in found if event.gpu_uuid is not None}
        return found

    def _event(self, watch: GpuWatch, event: NvmlEvent) -> HealthEvent:
        """What the driver told, in our words. Without MIG, what it says of instances says nothing."""
        gpu = watch.gpu_of(event)
        uuid, detail = (gpu.uuid, "") if gpu is not None else _foreign(watch, event)
        by_instance = gpu is None or gpu.mig_enabled
        kind = _KINDS[event.kind]
        if kind is EventKind.XID and event.data == FALLEN_OFF_THE_BUS and uuid is not None:
            self._sought.add(uuid)
        return HealthEvent(
            kind=kind,
            gpu_uuid=uuid,
            gpu_instance=event.gpu_instance if by_instance else None,
            compute_instance=event.compute_instance if by_instance else None,
            xid=event.data if kind is EventKind.XID else None,
            detail=detail,
        )


def _register(watch: GpuWatch, gpu: Gpu) -> HealthEvent | None:
    """Registers the GPU; the event that tells why it is not, or None."""
    try:
        if watch.register(gpu):
            return None
    except NvmlFailure as failure:
        if failure.code in _LOST:
            kind = EventKind.LOST
        elif failure.code == NOT_SUPPORTED and failure.call == "nvmlDeviceRegisterEvents":
            kind = EventKind.UNSUPPORTED
        else:
            kind = EventKind.UNWATCHED
        return HealthEvent(kind, gpu.uuid, detail=str(failure))
    return HealthEvent(EventKind.UNSUPPORTED, gpu.uuid)


def _foreign(watch: GpuWatch, event: NvmlEvent) -> tuple[str | None, str]:
    """The UUID behind a handle that none of the watched GPUs has; None, and why, where it cannot be read."""
    if event.device is None:
        return None, "the driver does not say which GPU"
    try:
        return watch.uuid_of(event), ""
    except NvmlFailure as failure:
        return None, f"the UUID of the GPU cannot be read: {failure}"
