"""What an event means: which rule it has, and which devices it is about."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import load_config
from gpustow.config.faultrule import FATAL, IGNORE, FaultRule, parse_rule
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction
from gpustow.health.policy import APPLICATION_XIDS, HealthPolicy
from gpustow.health.target import Scope, Target
from gpustow.health.xids import known_xids
from tests.health.machines import EVERYTHING, MIG_UUIDS, NODE, gpu, node, xid

DEFAULT_SIX = {13, 31, 43, 45, 68, 109}
EVERY_XID = {*range(1, 200), 555, 999}


def policy(text: str = "{}", strategy: str = "mixed", **environ: str) -> HealthPolicy:
    """The policy of a section `health`, a MIG strategy, and the variables of v0.20.0 without their prefix."""
    variables = {f"DP_{name}_HEALTHCHECKS": value for name, value in environ.items()}
    flags = {"config-file": "f", "mig-strategy": strategy}
    return HealthPolicy.of(load_config(flags, variables, lambda _: f"health: {text}").config)


def ignored(rules: HealthPolicy, xids: Iterable[int] = EVERY_XID) -> set[int]:
    return {code for code in xids if rules.rule(xid(code)) == IGNORE}


@pytest.mark.parametrize(
    ("disable", "enable", "off", "expected"),
    [
        ("", "", False, DEFAULT_SIX),
        ("all", "", True, EVERY_XID),
        ("xids", "", True, EVERY_XID),
        ("", "all", False, set()),
        ("11", "11", False, DEFAULT_SIX),
        ("", "13", False, DEFAULT_SIX - {13}),
        ("79,48", "", False, DEFAULT_SIX | {48, 79}),
        ("94, 69", "", False, DEFAULT_SIX | {69, 94}),
        ("", "45", False, DEFAULT_SIX - {45}),
        ("all", "all", False, set()),
        ("all", "79", False, EVERY_XID - {79}),
        ("0", "", True, EVERY_XID),
    ],
)
def test_case_c56_the_variables_of_v0_20_0_say_which_xids_count(
    disable: str, enable: str, *, off: bool, expected: set[int]
) -> None:
    rules = policy(DISABLE=disable, ENABLE=enable)
    assert rules.off is off
    assert ignored(rules) == expected
    assert all(rules.rule(xid(code)) == FATAL for code in EVERY_XID - expected)


def test_the_six_are_those_of_v0_20_0() -> None:
    assert APPLICATION_XIDS == DEFAULT_SIX


def test_the_catalogue_follows_the_table() -> None:
    rules = policy("{xidPolicy: catalogue}")
    assert {code: rules.xid_rule(code) for code in known_xids()} == {
        code: row.rule for code, row in known_xids().items()
    }
    assert rules.xid_rule(177) == FATAL
    assert rules.xid_rule(999) == FATAL


@pytest.mark.parametrize("base", ["compatible", "catalogue"])
def test_the_file_wins_over_the_policy_and_the_variables_over_the_file(base: str) -> None:
    rules = policy(
        f"{{xidPolicy: {base}, xids: {{79: ignore, 13: 3 in 1h, 48: ignore, 31: fatal}}, unknownXids: 2 in 1h}}",
        DISABLE="31",
        ENABLE="48",
    )
    assert rules.xid_rule(79) == IGNORE
    assert rules.xid_rule(13) == FaultRule(3, 3600.0)
    assert rules.xid_rule(48) == FATAL
    assert rules.xid_rule(31) == IGNORE
    assert rules.xid_rule(555) == parse_rule("2 in 1h")


@given(
    st.sampled_from(["compatible", "catalogue"]),
    st.sets(st.integers(1, 180)),
    st.sets(st.integers(1, 180)),
    st.dictionaries(st.integers(1, 180), st.sampled_from(["ignore", "fatal", "3 in 1h"])),
    st.integers(1, 180),
)
def test_a_rule_comes_from_the_first_that_says_something(
    base: str, disable: set[int], enable: set[int], xids: dict[int, str], code: int
) -> None:
    listed = ", ".join(f"{number}: {rule}" for number, rule in xids.items())
    rules = policy(
        f"{{xidPolicy: {base}, xids: {{{listed}}}, unknownXids: ignore}}",
        DISABLE=",".join(map(str, disable)),
        ENABLE=",".join(map(str, enable)),
    )
    table = {number: row.rule for number, row in known_xids().items()}
    v0_20_0 = {number: IGNORE if number in DEFAULT_SIX else FATAL for number in known_xids()}
    expected = (v0_20_0 if base == "compatible" else table).get(code, IGNORE)
    if code in xids:
        expected = parse_rule(xids[code])
    if code in disable:
        expected = IGNORE
    if code in enable:
        expected = FATAL
    assert rules.xid_rule(code) == expected


FATAL_EVENTS = {
    "{}": {EventKind.UNWATCHED, EventKind.LOST, EventKind.SOURCE_FAILED},
    "{xidPolicy: catalogue}": {
        EventKind.UNWATCHED,
        EventKind.LOST,
        EventKind.SOURCE_FAILED,
        EventKind.ECC_DOUBLE,
        EventKind.ROW_REMAP_FAILURE,
        EventKind.SRAM_THRESHOLD,
        EventKind.RECOVERY_ACTION,
    },
    "{events: {eccDoubleBit: fatal, unwatched: ignore, rowRemapPending: fatal}}": {
        EventKind.LOST,
        EventKind.SOURCE_FAILED,
        EventKind.ECC_DOUBLE,
        EventKind.ROW_REMAP_PENDING,
    },
}


@pytest.mark.parametrize("text", FATAL_EVENTS)
def test_events_other_than_xids_are_fatal_as_policy_and_file_say(text: str) -> None:
    rules = policy(text)
    fatal = {kind for kind in EventKind if kind is not EventKind.XID and rules.rule(HealthEvent(kind)) == FATAL}
    assert fatal == FATAL_EVENTS[text]


def test_case_c60_ecc_events_are_logged_only_as_in_v0_20_0() -> None:
    assert policy().rule(HealthEvent(EventKind.ECC_SINGLE, "GPU-0")) == IGNORE
    assert policy().rule(HealthEvent(EventKind.ECC_DOUBLE, "GPU-0")) == IGNORE


@pytest.mark.parametrize("action", RecoveryAction)
def test_an_action_is_fatal_unless_it_leaves_the_gpu_itself_fit(action: RecoveryAction) -> None:
    event = HealthEvent(EventKind.RECOVERY_ACTION, "GPU-0", recovery_action=action)
    harmless = action in {RecoveryAction.NONE, RecoveryAction.RECOVER_IMEX_DOMAIN}
    assert policy("{xidPolicy: catalogue}").rule(event) == (IGNORE if harmless else FATAL)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("{}", False),
        ("{xidPolicy: catalogue}", True),
        ("{events: {eccDoubleBit: fatal, unwatched: fatal}}", False),
        ("{events: {rowRemapPending: fatal}}", True),
        (
            "{xidPolicy: catalogue, events: {rowRemapFailure: ignore, sramThreshold: ignore, recoveryAction: ignore}}",
            False,
        ),
    ],
)
def test_gpus_are_asked_for_their_states_only_if_one_matters(text: str, *, asks: bool) -> None:
    assert policy(text).asks is asks


def hit(rules: HealthPolicy, event: HealthEvent) -> set[str]:
    return {target.uuid for target in rules.hit(event, NODE)}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (xid(79, "GPU-0"), {"GPU-0"}),
        (xid(79, "GPU-2"), {"GPU-2"}),
        (xid(79, "GPU-2", 3, 0), {"MIG-2-0"}),
        (xid(79, "GPU-2", 5, 1), {"MIG-2-2"}),
        (xid(79, "GPU-2", 5), {"MIG-2-1", "MIG-2-2"}),
        (xid(79, "GPU-2", None, 0), {"GPU-2"}),
        (xid(79, "GPU-2", 9, 0), set()),
        (xid(79, "GPU-2", 3, 1), set()),
        (xid(79, "GPU-0", 3, 0), {"GPU-0"}),
        (xid(79, "GPU-9"), set()),
        (xid(79, None), {"GPU-0", "GPU-1", "GPU-2"}),
        (HealthEvent(EventKind.LOST, "GPU-2", 3, 0), {"GPU-2"}),
        (HealthEvent(EventKind.ECC_DOUBLE, "GPU-2", 3, 0), {"MIG-2-0"}),
    ],
)
def test_case_c55_an_event_is_about_what_it_names(event: HealthEvent, expected: set[str]) -> None:
    assert hit(policy(), event) == expected


def test_under_the_strategy_none_devices_are_whole_gpus() -> None:
    assert hit(policy(strategy="none"), xid(13, "GPU-2", 3, 0)) == {"GPU-2"}
    assert hit(policy(strategy="single"), xid(13, "GPU-2", 3, 0)) == {"MIG-2-0"}


@pytest.mark.parametrize("code", [*known_xids(), 177, 999])
def test_under_the_catalogue_only_what_stays_within_an_instance_is_about_it(code: int) -> None:
    rules = policy("{xidPolicy: catalogue}")
    within = code == 94 or (code in known_xids() and known_xids()[code].kind in {"application", "engine", "echo"})
    assert hit(rules, xid(code, "GPU-2", 3, 0)) == ({"MIG-2-0"} if within else {"GPU-2"})


def test_under_the_catalogue_other_events_are_about_the_whole_gpu() -> None:
    assert hit(policy("{xidPolicy: catalogue}"), HealthEvent(EventKind.ECC_DOUBLE, "GPU-2", 3, 0)) == {"GPU-2"}


def test_targets_say_what_they_are() -> None:
    [target] = policy().hit(xid(79, "GPU-2", 3, 0), NODE)
    assert target == Target("MIG-2-0", "GPU-2", Scope.MIG_DEVICE)
    assert str(target) == "MIG device 2:0 (MIG-2-0)"
    assert [str(gpu) for gpu in policy().hit(xid(79, None), NODE)][:1] == ["GPU 0 (GPU-0)"]
    assert str(Target("GPU-9", "GPU-9")) == "GPU-9", "no index is known of it"
    assert MIG_UUIDS < EVERYTHING


@given(
    st.sampled_from([None, "GPU-0", "GPU-2", "GPU-7"]),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 2),
    st.sampled_from([13, 79, 94]),
    st.sampled_from(["{}", "{xidPolicy: catalogue}"]),
)
def test_what_is_hit_is_always_on_the_gpu_that_is_named(
    gpu_uuid: str | None, gpu_instance: int | None, compute_instance: int | None, code: int, text: str
) -> None:
    machine = node(gpu(0), NODE.gpus[2])
    targets = policy(text).hit(xid(code, gpu_uuid, gpu_instance, compute_instance), machine)
    assert len(set(targets)) == len(targets)
    assert all(gpu_uuid in {None, target.gpu_uuid} for target in targets)
