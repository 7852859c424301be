"""The source on the true nvidia-ml-py over the fake library, in a process that has it."""

from dataclasses import replace

import pytest

from gpustow.hardware.nodemodel import load_node_model, parse_node_model
from gpustow.hardware.nvml.events import NvmlEvent
from gpustow.hardware.nvml.library import NvmlFailure
from gpustow.hardware.nvml.selfreport import SelfReport
from gpustow.hardware.nvml.watch import GpuWatch, WatchedGpu
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof
from gpustow.health.nvmlsource import LOOK_EVERY, RENEW_EVERY, NvmlSource
from gpustow.health.wording import lacks
from tests.health.watchedmachine import NODE, WatchedMachine

SINGLE, DOUBLE, XID = 0x1, 0x2, 0x8
LOST, RESET_REQUIRED, UNKNOWN, NOT_SUPPORTED = 15, 16, 999, 3


def _kinds(events: tuple[HealthEvent, ...]) -> list[tuple[EventKind, str | None]]:
    return [(event.kind, event.gpu_uuid) for event in events]


# ---------------------------------------------------------------- events


def test_on_a_quiet_node_nothing_is_told(machine: WatchedMachine) -> None:
    assert machine.watch() == ()
    assert machine.wait() == ()


def test_events_are_told_together_with_the_gpu_that_they_are_about(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.event(XID, 48, gpu=0)
    machine.driver.event(DOUBLE, 0, gpu=2)
    machine.driver.event(SINGLE, 0, gpu=2)
    first, _, third = machine.uuids
    assert machine.wait(5.0) == (
        HealthEvent(EventKind.XID, first, xid=48),
        HealthEvent(EventKind.ECC_DOUBLE, third),
        HealthEvent(EventKind.ECC_SINGLE, third),
    )
    assert machine.wait() == ()


def test_an_event_names_the_instance_of_a_gpu_in_mig_mode(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.event(XID, 94, gpu=1, gpu_instance=2, compute=0)
    machine.driver.event(XID, 79, gpu=1)
    assert machine.wait(5.0) == (
        HealthEvent(EventKind.XID, machine.uuids[1], gpu_instance=2, compute_instance=0, xid=94),
        HealthEvent(EventKind.XID, machine.uuids[1], xid=79),
    )


def test_without_mig_an_event_is_about_the_whole_gpu_whatever_instance_it_names(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.event(XID, 94, gpu=0, gpu_instance=0, compute=0)
    assert machine.wait(5.0) == (HealthEvent(EventKind.XID, machine.uuids[0], xid=94),)


def test_an_event_of_no_gpu_is_about_all_of_them(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.event(XID, 62)
    [event] = machine.wait(5.0)
    assert (event.gpu_uuid, event.xid, event.detail) == (None, 62, "the driver does not say which GPU")


def test_each_physical_gpu_is_registered_once_however_many_mig_devices_it_has(machine: WatchedMachine) -> None:
    machine.start(load_node_model("a100-4-mig-5"))
    machine.watch()
    machine.close()
    assert machine.calls("nvmlDeviceRegisterEvents") == 4


def test_what_came_before_the_gpus_are_watched_anew_is_not_lost(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.event(XID, 48, gpu=2)
    assert machine.watch() == ()
    assert machine.wait(5.0) == (HealthEvent(EventKind.XID, machine.uuids[2], xid=48),)


# ---------------------------------------------------------------- GPUs that are not watched


@pytest.mark.parametrize("call", ["nvmlDeviceGetHandleByUUID", "nvmlDeviceRegisterEvents"])
@pytest.mark.parametrize(
    ("code", "kind"), [(LOST, EventKind.LOST), (RESET_REQUIRED, EventKind.LOST), (UNKNOWN, EventKind.UNWATCHED)]
)
def test_a_gpu_that_cannot_be_registered_is_told_alone(
    machine: WatchedMachine, call: str, code: int, kind: EventKind
) -> None:
    machine.driver.fail(call, code, gpu=1)
    machine.driver.fail("nvmlDeviceGetHandleByIndex_v2", code, gpu=1)
    assert _kinds(machine.watch()) == [(kind, machine.uuids[1])]
    machine.driver.event(XID, 48, gpu=2)
    assert _kinds(machine.wait(5.0)) == [(EventKind.XID, machine.uuids[2])]


def test_a_gpu_that_does_not_support_events_or_no_xids_is_no_fault(machine: WatchedMachine) -> None:
    machine.driver.fail("nvmlDeviceRegisterEvents", NOT_SUPPORTED, gpu=0)
    machine.driver.change("gpu 1 events 3")
    machine.driver.change("gpu 2 events 0")
    assert _kinds(machine.watch()) == [(EventKind.UNSUPPORTED, uuid) for uuid in machine.uuids]
    machine.skip(RENEW_EVERY + LOOK_EVERY)
    assert machine.wait() == ()


def test_only_supported_types_are_registered(machine: WatchedMachine) -> None:
    machine.driver.change(f"gpu 0 events {XID:x}")
    assert machine.watch() == ()
    machine.driver.event(XID, 48, gpu=0)
    assert len(machine.wait(5.0)) == 1


def test_a_gpu_that_cannot_be_found_by_its_uuid_because_another_is_lost_is_watched(machine: WatchedMachine) -> None:
    machine.driver.fail("nvmlDeviceGetHandleByUUID", LOST)
    machine.driver.lose(1)
    assert _kinds(machine.watch()) == [(EventKind.LOST, machine.uuids[1])]
    assert machine.proof(machine.uuids[0]).readable


def test_a_gpu_that_has_another_index_now_is_not_taken_for_it(machine: WatchedMachine) -> None:
    machine.driver.fail("nvmlDeviceGetHandleByUUID", UNKNOWN, gpu=0)
    machine.driver.change(f"gpu 0 uuid {machine.uuids[2]}")
    [event, *_] = machine.watch()
    assert (event.kind, event.gpu_uuid) == (EventKind.UNWATCHED, machine.uuids[0])


# ---------------------------------------------------------------- looking and starting anew


def test_a_gpu_that_is_lost_is_told_without_an_xid(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.lose(1)
    assert machine.wait() == ()
    machine.skip(LOOK_EVERY)
    assert _kinds(machine.wait(5.0)) == [(EventKind.LOST, machine.uuids[1])]


def test_a_gpu_that_fails_once_is_left_in_peace_and_one_that_fails_twice_is_told(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.fail("nvmlDeviceGetUUID", UNKNOWN, gpu=0)
    machine.skip(LOOK_EVERY)
    assert machine.wait() == ()
    machine.driver.heal()
    machine.skip(LOOK_EVERY)
    assert machine.wait() == ()
    machine.driver.fail("nvmlDeviceGetUUID", UNKNOWN, gpu=0)
    for told in ([], [(EventKind.UNWATCHED, machine.uuids[0])]):
        machine.skip(LOOK_EVERY)
        assert _kinds(machine.wait()) == told


def test_nvml_is_started_anew_until_a_lost_gpu_is_back(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.lose(1)
    machine.skip(LOOK_EVERY)
    machine.wait()
    rest = machine.read()
    assert len(rest.gpus) == 2
    assert machine.watch(rest) == ()
    for _ in range(2):
        machine.skip(RENEW_EVERY)
        assert machine.wait() == ()
    machine.driver.heal()
    node = machine.read()
    assert len(node.gpus) == 3
    assert machine.watch(node) == ()
    machine.skip(RENEW_EVERY)
    assert machine.wait() == ()
    machine.close()
    readings, watches, renewals = 2, 3, 2
    started = machine.calls("nvmlInitWithFlags")
    # On a busy machine a look at the GPUs may be given up, after which NVML is started once more.
    assert readings + watches + renewals <= started <= readings + watches + renewals + 1
    assert machine.calls("nvmlShutdown") == started


def test_an_nvml_that_does_not_come_up_again_is_told_with_what_came_before(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.event(XID, 79, gpu=0)
    machine.wait(5.0)
    machine.driver.event(XID, 48, gpu=1)
    machine.driver.fail("nvmlInitWithFlags", UNKNOWN)
    machine.skip(RENEW_EVERY)
    assert _kinds(machine.wait()) == [(EventKind.XID, machine.uuids[1]), (EventKind.SOURCE_FAILED, None)]


def test_after_xid_79_nvml_is_started_anew_and_finds_the_gpu_lost(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.event(XID, 79, gpu=0)
    machine.wait(5.0)
    machine.driver.lose(0)
    machine.skip(RENEW_EVERY)
    assert (EventKind.LOST, machine.uuids[0]) in _kinds(machine.wait())


def test_a_reader_that_starts_and_stops_nvml_meanwhile_takes_nothing_away(machine: WatchedMachine) -> None:
    machine.watch()
    machine.read()
    machine.driver.event(XID, 48, gpu=0)
    assert len(machine.wait(5.0)) == 1


# ---------------------------------------------------------------- a source that does not work


@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlEventSetCreate"])
def test_a_source_that_cannot_start_says_so_and_can_be_started_later(machine: WatchedMachine, call: str) -> None:
    """Case C58."""
    machine.driver.fail(call, UNKNOWN)
    [event] = machine.watch()
    assert (event.kind, event.gpu_uuid) == (EventKind.SOURCE_FAILED, None)
    assert "Unknown Error" in event.detail
    assert machine.wait(7.0) == (event,)
    assert machine.slept() == 7.0
    assert machine.proof(machine.uuids[0]).detail == event.detail
    machine.driver.heal()
    assert machine.watch() == ()
    assert machine.wait() == ()


def test_a_wait_that_fails_ends_the_watch_and_says_who_is_lost(machine: WatchedMachine) -> None:
    """Case C60."""
    machine.watch()
    machine.driver.lose(2)
    machine.driver.fail("nvmlEventSetWait_v2", LOST)
    assert _kinds(machine.wait(5.0)) == [(EventKind.LOST, machine.uuids[2]), (EventKind.SOURCE_FAILED, None)]
    assert _kinds(machine.wait(5.0)) == [(EventKind.SOURCE_FAILED, None)]
    machine.driver.heal()
    assert machine.watch() == ()
    machine.driver.event(XID, 48, gpu=2)
    assert len(machine.wait(5.0)) == 1


def test_events_that_came_before_a_wait_failed_are_told(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.event(XID, 48, gpu=0)
    machine.driver.fail("nvmlEventSetWait_v2", UNKNOWN, start=2)
    assert _kinds(machine.wait(5.0)) == [(EventKind.XID, machine.uuids[0])]
    assert _kinds(machine.wait(5.0)) == [(EventKind.SOURCE_FAILED, None)]


def test_a_wait_that_fails_when_the_gpus_are_to_be_watched_anew_is_no_failure(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.fail("nvmlEventSetWait_v2", UNKNOWN)
    assert machine.watch() == ()


def test_a_wait_that_comes_back_too_early_is_made_up_for(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.fail("nvmlEventSetWait_v2", 10)
    assert machine.wait(7.0) == ()
    assert 6.0 < machine.slept() <= 7.0


def test_before_the_first_watch_and_after_close_nothing_is_watched(machine: WatchedMachine) -> None:
    assert _kinds(machine.wait(1.0)) == [(EventKind.SOURCE_FAILED, None)]
    machine.watch()
    machine.close()
    machine.close()
    assert machine.wait(1.0)[0].detail == "it is closed"


# ---------------------------------------------------------------- proofs


def test_a_gpu_that_is_well_proves_it_with_what_its_kind_can_tell(machine: WatchedMachine) -> None:
    machine.watch()
    ampere, with_mig, turing = (machine.proof(uuid) for uuid in machine.uuids)
    assert ampere == with_mig
    assert ampere == RecoveryProof(
        readable=True,
        uuid_matches=True,
        recovery_action=RecoveryAction.NONE,
        row_remap_pending=False,
        row_remap_failure=False,
        sram_threshold_exceeded=False,
    )
    assert turing == RecoveryProof(
        readable=True, uuid_matches=True, recovery_action=RecoveryAction.NONE, retired_pages_pending=False
    )


@pytest.mark.parametrize(
    ("gpu", "line", "field", "value"),
    [
        (0, "recovery 1", "recovery_action", RecoveryAction.GPU_RESET),
        (0, "recovery none", "recovery_action", None),
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
    machine: WatchedMachine, gpu: int, line: str, field: str, value: object
) -> None:
    machine.watch()
    machine.driver.change(f"gpu {gpu} {line}")
    assert getattr(machine.proof(machine.uuids[gpu]), field) is value


def test_a_gpu_with_too_many_errors_in_its_sram_is_not_well(machine: WatchedMachine) -> None:
    machine.watch()
    assert lacks(machine.proof(machine.uuids[0]), unknown_is_proof=False) == ""
    machine.driver.change("gpu 0 sram 1")
    assert "SRAM" in lacks(machine.proof(machine.uuids[0]), unknown_is_proof=False)


def test_a_gpu_that_cannot_be_read_again_proves_nothing(machine: WatchedMachine) -> None:
    machine.watch()
    machine.driver.lose(0)
    proof = machine.proof(machine.uuids[0])
    assert not proof.readable
    assert "GPU is lost" in proof.detail
    assert machine.proof(machine.uuids[1]).readable


def test_a_gpu_that_is_not_watched_proves_nothing_before_it_is(machine: WatchedMachine) -> None:
    machine.driver.fail("nvmlDeviceRegisterEvents", UNKNOWN, gpu=0)
    machine.watch()
    assert "it is not watched: Unknown Error" in machine.proof(machine.uuids[0]).detail
    machine.driver.heal()
    assert not machine.proof(machine.uuids[0]).readable
    machine.skip(RENEW_EVERY)
    machine.wait()
    assert machine.proof(machine.uuids[0]).readable


def test_a_gpu_that_the_machine_does_not_have_proves_nothing(machine: WatchedMachine) -> None:
    machine.watch()
    assert not machine.proof("GPU-0").readable


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


class _Silent(GpuWatch):
    """A watch of four GPUs that do not answer; `asked` are those that were asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    @property
    def watched(self) -> tuple[WatchedGpu, ...]:
        gpu = load_node_model("t4-4").node.gpus[0]
        return tuple(WatchedGpu(replace(gpu, uuid=f"GPU-{index}", index=index), None) for index in range(4))

    def read_uuid(self, watched: WatchedGpu) -> str:
        self.asked.append(watched.gpu.index)
        raise NvmlFailure("nvmlDeviceGetUUID", None, "no answer")

    def wait(self, seconds: float) -> list[NvmlEvent]:
        del seconds
        return []


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


def test_a_driver_that_answers_for_no_gpu_is_not_asked_about_each_of_them() -> None:
    watch, now = _Silent(), 0.0
    source = NvmlSource(clock=lambda: now, sleep=lambda _: None)
    source._watch = watch
    told: list[HealthEvent] = []
    for now in (LOOK_EVERY, 2 * LOOK_EVERY):  # noqa: B007 - the clock reads it
        told += source.wait(0.0)
    assert watch.asked == [0, 1, 0, 1, 2, 3]
    assert _kinds(tuple(told)) == [(EventKind.UNWATCHED, "GPU-0"), (EventKind.UNWATCHED, "GPU-1")]


def test_a_machine_without_driver_is_told(machine: WatchedMachine) -> None:
    machine.start(parse_node_model(NODE, "node"))
    machine.driver.fail("nvmlInitWithFlags", 9)
    assert "Driver Not Loaded" in machine.watch()[0].detail
