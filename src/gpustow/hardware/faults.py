"""What goes wrong on a simulated node, and when: faults on a schedule.

Times are seconds since the schedule began. Faults that concern reading (a lost GPU, a slow NVML, a changed MIG layout)
are applied to a node here; an XID changes nothing that can be read and is for whoever watches health.

Limits: a fault is about one GPU or the whole driver. Faults do not cause each other: a lost GPU sends no XID 79 unless
the schedule says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpustow.hardware.links import Links
from gpustow.hardware.mig import MigDevice
from gpustow.hardware.node import Node


@dataclass(frozen=True, slots=True)
class XidFault:
    """The driver reports XID `code` for the GPU with this NVML index, for one MIG instance of it where given."""

    after: float
    gpu: int
    code: int
    gpu_instance: int | None = None
    compute_instance: int | None = None

    @property
    def text(self) -> str:
        """The fault in words."""
        instance = "" if self.gpu_instance is None else f", GPU instance {self.gpu_instance}"
        return f"GPU {self.gpu}{instance} reports XID {self.code}"


@dataclass(frozen=True, slots=True)
class GpuLost:
    """The GPU with this NVML index falls off the bus; it is back after `duration` seconds, or never (None)."""

    after: float
    gpu: int
    duration: float | None = None

    def is_on(self, elapsed: float) -> bool:
        """Whether the GPU is lost at this time."""
        return _is_on(self.after, self.duration, elapsed)

    @property
    def text(self) -> str:
        """The fault in words."""
        return f"GPU {self.gpu} is lost{_for(self.duration)}"


@dataclass(frozen=True, slots=True)
class SlowNvml:
    """Reading the node takes `delay` seconds longer, for `duration` seconds or for good (None)."""

    after: float
    delay: float
    duration: float | None = None

    def is_on(self, elapsed: float) -> bool:
        """Whether NVML is slow at this time."""
        return _is_on(self.after, self.duration, elapsed)

    @property
    def text(self) -> str:
        """The fault in words."""
        return f"reading takes {self.delay:g} s longer{_for(self.duration)}"


@dataclass(frozen=True, slots=True)
class MigReconfigured:
    """The GPU with this NVML index has another MIG mode and other MIG devices from now on."""

    after: float
    gpu: int
    enabled: bool
    devices: tuple[MigDevice, ...]

    @property
    def text(self) -> str:
        """The fault in words."""
        names = " ".join(device.profile.name for device in self.devices)
        return f"GPU {self.gpu} is " + (f"cut into {names or 'nothing'}" if self.enabled else "in MIG mode no more")


def _is_on(after: float, duration: float | None, elapsed: float) -> bool:
    return after <= elapsed and (duration is None or elapsed < after + duration)


def _for(duration: float | None) -> str:
    return "" if duration is None else f" for {duration:g} s"


Fault = XidFault | GpuLost | SlowNvml | MigReconfigured


def reading_delay(faults: Sequence[Fault], elapsed: float) -> float:
    """How many seconds a reading takes longer at this time."""
    return sum(fault.delay for fault in faults if isinstance(fault, SlowNvml) and fault.is_on(elapsed))


def node_at(node: Node, faults: Sequence[Fault], elapsed: float) -> Node:
    """The node as a reader finds it at this time: without the GPUs that are lost, with the MIG devices of then."""
    lost = {fault.gpu for fault in faults if isinstance(fault, GpuLost) and fault.is_on(elapsed)}
    changes = {
        fault.gpu: fault
        for fault in sorted((fault for fault in faults if isinstance(fault, MigReconfigured)), key=lambda f: f.after)
        if fault.after <= elapsed
    }
    gpus = []
    for gpu in node.gpus:
        change = changes.get(gpu.index)
        if gpu.index not in lost:
            gpus.append(gpu if change is None else replace(gpu, mig_enabled=change.enabled, mig_devices=change.devices))
    readings = tuple(entry for entry in node.links.readings if not lost.intersection(entry[0]))
    notes = tuple(lost_note(index) for index in sorted(lost))
    return replace(
        node, gpus=tuple(gpus), links=Links(readings), notes=(*node.notes, *notes), unreadable=tuple(sorted(lost))
    )


def phase(faults: Sequence[Fault], elapsed: float) -> frozenset[int]:
    """The faults, by number, that a node shows at this time; where they are the same, `node_at` is."""
    return frozenset(
        number
        for number, fault in enumerate(faults)
        if (isinstance(fault, GpuLost) and fault.is_on(elapsed))
        or (isinstance(fault, MigReconfigured) and fault.after <= elapsed)
    )


def lost_note(index: int) -> str:
    """What a reader notes about a GPU that is lost."""
    return f"GPU {index} is lost: it is left out"
