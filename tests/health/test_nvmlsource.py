"""The source on the true nvidia-ml-py over the fake library, in a process that has it."""

import pytest

from gpustow.hardware.nodemodel import load_node_model, parse_node_model
from gpustow.hardware.nvml.events import NvmlEvent
from gpustow.hardware.nvml.library import NvmlFailure
from gpustow.hardware.nvml.selfreport import SelfReport
from gpustow.hardware.nvml.watch import GpuWatch
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof
from gpustow.health.nvmlsource import LOOK_EVERY, RENEW_EVERY, NvmlSource
from gpustow.health.wording import lacks
from tests.health.watchedmachine import NODE, WatchedMachine

SINGLE, DOUBLE, XID = 0x1, 0x2, 0x8
LOST, RESET_REQUIRED, UNKNOWN, NOT_SUPPORTED = 15, 16, 999, 3


def _kinds(events: tuple[HealthEvent, ...]) -> list[tuple[EventKind, str | None]]:
    return [(event.kind, event.gpu_uuid) for event in events]


# ---------------------------------------------------------------- events


def test_on_a_quiet_node_nothing_is_told(watched: WatchedMachine) -> None:
    assert watched.watch() == ()
    assert watched.wait() == ()


def test_events_are_told_together_with_the_gpu_that_they_are_about(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.event(XID, 48, gpu=0)
    watched.driver.event(DOUBLE, 0, gpu=2)
    watched.driver.event(SINGLE, 0, gpu=2)
    first, _, third = watched.uuids
    assert watched.wait(5.0) == (
        HealthEvent(EventKind.XID, first, xid=48),
        HealthEvent(EventKind.ECC_DOUBLE, third),
        HealthEvent(EventKind.ECC_SINGLE, third),
    )
    assert watched.wait() == ()


def test_an_event_names_the_instance_of_a_gpu_in_mig_mode(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.event(XID, 94, gpu=1, gpu_instance=2, compute=0)
    watched.driver.event(XID, 79, gpu=1)
    assert watched.wait(5.0) == (
        HealthEvent(EventKind.XID, watched.uuids[1], gpu_instance=2, compute_instance=0, xid=94),
        HealthEvent(EventKind.XID, watched.uuids[1], xid=79),
    )


def test_without_mig_an_event_is_about_the_whole_gpu_whatever_instance_it_names(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.event(XID, 94, gpu=0, gpu_instance=0, compute=0)
    assert watched.wait(5.0) == (HealthEvent(EventKind.XID, watched.uuids[0], xid=94),)


def test_an_event_of_no_gpu_is_about_all_of_them(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.event(XID, 62)
    [event] = watched.wait(5.0)
    assert (event.gpu_uuid, event.xid, event.detail) == (None, 62, "the driver does not say which GPU")


def test_each_physical_gpu_is_registered_once_however_many_mig_devices_it_has(watched: WatchedMachine) -> None:
    watched.start(load_node_model("a100-4-mig-5"))
    watched.watch()
    watched.close()
    assert watched.calls("nvmlDeviceRegisterEvents") == 4


def test_what_came_before_the_gpus_are_watched_anew_is_not_lost(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.event(XID, 48, gpu=2)
    assert watched.watch() == ()
    assert watched.wait(5.0) == (HealthEvent(EventKind.XID, watched.uuids[2], xid=48),)


# ---------------------------------------------------------------- GPUs that are not watched


@pytest.mark.parametrize("call", ["nvmlDeviceGetHandleByUUID", "nvmlDeviceRegisterEvents"])
@pytest.mark.parametrize(
    ("code", "kind"), [(LOST, EventKind.LOST), (RESET_REQUIRED, EventKind.LOST), (UNKNOWN, EventKind.UNWATCHED)]
)
def test_a_gpu_that_cannot_be_registered_is_told_alone(
    watched: WatchedMachine, call: str, code: int, kind: EventKind
) -> None:
    watched.driver.fail(call, code, gpu=1)
    watched.driver.fail("nvmlDeviceGetHandleByIndex_v2", code, gpu=1)
    assert _kinds(watched.watch()) == [(kind, watched.uuids[1])]
    watched.driver.event(XID, 48, gpu=2)
    assert _kinds(watched.wait(5.0)) == [(EventKind.XID, watched.uuids[2])]


def test_a_gpu_that_does_not_support_events_is_no_fault(watched: WatchedMachine) -> None:
    watched.driver.fail("nvmlDeviceRegisterEvents", NOT_SUPPORTED, gpu=0)
    watched.driver.change("gpu 2 events 0")
    assert _kinds(watched.watch()) == [
        (EventKind.UNSUPPORTED, watched.uuids[0]),
        (EventKind.UNSUPPORTED, watched.uuids[2]),
    ]
    watched.skip(RENEW_EVERY + LOOK_EVERY)
    assert watched.wait() == ()


def test_only_supported_types_are_registered(watched: WatchedMachine) -> None:
    watched.driver.change(f"gpu 0 events {XID:x}")
    assert watched.watch() == ()
    watched.driver.event(XID, 48, gpu=0)
    assert len(watched.wait(5.0)) == 1


def test_a_gpu_that_cannot_be_found_by_its_uuid_because_another_is_lost_is_watched(watched: WatchedMachine) -> None:
    watched.driver.fail("nvmlDeviceGetHandleByUUID", LOST)
    watched.driver.lose(1)
    assert _kinds(watched.watch()) == [(EventKind.LOST, watched.uuids[1])]
    assert watched.proof(watched.uuids[0]).readable


def test_a_gpu_that_has_another_index_now_is_not_taken_for_it(watched: WatchedMachine) -> None:
    watched.driver.fail("nvmlDeviceGetHandleByUUID", UNKNOWN, gpu=0)
    watched.driver.change(f"gpu 0 uuid {watched.uuids[2]}")
    [event, *_] = watched.watch()
    assert (event.kind, event.gpu_uuid) == (EventKind.UNWATCHED, watched.uuids[0])


# ---------------------------------------------------------------- looking and starting anew


def test_a_gpu_that_is_lost_is_told_without_an_xid(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.lose(1)
    assert watched.wait() == ()
    watched.skip(LOOK_EVERY)
    assert _kinds(watched.wait(5.0)) == [(EventKind.LOST, watched.uuids[1])]


def test_a_gpu_that_fails_once_is_left_in_peace_and_one_that_fails_twice_is_told(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.fail("nvmlDeviceGetUUID", UNKNOWN, gpu=0)
    watched.skip(LOOK_EVERY)
    assert watched.wait() == ()
    watched.driver.heal()
    watched.skip(LOOK_EVERY)
    assert watched.wait() == ()
    watched.driver.fail("nvmlDeviceGetUUID", UNKNOWN, gpu=0)
    for told in ([], [(EventKind.UNWATCHED, watched.uuids[0])]):
        watched.skip(LOOK_EVERY)
        assert _kinds(watched.wait()) == told


def test_nvml_is_started_anew_until_a_lost_gpu_is_back(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.lose(1)
    watched.skip(LOOK_EVERY)
    watched.wait()
    rest = watched.read()
    assert len(rest.gpus) == 2
    assert watched.watch(rest) == ()
    for _ in range(2):
        watched.skip(RENEW_EVERY)
        assert watched.wait() == ()
    watched.driver.heal()
    node = watched.read()
    assert len(node.gpus) == 3
    assert watched.watch(node) == ()
    watched.skip(RENEW_EVERY)
    assert watched.wait() == ()
    watched.close()
    readings, watches, renewals = 2, 3, 2
    assert watched.calls("nvmlInitWithFlags") == readings + watches + renewals
    assert watched.calls("nvmlShutdown") == readings + watches + renewals


def test_after_xid_79_nvml_is_started_anew_and_finds_the_gpu_lost(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.event(XID, 79, gpu=0)
    watched.wait(5.0)
    watched.driver.lose(0)
    watched.skip(RENEW_EVERY)
    assert (EventKind.LOST, watched.uuids[0]) in _kinds(watched.wait())


def test_a_reader_that_starts_and_stops_nvml_meanwhile_takes_nothing_away(watched: WatchedMachine) -> None:
    watched.watch()
    watched.read()
    watched.driver.event(XID, 48, gpu=0)
    assert len(watched.wait(5.0)) == 1


# ---------------------------------------------------------------- a source that does not work


@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlEventSetCreate"])
def test_a_source_that_cannot_start_says_so_and_can_be_started_later(watched: WatchedMachine, call: str) -> None:
    """Case C58."""
    watched.driver.fail(call, UNKNOWN)
    [event] = watched.watch()
    assert (event.kind, event.gpu_uuid) == (EventKind.SOURCE_FAILED, None)
    assert "Unknown Error" in event.detail
    assert watched.wait(7.0) == (event,)
    assert watched.slept() == 7.0
    assert watched.proof(watched.uuids[0]).detail == event.detail
    watched.driver.heal()
    assert watched.watch() == ()
    assert watched.wait() == ()


def test_a_wait_that_fails_ends_the_watch_and_says_who_is_lost(watched: WatchedMachine) -> None:
    """Case C60."""
    watched.watch()
    watched.driver.lose(2)
    watched.driver.fail("nvmlEventSetWait_v2", LOST)
    assert _kinds(watched.wait(5.0)) == [(EventKind.LOST, watched.uuids[2]), (EventKind.SOURCE_FAILED, None)]
    assert _kinds(watched.wait(5.0)) == [(EventKind.SOURCE_FAILED, None)]
    watched.driver.heal()
    assert watched.watch() == ()
    watched.driver.event(XID, 48, gpu=2)
    assert len(watched.wait(5.0)) == 1


def test_events_that_came_before_a_wait_failed_are_told(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.event(XID, 48, gpu=0)
    watched.driver.fail("nvmlEventSetWait_v2", UNKNOWN, start=2)
    assert _kinds(watched.wait(5.0)) == [(EventKind.XID, watched.uuids[0])]
    assert _kinds(watched.wait(5.0)) == [(EventKind.SOURCE_FAILED, None)]


def test_a_wait_that_fails_when_the_gpus_are_to_be_watched_anew_is_no_failure(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.fail("nvmlEventSetWait_v2", UNKNOWN)
    assert watched.watch() == ()


def test_a_wait_that_comes_back_too_early_is_made_up_for(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.fail("nvmlEventSetWait_v2", 10)
    assert watched.wait(7.0) == ()
    assert 6.0 < watched.slept() <= 7.0


def test_before_the_first_watch_and_after_close_nothing_is_watched(watched: WatchedMachine) -> None:
    assert _kinds(watched.wait(1.0)) == [(EventKind.SOURCE_FAILED, None)]
    watched.watch()
    watched.close()
    watched.close()
    assert watched.wait(1.0)[0].detail == "it is closed"


# ---------------------------------------------------------------- proofs


def test_a_gpu_that_is_well_proves_it_with_what_its_kind_can_tell(watched: WatchedMachine) -> None:
    watched.watch()
    ampere, with_mig, turing = (watched.proof(uuid) for uuid in watched.uuids)
    assert ampere == with_mig
    assert ampere == RecoveryProof(
        readable=True,
        uuid_matches=True,
        recovery_action=RecoveryAction.NONE,
        row_remap_pending=False,
        row_remap_failure=False,
        sram_threshold_exceeded=False,
    )
    assert turing == RecoveryProof(readable=True, uuid_matches=True, retired_pages_pending=False)


@pytest.mark.parametrize(
    ("gpu", "line", "field", "value"),
    [
        (0, "recovery 1", "recovery_action", RecoveryAction.GPU_RESET),
        (0, "recovery 77", "recovery_action", RecoveryAction.UNKNOWN),
        (0, "remap 1 2 1 0", "row_remap_pending", True),
        (0, "remap 1 2 0 1", "row_remap_failure", True),
        (1, "remap 1 2 1 0", "row_remap_pending", True),
        (1, "remap 1 2 0 1", "row_remap_failure", True),
        (2, "retired 1", "retired_pages_pending", True),
        (0, "sram 1", "sram_threshold_exceeded", True),
    ],
)
def test_a_gpu_says_what_is_wrong_with_it(
    watched: WatchedMachine, gpu: int, line: str, field: str, value: object
) -> None:
    watched.watch()
    watched.driver.change(f"gpu {gpu} {line}")
    assert getattr(watched.proof(watched.uuids[gpu]), field) is value


def test_a_gpu_with_too_many_errors_in_its_sram_is_not_well(watched: WatchedMachine) -> None:
    watched.watch()
    assert lacks(watched.proof(watched.uuids[0]), unknown_is_proof=False) == ""
    watched.driver.change("gpu 0 sram 1")
    assert "SRAM" in lacks(watched.proof(watched.uuids[0]), unknown_is_proof=False)


def test_a_gpu_that_cannot_be_read_again_proves_nothing(watched: WatchedMachine) -> None:
    watched.watch()
    watched.driver.lose(0)
    proof = watched.proof(watched.uuids[0])
    assert not proof.readable
    assert "GPU is lost" in proof.detail
    assert watched.proof(watched.uuids[1]).readable


def test_a_gpu_that_is_not_watched_proves_nothing_before_it_is(watched: WatchedMachine) -> None:
    watched.driver.fail("nvmlDeviceRegisterEvents", UNKNOWN, gpu=0)
    watched.watch()
    assert "it is not watched: Unknown Error" in watched.proof(watched.uuids[0]).detail
    watched.driver.heal()
    assert not watched.proof(watched.uuids[0]).readable
    watched.skip(RENEW_EVERY)
    watched.wait()
    assert watched.proof(watched.uuids[0]).readable


def test_a_gpu_that_the_machine_does_not_have_proves_nothing(watched: WatchedMachine) -> None:
    watched.watch()
    assert not watched.proof("GPU-0").readable


class _OtherGpu(GpuWatch):
    """A watch whose GPU says that it is another one, or nothing; its events come with a handle that nobody knows."""

    def __init__(self, failure: NvmlFailure | None = None) -> None:
        self._failure = failure

    def wait(self, seconds: float) -> list[NvmlEvent]:
        del seconds
        return [NvmlEvent(XID, 48, handle=None, device=7, gpu_instance=1, compute_instance=None)]

    def gpu_of(self, event: NvmlEvent) -> None:
        del event

    def uuid_of(self, event: NvmlEvent) -> str:
        del event
        if self._failure is not None:
            raise self._failure
        return "GPU-other"

    def read_again(self, uuid: str) -> tuple[str, SelfReport]:
        del uuid
        return "GPU-other", SelfReport()


def _source_with(watch: GpuWatch) -> NvmlSource:
    source = NvmlSource()
    source._watch = watch
    return source


def test_a_handle_that_names_another_uuid_is_told_in_the_proof() -> None:
    proof = _source_with(_OtherGpu()).proof("GPU-1")
    assert (proof.readable, proof.uuid_matches, proof.detail) == (True, False, "it names itself GPU-other")


def test_an_event_with_an_unknown_handle_is_about_the_gpu_that_the_handle_names() -> None:
    """Case C60: whoever judges it ignores it if that GPU is not ours."""
    event = HealthEvent(EventKind.XID, "GPU-other", gpu_instance=1, xid=48)
    assert _source_with(_OtherGpu()).wait(0.0) == (event,)


def test_an_event_whose_gpu_cannot_be_read_is_about_all_gpus() -> None:
    """Case C60."""
    failure = NvmlFailure("nvmlDeviceGetUUID", LOST, "GPU is lost")
    [event] = _source_with(_OtherGpu(failure)).wait(0.0)
    assert (event.gpu_uuid, event.xid) == (None, 48)
    assert event.detail == "the UUID of the GPU cannot be read: GPU is lost (nvmlDeviceGetUUID)"


def test_a_machine_without_driver_is_told(watched: WatchedMachine) -> None:
    watched.start(parse_node_model(NODE, "node"))
    watched.driver.fail("nvmlInitWithFlags", 9)
    assert "Driver Not Loaded" in watched.watch()[0].detail
