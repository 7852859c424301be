"""The health of a whole node: examples, and any sequence of events against a plain model."""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gpustow.config import load_config
from gpustow.config.health import RecoveryConfig, XidPolicy
from gpustow.hardware.node import Node
from gpustow.health.condition import Fitness
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof
from gpustow.health.nodehealth import NodeHealth
from gpustow.health.policy import HealthPolicy
from tests.health.machines import (
    EVERYTHING,
    MIG_GPU,
    MIG_UUIDS,
    NODE,
    SILENT,
    UNREADABLE,
    WELL,
    gpu,
    mig_device,
    node,
    xid,
)

FAILED = HealthEvent(EventKind.SOURCE_FAILED, detail="no driver")
LOST = HealthEvent(EventKind.LOST, "GPU-0")


def health(text: str = "{}", machine: Node = NODE) -> NodeHealth:
    """The health of a node under a section `health`."""
    config = load_config({"config-file": "f", "mig-strategy": "mixed"}, {}, lambda _: f"health: {text}").config
    made = NodeHealth(HealthPolicy.of(config), config.health.recovery)
    made.update(machine)
    return made


def unfit(state: NodeHealth) -> set[str]:
    return set(state.conditions.unfit)


def test_everything_is_fit_at_first() -> None:
    assert unfit(health()) == set()
    assert health().conditions.reason("GPU-0") is None


def test_case_c55_everything_on_a_gpu_is_unfit_with_it_and_nothing_else() -> None:
    state = health()
    taken = state.take(xid(79, "GPU-2"), 1.0)
    assert unfit(state) == {"GPU-2", *MIG_UUIDS}
    assert [change.target.uuid for change in taken.transitions] == ["GPU-2"]
    assert state.conditions.reason("MIG-2-1") == state.conditions.reason("GPU-2")
    assert taken.sentence.endswith("contact NVIDIA support. It is fatal")


def test_case_c55_a_fault_of_one_instance_leaves_the_others_fit() -> None:
    state = health()
    state.take(xid(48, "GPU-2", 3, 0), 1.0)
    assert unfit(state) == {"MIG-2-0"}


def test_a_device_that_is_made_on_a_sick_gpu_is_unfit() -> None:
    state = health()
    state.take(xid(48, "GPU-2"), 1.0)
    state.update(node(gpu(0), gpu(2, mig_device(2, 7, 9))))
    assert unfit(state) == {"GPU-2", "MIG-2-7"}


def test_a_mig_device_that_is_destroyed_takes_its_fault_with_it() -> None:
    state = health("{xids: {48: 2 in 1h}}")
    state.take(xid(48, "GPU-2", 3, 0), 1.0)
    state.take(xid(79, "GPU-2", 3, 0), 2.0)
    assert unfit(state) == {"MIG-2-0"}
    state.update(node(gpu(2, mig_device(2, 1, 5))))
    assert unfit(state) == set()
    state.update(NODE)
    assert unfit(state) == set()
    assert not state.take(xid(48, "GPU-2", 3, 0), 10.0).transitions


def test_a_gpu_that_leaves_and_comes_back_is_what_it_was() -> None:
    state = health()
    state.take(xid(48, "GPU-0"), 1.0)
    state.take(xid(48, "GPU-2", 3, 0), 1.0)
    state.update(node(gpu(1)))
    assert unfit(state) == {"GPU-0", "MIG-2-0"}
    assert list(state.to_ask) == []
    state.update(NODE)
    assert unfit(state) == {"GPU-0", "MIG-2-0"}
    assert list(state.to_ask) == ["GPU-0", "GPU-2"]


def test_case_c57_a_lost_gpu_is_not_asked_before_it_is_found_again() -> None:
    state = health("{recovery: {holdTime: 0s}}")
    state.take(LOST, 1.0)
    assert list(state.to_ask) == []
    assert state.prove("GPU-0", WELL, 100.0) == ()
    state.update(NODE)
    assert unfit(state) == {"GPU-0"}
    assert list(state.to_ask) == ["GPU-0"]
    [change] = state.prove("GPU-0", WELL, 101.0)
    assert change.after is Fitness.HEALTHY
    assert unfit(state) == set()


def test_nobody_is_asked_where_recovery_is_off() -> None:
    state = health("{recovery: {enabled: false}}")
    state.take(xid(48), 1.0)
    assert list(state.to_ask) == []
    assert state.prove("GPU-0", WELL, 10**6) == ()


def test_a_proof_of_a_gpu_counts_for_all_that_is_unfit_on_it() -> None:
    state = health("{recovery: {holdTime: 0s}}")
    state.take(xid(48, "GPU-2", 3, 0), 1.0)
    state.take(xid(48, "GPU-2", 5), 1.0)
    state.take(xid(48, "GPU-0"), 1.0)
    assert {change.target.uuid for change in state.prove("GPU-2", WELL, 2.0)} == MIG_UUIDS
    assert unfit(state) == {"GPU-0"}


def test_faults_that_count_make_a_device_unfit_when_there_are_enough() -> None:
    state = health("{xids: {94: 3 in 24h}, recovery: {holdTime: 0s}}")
    taken = [state.take(xid(94), at) for at in (0.0, 2.0, 100.0, 200.0)]
    assert [each.sentence.rpartition(". ")[2] for each in taken] == [
        "It counts: 1 of 3 in 24h",
        "It counts: 1 of 3 in 24h",
        "It counts: 2 of 3 in 24h",
        "It counts: 3 of 3 in 24h",
    ]
    assert [len(each.transitions) for each in taken] == [0, 0, 0, 1]
    state.prove("GPU-0", WELL, 300.0)
    assert unfit(state) == set()
    state.take(xid(94), 400.0)
    assert unfit(state) == set(), "the count starts over with the recovery"


def test_case_c60_an_event_about_another_gpu_is_nobodys() -> None:
    state = health()
    taken = state.take(xid(79, "GPU-9"), 1.0)
    assert taken.targets == ()
    assert taken.sentence.endswith("It is about nothing that is served here")
    assert unfit(state) == set()


def test_case_c60_an_event_whose_gpu_cannot_be_read_is_about_all() -> None:
    state = health()
    taken = state.take(xid(79, None), 1.0)
    assert taken.sentence.startswith("all GPUs: XID 79")
    assert unfit(state) == EVERYTHING


def test_an_ignored_event_is_told_and_changes_nothing() -> None:
    state = health()
    taken = state.take(xid(31), 1.0)
    assert taken.transitions == ()
    assert taken.sentence.endswith("It is ignored")
    assert unfit(state) == set()


def test_case_c58_nothing_is_fit_while_the_monitor_does_not_work() -> None:
    state = health()
    state.take(xid(48, "GPU-0"), 0.0)
    change = state.monitor_failed(FAILED, 1.0)
    assert change is not None
    assert change.after is Fitness.UNHEALTHY
    assert unfit(state) == EVERYTHING
    assert state.conditions.reason("GPU-1") == "GPUs cannot be watched (no driver)"
    assert str(state.conditions.reason("GPU-0")).startswith("XID 48")
    assert state.conditions.reason("something new") == "GPUs cannot be watched (no driver)"
    assert state.monitor_failed(FAILED, 2.0) is None


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_the_monitor_recovers_by_working_for_the_hold_time(enabled: str) -> None:
    state = health(f"{{recovery: {{enabled: {enabled}, holdTime: 10s}}}}")
    for start in range(0, 1000, 100):
        state.monitor_failed(FAILED, start)
        assert state.monitor_works(start + 1) is not None
        assert state.monitor_works(start + 10) is None
        assert unfit(state) == EVERYTHING
        assert state.monitor_works(start + 11) is not None
        assert unfit(state) == set()
    assert state.monitor_works(1000) is None


def test_states_become_events_and_are_told_once_for_as_long_as_they_hold() -> None:
    state = health("{xidPolicy: catalogue}")
    pending = replace(WELL, row_remap_pending=True)
    [taken] = state.ask("GPU-0", pending, 0.0)
    assert (taken.event.kind, taken.again) == (EventKind.ROW_REMAP_PENDING, False)
    assert state.ask("GPU-0", pending, 30.0)[0].again
    assert not state.ask("GPU-1", pending, 30.0)[0].again
    assert state.ask("GPU-0", WELL, 60.0) == ()
    assert not state.ask("GPU-0", pending, 90.0)[0].again
    assert unfit(state) == set()


@pytest.mark.parametrize(
    ("proof", "kinds", "fatal"),
    [
        (WELL, [], False),
        (SILENT, [], False),
        (UNREADABLE, ["unwatched"], True),
        (RecoveryProof(False, False), ["unwatched"], True),
        (replace(WELL, uuid_matches=False), ["unwatched"], True),
        (replace(WELL, recovery_action=RecoveryAction.GPU_RESET), ["recoveryAction"], True),
        (replace(WELL, recovery_action=RecoveryAction.UNKNOWN), ["recoveryAction"], True),
        (replace(WELL, recovery_action=RecoveryAction.RECOVER_IMEX_DOMAIN), ["recoveryAction"], False),
        (replace(WELL, row_remap_failure=True), ["rowRemapFailure"], True),
        (replace(WELL, sram_threshold_exceeded=True), ["sramThreshold"], True),
        (replace(SILENT, retired_pages_pending=True), ["pageRetirementPending"], False),
        (
            replace(WELL, recovery_action=RecoveryAction.NODE_REBOOT, row_remap_pending=True, row_remap_failure=True),
            ["recoveryAction", "rowRemapFailure", "rowRemapPending"],
            True,
        ),
    ],
)
def test_what_a_gpu_says_of_itself_is_judged_under_the_catalogue(
    proof: RecoveryProof, kinds: list[str], *, fatal: bool
) -> None:
    state = health("{xidPolicy: catalogue}")
    assert [taken.event.kind.value for taken in state.ask("GPU-2", proof, 0.0)] == kinds
    assert unfit(state) == ({"GPU-2", *MIG_UUIDS} if fatal else set())


def test_a_loss_is_told_again_after_the_gpu_was_found() -> None:
    state = health()
    assert not state.take(LOST, 0.0).again
    assert state.take(LOST, 1.0).again
    state.update(NODE)
    assert not state.take(LOST, 2.0).again
    assert not state.take(xid(31), 3.0).again
    assert not state.take(xid(31), 4.0).again


HOLD = 20
GPUS = st.sampled_from(["GPU-0", "GPU-1", "GPU-2"])
NODES = (
    NODE,
    node(gpu(1), MIG_GPU),
    node(gpu(0), gpu(1), gpu(2, mig_device(2, 1, 5, 0))),
    node(gpu(0), gpu(1)),
    node(gpu(0), gpu(1), gpu(2)),
)


class AnyHealth(RuleBasedStateMachine):
    """Against a model that knows, for each thing: unfit, lost, and since when it has been well."""

    def __init__(self) -> None:
        super().__init__()
        self.state = health(f"{{recovery: {{holdTime: {HOLD}s, flapHoldTime: 0s}}, xids: {{94: 2 in 1m}}}}")
        self.now = 0.0
        self.node = NODE
        self.sick: dict[str, tuple[str, bool, float | None]] = {}
        self.contained: dict[str, list[float]] = {}
        self.monitor_well_since: float | None = 0.0
        self.monitor_sick = False

    def strike(self, uuid: str, gpu_uuid: str, *, lost: bool = False) -> None:
        _, was_lost, _ = self.sick.get(uuid, ("", False, None))
        self.sick[uuid] = (gpu_uuid, was_lost or lost, None)

    @rule(seconds=st.integers(1, 30))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(uuid=GPUS, code=st.sampled_from([48, 79, 31]))
    def a_gpu_has_a_fault(self, uuid: str, code: int) -> None:
        self.state.take(xid(code, uuid), self.now)
        if code != 31 and any(each.uuid == uuid for each in self.node.gpus):
            self.strike(uuid, uuid, lost=code == 79)

    @rule(uuid=GPUS)
    def a_gpu_has_a_contained_error(self, uuid: str) -> None:
        self.state.take(xid(94, uuid), self.now)
        if any(each.uuid == uuid for each in self.node.gpus):
            times = self.contained.setdefault(uuid, [])
            if not times or self.now - times[-1] >= 5:
                times.append(self.now)
            if len([at for at in times if self.now - at <= 60]) >= 2:
                self.strike(uuid, uuid)

    @rule(gpu_instance=st.sampled_from([3, 5, 8]), compute_instance=st.sampled_from([None, 0, 1]))
    def an_instance_has_a_fault(self, gpu_instance: int, compute_instance: int | None) -> None:
        self.state.take(xid(48, "GPU-2", gpu_instance, compute_instance), self.now)
        for each in self.node.gpus:
            if each.uuid == "GPU-2" and not each.mig_enabled:
                self.strike("GPU-2", "GPU-2")
            for device in each.mig_devices:
                if device.gpu_instance == gpu_instance and compute_instance in {None, device.compute_instance}:
                    self.strike(device.uuid, each.uuid)

    @rule(uuid=GPUS, well=st.booleans())
    def a_gpu_is_asked(self, uuid: str, *, well: bool) -> None:
        self.state.prove(uuid, WELL if well else UNREADABLE, self.now)
        for each, (gpu_uuid, lost, since) in list(self.sick.items()):
            if gpu_uuid != uuid or lost:
                continue
            if not well:
                self.sick[each] = (gpu_uuid, lost, None)
            elif since is not None and self.now - since >= HOLD:
                del self.sick[each]
                self.contained.pop(each, None)
            elif since is None:
                self.sick[each] = (gpu_uuid, lost, self.now)

    @rule(machine=st.sampled_from(NODES))
    def the_node_is_read_again(self, machine: Node) -> None:
        self.node = machine
        self.state.update(machine)
        for each in machine.gpus:
            devices = {device.uuid for device in each.mig_devices}
            for uuid, (gpu_uuid, _, since) in list(self.sick.items()):
                if gpu_uuid == each.uuid:
                    self.sick[uuid] = (gpu_uuid, False, since)
                    if uuid.startswith("MIG") and uuid not in devices:
                        del self.sick[uuid]

    @rule()
    def the_monitor_fails(self) -> None:
        self.state.monitor_failed(FAILED, self.now)
        self.monitor_sick, self.monitor_well_since = True, None

    @rule()
    def the_monitor_works(self) -> None:
        self.state.monitor_works(self.now)
        if self.monitor_sick and self.monitor_well_since is None:
            self.monitor_well_since = self.now
        elif self.monitor_sick and self.monitor_well_since is not None and self.now - self.monitor_well_since >= HOLD:
            self.monitor_sick = False

    @invariant()
    def what_is_unfit_is_what_the_model_says(self) -> None:
        here = {each.uuid: {device.uuid for device in each.mig_devices} for each in self.node.gpus}
        expected = set(self.sick)
        for uuid, devices in here.items():
            if uuid in self.sick or self.monitor_sick:
                expected |= devices
            if self.monitor_sick:
                expected.add(uuid)
        assert unfit(self.state) == expected
        asked = {gpu_uuid for gpu_uuid, lost, _ in self.sick.values() if not lost and gpu_uuid in here}
        assert set(self.state.to_ask) == asked


TestAnyHealth = AnyHealth.TestCase
TestAnyHealth.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (xid(48, "GPU-2", 3), "XID 48 is about the whole GPU. It is fatal"),
        (xid(94, "GPU-2", 3), "restart the application. It counts: 1 of 3 in 24h"),
        (xid(48, "GPU-2"), "XID catalogue. It is fatal"),
        (xid(48, "GPU-0", 3), "XID catalogue. It is fatal"),
        (
            HealthEvent(EventKind.ECC_DOUBLE, "GPU-2", 3),
            "could not be corrected. It is about the whole GPU. It is fatal",
        ),
    ],
)
def test_that_a_fault_reaches_beyond_the_instance_it_names_is_said(event: HealthEvent, said: str) -> None:
    health = NodeHealth(HealthPolicy(xid_policy=XidPolicy.CATALOGUE), RecoveryConfig())
    health.update(NODE)
    assert health.take(event, 0.0).sentence.endswith(said)


def test_a_gpu_is_called_by_the_index_that_it_has_now() -> None:
    health = NodeHealth(HealthPolicy(), RecoveryConfig(hold_time=0.0))
    health.update(NODE)
    health.take(xid(48, "GPU-1"), 0.0)
    health.update(node(replace(NODE.gpus[1], index=0)))
    [change] = health.prove("GPU-1", WELL, 1.0)
    assert change.sentence.startswith("GPU 0 (GPU-1) is healthy again")
