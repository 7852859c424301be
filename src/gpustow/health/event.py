"""What a source of health tells: events, and what a GPU says of itself when it is asked whether it is well.

Values only, without any driver handle. A source says what happened; whether that makes a device unfit is decided by
the policy, and whether it is fit again by the conditions. So a source judges nothing: a GPU with a pending row remap is
readable, and says that a remap is pending.

Limits: NVML names an XID by its number alone. The sub-codes that NVLink 5 has (144 to 150) do not come through it.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol

from gpustow.hardware.node import Node


class EventKind(Enum):
    """What happened. The values are the words that logs, metrics and the configuration use."""

    XID = "xid"
    """The driver reported the XID `HealthEvent.xid`."""
    ECC_SINGLE = "eccSingleBit"
    ECC_DOUBLE = "eccDoubleBit"
    ROW_REMAP_PENDING = "rowRemapPending"
    ROW_REMAP_FAILURE = "rowRemapFailure"
    PAGE_RETIREMENT_PENDING = "pageRetirementPending"
    SRAM_THRESHOLD = "sramThreshold"
    """The SRAM of the GPU has had more uncorrectable errors than it may."""
    RECOVERY_ACTION = "recoveryAction"
    """The driver wants `HealthEvent.recovery_action` done to the GPU."""
    LOST = "lost"
    """The GPU is gone from the bus, or wants a reset before it can be read (NVML: GPU_IS_LOST, RESET_REQUIRED)."""
    UNWATCHED = "unwatched"
    """The GPU cannot be watched although it should be possible: its handle, event types or registration failed."""
    UNSUPPORTED = "unsupported"
    """The GPU reports no events at all, which some models do not."""
    SOURCE_FAILED = "sourceFailed"
    """The source itself does not work: it cannot start, its wait fails, or it does not come back."""


class RecoveryAction(IntEnum):
    """What the driver wants done to a GPU: NVML's field 230, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, by its numbers.

    6 and 7 are in nvidia-ml-py 13.615 and not yet in every driver's header.
    """

    NONE = 0
    GPU_RESET = 1
    NODE_REBOOT = 2
    DRAIN_P2P = 3
    DRAIN_AND_RESET = 4
    RECOVER_IMEX_DOMAIN = 5
    BUS_RESET = 6
    SYSTEM_REBOOT = 7
    UNKNOWN = -1
    """A number that we have no name for; it is not nothing."""

    @classmethod
    def of(cls, number: int) -> "RecoveryAction":
        """The action that NVML calls by this number."""
        return cls(number) if number in cls._value2member_map_ else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class HealthEvent:
    """One thing that happened.

    `gpu_uuid` is the physical GPU's; None stands for every GPU, which is also right where the event's GPU could not be
    read. `gpu_instance` and `compute_instance` are None where NVML says 0xFFFFFFFF: then the whole GPU is meant.
    `xid` is set for an XID alone, 999 for one that the driver does not name. `detail` is for the log: NVML's error
    text, or how long a call has hung.
    """

    kind: EventKind
    gpu_uuid: str | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None
    xid: int | None = None
    recovery_action: RecoveryAction | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RecoveryProof:
    """What a GPU says when it is read again. None means that it cannot tell (no such field, driver too old).

    `readable` is whether a handle could be had from the UUID and answers; `uuid_matches` whether that handle names the
    same UUID. `sram_threshold_exceeded` is whether its SRAM has had more uncorrectable errors than it may. `detail`
    says what failed.
    """

    readable: bool
    uuid_matches: bool
    recovery_action: RecoveryAction | None = None
    row_remap_pending: bool | None = None
    row_remap_failure: bool | None = None
    retired_pages_pending: bool | None = None
    sram_threshold_exceeded: bool | None = None
    detail: str = ""


class HealthSource(Protocol):
    """Tells what happens to the GPUs of a node.

    Every method may block and is called from one thread at a time, not always the same one. None of them raises: a
    failure is an event, or a proof that says so.
    """

    def watch(self, node: Node) -> tuple[HealthEvent, ...]:
        """Watches these GPUs from now on and no others, each registered once, however many devices are on it.

        May be called again, after a rescan or to start anew after a failure. Returns an UNWATCHED, UNSUPPORTED or
        LOST for each GPU that is not watched, and SOURCE_FAILED if nothing is.
        """
        ...

    def wait(self, seconds: float) -> tuple[HealthEvent, ...]:
        """Waits until something happens, `seconds` at most. Returns what happened; nothing if all was quiet."""
        ...

    def proof(self, gpu_uuid: str) -> RecoveryProof:
        """Reads the GPU again, from its UUID on."""
        ...

    def close(self) -> None:
        """Ends watching and frees what it took. No call follows, except a second `close`."""
        ...
