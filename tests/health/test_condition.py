"""Whether one device is fit, step by step and against a plain reading of its whole history."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config.health import RecoveryConfig
from gpustow.health.condition import Condition, Fitness, Transition, found_again, hold_time, proven, struck, transition
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction
from gpustow.health.target import MONITOR, Scope, Target
from tests.health.machines import SILENT, UNREADABLE, WELL, xid

GPU = Target("GPU-0", "GPU-0", index="4")
HEALTHY = Condition(GPU)
RECOVERY = RecoveryConfig()
LOST = HealthEvent(EventKind.LOST, "GPU-0")


def sick(now: float = 0.0, event: HealthEvent | None = None) -> Condition:
    return struck(HEALTHY, event or xid(48), now, RECOVERY)


def told(before: Condition, after: Condition, now: float) -> Transition:
    change = transition(before, after, now)
    assert change is not None
    return change


def test_a_fault_makes_a_device_unhealthy_and_says_why() -> None:
    after = sick(7.0)
    change = told(HEALTHY, after, 7.0)
    assert (after.fit, after.since, after.falls) == (False, 7.0, (7.0,))
    assert change == Transition(GPU, Fitness.HEALTHY, Fitness.UNHEALTHY, 7.0, xid(48), 0.0, change.sentence)
    assert change.sentence == f"GPU 4 (GPU-0) is unhealthy: {after.reason}"
    assert after.reason.startswith("XID 48: Uncorrectable memory error")


def test_the_first_fault_stays_the_reason_and_its_echo_changes_nothing() -> None:
    after = struck(sick(7.0), xid(63), 8.0, RECOVERY)
    assert after.event == xid(48)
    assert after.since == 7.0
    assert transition(sick(7.0), after, 8.0) is None


@pytest.mark.parametrize("loss", [LOST, xid(79)])
def test_that_a_gpu_is_lost_is_always_the_reason(loss: HealthEvent) -> None:
    after = struck(sick(), loss, 1.0, RECOVERY)
    assert after.event == loss
    assert after.lost
    assert struck(after, xid(48), 2.0, RECOVERY).event == loss


def test_case_c57_a_device_is_healthy_again_after_proof_and_a_quiet_time() -> None:
    unhealthy = sick(0.0)
    recovering = proven(unhealthy, WELL, 30.0, RECOVERY)
    assert recovering.fitness is Fitness.RECOVERING
    assert not recovering.fit
    change = told(unhealthy, recovering, 30.0)
    assert change.sentence == "GPU 4 (GPU-0) is well again, and healthy if it stays so for 1m"
    assert proven(recovering, WELL, 89.9, RECOVERY) == recovering
    healthy = proven(recovering, WELL, 90.0, RECOVERY)
    assert healthy == Condition(GPU, falls=(0.0,))
    change = told(recovering, healthy, 90.0)
    assert change.unfit_seconds == 90.0
    assert change.event == xid(48)
    assert change.sentence.startswith("GPU 4 (GPU-0) is healthy again after 1m30s; it was unhealthy because of: XID 48")


def test_a_fault_while_it_is_held_starts_the_hold_anew() -> None:
    recovering = proven(sick(0.0), WELL, 30.0, RECOVERY)
    again = struck(recovering, xid(95), 50.0, RECOVERY)
    assert again.fitness is Fitness.UNHEALTHY
    assert again.event == xid(95)
    assert (again.since, again.falls) == (0.0, (0.0,))
    assert "unhealthy again while it was held: XID 95" in told(recovering, again, 50.0).sentence
    assert proven(again, WELL, 100.0, RECOVERY).hold_until == 160.0


def test_a_device_that_is_not_well_while_it_is_held_is_unhealthy_again() -> None:
    recovering = proven(sick(0.0), WELL, 30.0, RECOVERY)
    again = proven(recovering, replace(WELL, recovery_action=RecoveryAction.GPU_RESET), 60.0, RECOVERY)
    assert again.fitness is Fitness.UNHEALTHY
    assert again.lacking == "the driver wants the GPU reset"
    assert told(recovering, again, 60.0).sentence.endswith("while it was held: the driver wants the GPU reset")


@pytest.mark.parametrize("proof", [SILENT, UNREADABLE])
def test_case_c57_what_is_no_proof_changes_nothing(proof: object) -> None:
    after = proven(sick(), proof, 10**6, RECOVERY)  # type: ignore[arg-type] # both are proofs
    assert after.fitness is Fitness.UNHEALTHY
    assert after.lacking


def test_what_a_card_cannot_tell_can_count_as_proof() -> None:
    trusting = RecoveryConfig(unknown_is_proof=True)
    assert proven(sick(), SILENT, 1.0, trusting).fitness is Fitness.RECOVERING


def test_case_c57_a_lost_gpu_never_recovers_before_it_is_found_again() -> None:
    lost = sick(0.0, LOST)
    assert proven(lost, WELL, 10**6, RECOVERY) == lost
    found = found_again(lost)
    assert not found.fit
    assert proven(found, WELL, 10**6, RECOVERY).fitness is Fitness.RECOVERING


def test_nothing_recovers_where_recovery_is_off() -> None:
    off = RecoveryConfig(enabled=False)
    assert proven(sick(), WELL, 10**6, off) == sick()


def test_without_a_hold_the_first_proof_is_enough() -> None:
    change = told(sick(0.0), proven(sick(0.0), WELL, 0.5, RecoveryConfig(hold_time=0.0)), 0.5)
    assert change.after is Fitness.HEALTHY
    assert "healthy again after 500ms" in change.sentence


@pytest.mark.parametrize("recovery", [RecoveryConfig(enabled=False), RecoveryConfig(flap_hold_time=60.0)])
@pytest.mark.parametrize(
    ("falls", "often"), [(1, ""), (2, "2nd"), (4, "4th"), (11, "11th"), (21, "21st"), (112, "112th")]
)
def test_where_no_longer_hold_follows_only_how_often_is_told(recovery: RecoveryConfig, falls: int, often: str) -> None:
    before = replace(HEALTHY, falls=tuple(map(float, range(falls - 1))))
    change = transition(before, struck(before, xid(48), 200.0, recovery), 200.0, recovery)
    assert change is not None
    assert change.sentence.endswith(f"; {often} time within 1h" if often else "XID catalogue")


def test_what_becomes_unfit_again_and_again_is_held_longer() -> None:
    quick = RecoveryConfig(hold_time=0.0)
    before = condition = HEALTHY
    rules = (
        "XID catalogue",
        "; 2nd time within 1h; at 3 it has to be well and quiet for 1h before it is healthy again",
        "; 3rd time within 1h, so it has to be well and quiet for 1h before it is healthy again",
    )
    for at, rule in zip((0.0, 100.0, 200.0), rules, strict=True):
        before, condition = condition, struck(condition, xid(48), at, quick)
        change = transition(before, condition, at, quick)
        assert change is not None
        assert change.sentence.endswith(rule)
        if at < 200.0:
            condition = proven(condition, WELL, at + 1, quick)
            assert condition.fit
    assert hold_time(condition, quick) == 3600.0
    held = proven(condition, WELL, 210.0, quick)
    assert "stays so for 1h" in told(condition, held, 210.0).sentence
    assert not proven(held, WELL, 3809.0, quick).fit
    assert proven(held, WELL, 3810.0, quick).fit


def test_falls_of_long_ago_do_not_count() -> None:
    quick = RecoveryConfig(hold_time=0.0)
    condition = HEALTHY
    for at in (0.0, 100.0, 3700.0):
        condition = proven(struck(condition, xid(48), at, quick), WELL, at, quick)
    assert condition.fit
    assert condition.falls == (3700.0,)


def test_a_mig_device_and_the_monitor_say_what_they_are() -> None:
    mig = Condition(Target("MIG-1", "GPU-0", Scope.MIG_DEVICE, "4:1"))
    assert told(mig, struck(mig, xid(94), 0.0, RECOVERY), 0.0).sentence.startswith(
        "MIG device 4:1 (MIG-1) is unhealthy"
    )
    monitor = Condition(MONITOR)
    event = HealthEvent(EventKind.SOURCE_FAILED, detail="no driver")
    assert told(monitor, struck(monitor, event, 0.0, RECOVERY), 0.0).sentence == (
        "the health monitor is unhealthy: GPUs cannot be watched (no driver); no device is healthy until it works"
    )


def test_a_healthy_device_needs_no_proof() -> None:
    assert proven(HEALTHY, UNREADABLE, 1.0, RECOVERY) == HEALTHY


# What happens to one device: a step of time, then one of these.
STEPS = st.tuples(st.integers(0, 40), st.sampled_from(["fault", "lost", "well", "unwell", "found"]))
History = tuple[tuple[float, str], ...]


def is_fit(history: History, recovery: RecoveryConfig) -> bool:
    """By a look at all that has happened: are there, since the last fault, two proofs that are far enough apart?"""

    @cache
    def fit(length: int) -> bool:
        faults = [at for at in range(length) if history[at][1] in {"fault", "lost"}]
        if not faults:
            return True
        falls = [at for at in faults if fit(at)]
        last_fall = history[falls[-1]][0]
        recent = [at for at in falls if last_fall - history[at][0] < recovery.flap_window or at == falls[-1]]
        hold = recovery.hold_time
        if len(recent) >= recovery.flap_count:
            hold = max(hold, recovery.flap_hold_time)
        losses = [at for at in range(falls[-1], length) if history[at][1] == "lost"]
        asked_from = faults[-1]
        if losses:
            found = [at for at in range(losses[-1], length) if history[at][1] == "found"]
            if not found:
                return False
            asked_from = max(asked_from, found[0])
        proofs = [history[at] for at in range(asked_from, length) if history[at][1] in {"well", "unwell"}]
        return any(
            what == "well" and until - since >= hold and all(each == "well" for _, each in proofs[first : second + 1])
            for first, (since, _) in enumerate(proofs)
            for second, (until, what) in enumerate(proofs)
            if second >= first
        )

    return fit(len(history))


@given(
    st.lists(STEPS, max_size=14),
    st.sampled_from([0.0, 30.0]),
    st.sampled_from([0.0, 60.0]),
    st.integers(1, 3),
    st.sampled_from([0.0, 50.0, 200.0]),
)
def test_the_machine_agrees_with_a_look_at_the_whole_history(
    steps: list[tuple[int, str]], hold: float, flap_hold: float, flaps: int, window: float
) -> None:
    recovery = RecoveryConfig(hold_time=hold, flap_hold_time=flap_hold, flap_count=flaps, flap_window=window)
    condition = HEALTHY
    history: History = ()
    now = 0.0
    for step, what in steps:
        now += step
        history = (*history, (now, what))
        match what:
            case "fault":
                condition = struck(condition, xid(48), now, recovery)
            case "lost":
                condition = struck(condition, LOST, now, recovery)
            case "found":
                condition = found_again(condition)
            case _:
                condition = proven(condition, WELL if what == "well" else UNREADABLE, now, recovery)
        assert condition.fit is is_fit(history, recovery), history
