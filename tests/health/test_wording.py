"""Events and proofs in words."""

from dataclasses import replace

import pytest

from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof
from gpustow.health.wording import lacks, place_of, reason_of
from tests.health.machines import NODE, SILENT, UNREADABLE, WELL, xid


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (xid(31), "XID 31: MMU fault: job used an unmapped or forbidden address; restart the application; if it"),
        (HealthEvent(EventKind.XID, "GPU-0", xid=48, detail="again"), "XID 48 (again): Uncorrectable memory error"),
        (xid(999), "XID 999: an XID that the driver does not name"),
        (HealthEvent(EventKind.LOST, detail="GPU is lost"), "the GPU is lost; drain the node and reboot it (GPU is"),
        (
            HealthEvent(EventKind.RECOVERY_ACTION, recovery_action=RecoveryAction.NODE_REBOOT),
            "the driver wants the node rebooted, which concerns all its GPUs",
        ),
        (HealthEvent(EventKind.RECOVERY_ACTION), "the driver wants nothing done"),
    ],
)
def test_a_reason_says_what_happened_and_what_to_do(event: HealthEvent, text: str) -> None:
    assert reason_of(event).startswith(text)


@pytest.mark.parametrize("kind", EventKind)
def test_every_kind_has_words(kind: EventKind) -> None:
    assert len(reason_of(HealthEvent(kind, xid=1 if kind is EventKind.XID else None))) > 10


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (xid(1, None), "all GPUs"),
        (xid(1), "GPU 0 (GPU-0)"),
        (xid(1, "GPU-9"), "GPU-9"),
        (xid(1, "GPU-0", 3), "GPU 0 (GPU-0), GPU instance 3"),
        (xid(1, "GPU-0", 3, 0), "GPU 0 (GPU-0), GPU instance 3, compute instance 0"),
    ],
)
def test_a_place_is_what_the_event_names(event: HealthEvent, text: str) -> None:
    assert place_of(event, NODE) == text


@pytest.mark.parametrize(
    "proof",
    [WELL, replace(WELL, row_remap_pending=None, row_remap_failure=None, retired_pages_pending=False)],
    ids=["row remap", "page retirement"],
)
def test_a_gpu_is_well_that_says_so(proof: RecoveryProof) -> None:
    assert lacks(proof, unknown_is_proof=False) == ""


@pytest.mark.parametrize("unknown_is_proof", [False, True])
@pytest.mark.parametrize(
    ("proof", "text"),
    [
        (UNREADABLE, "it cannot be read: Unknown Error"),
        (RecoveryProof(False, True), "it cannot be read"),
        (replace(WELL, uuid_matches=False), "another GPU answers to its UUID"),
        *((replace(WELL, recovery_action=action), "the driver wants") for action in RecoveryAction if action),
        (replace(WELL, row_remap_pending=True), "a row remap is pending; drain the GPU and reset it"),
        (replace(WELL, row_remap_failure=True), "a row could not be remapped; contact NVIDIA support"),
        (replace(WELL, sram_threshold_exceeded=True), "its SRAM had too many uncorrectable errors; contact"),
        (replace(SILENT, retired_pages_pending=True), "a page retirement is pending"),
    ],
)
def test_a_gpu_is_not_well_that_says_so(proof: RecoveryProof, text: str, *, unknown_is_proof: bool) -> None:
    assert lacks(proof, unknown_is_proof=unknown_is_proof).startswith(text)


@pytest.mark.parametrize(
    ("proof", "text"),
    [
        (SILENT, "it cannot tell whether the driver wants something done to it"),
        (replace(SILENT, row_remap_pending=False), "it cannot tell whether the driver wants something done to it"),
        (replace(SILENT, recovery_action=RecoveryAction.NONE), "it cannot tell whether a memory repair is pending"),
    ],
)
def test_case_c57_what_a_card_cannot_tell_is_no_proof_unless_the_operator_says_so(
    proof: RecoveryProof, text: str
) -> None:
    assert lacks(proof, unknown_is_proof=False) == f"{text} (see health.recovery.unknownIsProof)"
    assert lacks(proof, unknown_is_proof=True) == ""
