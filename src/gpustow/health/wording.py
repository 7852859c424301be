"""Events and proofs in words, for the log and for whoever asks why a device is unfit."""

from gpustow.hardware.node import Node
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof
from gpustow.health.target import Target
from gpustow.health.xids import meaning_of

_WORDS = {
    EventKind.ECC_SINGLE: "a memory error was corrected",
    EventKind.ECC_DOUBLE: "a memory error could not be corrected",
    EventKind.ROW_REMAP_PENDING: "a row remap is pending; drain the GPU and reset it",
    EventKind.ROW_REMAP_FAILURE: "a row could not be remapped; contact NVIDIA support",
    EventKind.PAGE_RETIREMENT_PENDING: "a page retirement is pending; drain the GPU and reset it",
    EventKind.SRAM_THRESHOLD: "its SRAM had too many uncorrectable errors; contact NVIDIA support",
    EventKind.LOST: "the GPU is lost; drain the node and reboot it",
    EventKind.UNWATCHED: "the GPU cannot be watched",
    EventKind.UNSUPPORTED: "the GPU reports no events, so it is not watched",
    EventKind.SOURCE_FAILED: "GPUs cannot be watched",
}

_ACTIONS = {
    RecoveryAction.NONE: "the driver wants nothing done",
    RecoveryAction.GPU_RESET: "the driver wants the GPU reset",
    RecoveryAction.NODE_REBOOT: "the driver wants the node rebooted, which concerns all its GPUs",
    RecoveryAction.DRAIN_P2P: "the driver wants traffic between GPUs to end",
    RecoveryAction.DRAIN_AND_RESET: "the driver wants the GPU drained and reset",
    RecoveryAction.RECOVER_IMEX_DOMAIN: "the driver wants the IMEX domain repaired",
    RecoveryAction.BUS_RESET: "the driver wants the GPU reset at the bus",
    RecoveryAction.SYSTEM_REBOOT: "the driver wants the system rebooted, which concerns all its GPUs",
    RecoveryAction.UNKNOWN: "the driver wants an action that is not known here",
}

_SEE = " (see health.recovery.unknownIsProof)"


def reason_of(event: HealthEvent) -> str:
    """What happened, and what to do about it."""
    detail = f" ({event.detail})" if event.detail else ""
    if event.kind is EventKind.XID:
        return f"XID {event.xid}{detail}: {meaning_of(event.xid or 0)}"
    if event.kind is EventKind.RECOVERY_ACTION:
        return _ACTIONS[event.recovery_action or RecoveryAction.NONE] + detail
    return _WORDS[event.kind] + detail


def place_of(event: HealthEvent, node: Node) -> str:
    """What the event names. A GPU that is not on the node as it was read last has its UUID alone."""
    if event.gpu_uuid is None:
        return "all GPUs"
    parts = [next((str(Target.of_gpu(gpu)) for gpu in node.gpus if gpu.uuid == event.gpu_uuid), event.gpu_uuid)]
    if event.gpu_instance is not None:
        parts.append(f"GPU instance {event.gpu_instance}")
    if event.compute_instance is not None:
        parts.append(f"compute instance {event.compute_instance}")
    return ", ".join(parts)


def lacks(proof: RecoveryProof, *, unknown_is_proof: bool) -> str:
    """What keeps a GPU from being well; empty if it is.

    What repairs are pending is told by a row remap on Ampere and newer and by page retirement before, never by both; so
    one of them has to be told. With `unknown_is_proof` nothing has to be.
    """
    wants = proof.recovery_action
    no_repair_told = proof.row_remap_pending is None and proof.retired_pages_pending is None
    lacking = (
        (not proof.readable, f"it cannot be read{_detail(proof)}"),
        (not proof.uuid_matches, f"another GPU answers to its UUID{_detail(proof)}"),
        (bool(wants), _ACTIONS[wants or RecoveryAction.NONE]),
        (proof.row_remap_failure, _WORDS[EventKind.ROW_REMAP_FAILURE]),
        (proof.row_remap_pending, _WORDS[EventKind.ROW_REMAP_PENDING]),
        (proof.retired_pages_pending, _WORDS[EventKind.PAGE_RETIREMENT_PENDING]),
        (proof.sram_threshold_exceeded, _WORDS[EventKind.SRAM_THRESHOLD]),
        (wants is None and not unknown_is_proof, f"it cannot tell whether the driver wants something done to it{_SEE}"),
        (no_repair_told and not unknown_is_proof, f"it cannot tell whether a memory repair is pending{_SEE}"),
    )
    return next((text for holds, text in lacking if holds), "")


def _detail(proof: RecoveryProof) -> str:
    return f": {proof.detail}" if proof.detail else ""
