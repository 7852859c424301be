"""A specification without repetitions, in an order of its own."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from gpustow.injection.cdi.simplify import simplified, with_all
from gpustow.injection.cdi.specification import CdiDevice, CdiEdits, CdiHook, CdiMount, CdiSpec
from tests.injection.cdi.samples import FINE, HOOK, device, node_edits, spec

NAMES = ("GPU-1", "GPU-2", "0")


def test_nodes_and_mounts_are_sorted_by_depth_and_devices_by_name() -> None:
    made = CdiSpec(
        "ve/cl",
        (device("b"), device("a", "/dev/dri/card0", "/dev/z", "/dev/a")),
        CdiEdits(mounts=(CdiMount("/x", "/usr/lib/a"), CdiMount("/y", "/lib")), additional_gids=(44, 7)),
    )
    assert simplified(made) == CdiSpec(
        "ve/cl",
        (device("a", "/dev/a", "/dev/z", "/dev/dri/card0"), device("b")),
        CdiEdits(mounts=(CdiMount("/y", "/lib"), CdiMount("/x", "/usr/lib/a")), additional_gids=(7, 44)),
    )


def test_what_all_devices_share_is_said_once_unless_a_device_would_have_nothing_left() -> None:
    made = replace(spec("a"), edits=node_edits("/dev/nvidiactl"))
    made = replace(made, devices=(device("a", "/dev/a", "/dev/nvidiactl", "/dev/a"), device("b", "/dev/nvidiactl")))
    assert simplified(made).devices == (device("a", "/dev/a"), device("b", "/dev/nvidiactl"))


def test_hooks_keep_their_order() -> None:
    hooks = (HOOK, CdiHook("createContainer", "/a"), HOOK)
    assert simplified(replace(spec("a"), edits=CdiEdits(hooks=hooks))).edits.hooks == hooks[:2]


def effect(made: CdiSpec, name: str) -> tuple[object, ...]:
    """What a container with this device gets, whatever the order, but for hooks and variables."""
    edits = made.edits + next(device.edits for device in made.devices if device.name == name)
    return (
        frozenset(edits.env),
        frozenset(edits.device_nodes),
        frozenset(edits.mounts),
        tuple(dict.fromkeys(edits.hooks)),
        frozenset(edits.additional_gids),
    )


@given(FINE.ours(NAMES), st.randoms(use_true_random=False))
def test_a_container_gets_the_same_from_the_shorter_file(made: CdiSpec, random: Random) -> None:
    short = simplified(made)
    assert {each.name for each in short.devices} == {each.name for each in made.devices}
    for each in made.devices:
        assert effect(short, each.name) == effect(made, each.name)
    assert short.problems == ()
    assert simplified(short) == short
    shuffled = list(made.devices)
    random.shuffle(shuffled)
    assert simplified(replace(made, devices=tuple(shuffled))) == short


@given(FINE.ours(NAMES))
def test_all_is_all_devices_together(made: CdiSpec) -> None:
    whole = with_all(made)
    assert whole.devices[:-1] == made.devices
    assert whole.devices[-1] == CdiDevice("all", sum((each.edits for each in made.devices), CdiEdits()))
    assert with_all(whole) == whole


def test_an_all_that_is_there_stays_as_it_is() -> None:
    assert with_all(spec("all")) == spec("all")
