"""Which names outlive their devices."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.injection.cdi.names import CLASSES, kind
from gpustow.injection.cdi.oldnames import still_named, with_old_names
from gpustow.injection.cdi.specification import CdiSpec
from tests.injection.cdi.samples import FINE, spec

NAMES = ("GPU-1", "GPU-2", "MIG-1", "0", "1:0", "all")


@pytest.mark.parametrize(
    ("class_", "name", "held", "stays"),
    [
        ("gpu", "GPU-1", None, True),
        ("gpu", "GPU-1", ["GPU-1"], True),
        ("gpu", "GPU-1", ["GPU-2"], False),
        ("gpu", "GPU-1", [], False),
        ("gpu", "0", ["GPU-2"], True),
        ("gpu", "1:0", ["GPU-2"], True),
        ("gpu", "1:0", [], False),
        ("gpu", "all", ["GPU-2"], True),
        ("gpu", "all", [], False),
        ("gds", "all", ["GPU-2"], True),
        ("gds", "all", [], False),
        ("gds", "all", None, True),
        ("imex-channel", "0", ["GPU-2"], True),
        ("imex-channel", "0", [], False),
    ],
)
def test_a_name_stays_as_long_as_somebody_may_have_it(
    class_: str,
    name: str,
    held: Sequence[str] | None,
    stays: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    assert still_named(kind(class_), name, held) is stays


MAYBE_SPEC = st.none() | FINE.ours(NAMES)
HELD = st.none() | st.frozensets(st.sampled_from(["GPU-1", "GPU-2", "MIG-1", "GPU-9"]))


REMOVABLE = st.none() | st.frozensets(st.sampled_from(NAMES))


@given(MAYBE_SPEC, MAYBE_SPEC, HELD, REMOVABLE)
def test_what_is_wanted_wins_and_of_the_rest_only_what_is_needed_stays(
    previous: CdiSpec | None,
    wanted: CdiSpec | None,
    held: frozenset[str] | None,
    removable: frozenset[str] | None,
) -> None:
    result = with_old_names(previous, wanted, held, removable)
    found = {device.name: device for device in result.devices} if result is not None else {}
    new = {device.name: device for device in wanted.devices} if wanted is not None else {}
    old = {device.name: device for device in previous.devices} if previous is not None else {}
    needed = {
        name: device
        for name, device in old.items()
        if still_named(kind("gpu"), name, held) or (removable is not None and name not in removable)
    }
    assert found == needed | new
    if result is None:
        assert not needed
        assert wanted is None
        return
    result.check()
    assert result.edits == (wanted or previous or result).edits
    assert with_old_names(result, wanted, held, removable) == result


PLAIN = st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(lambda names: spec(*names))


@given(PLAIN, st.lists(PLAIN, max_size=4))
def test_through_any_number_of_changes_no_name_is_lost_while_nothing_is_known(
    first: CdiSpec, changes: list[CdiSpec]
) -> None:
    content: CdiSpec | None = first
    ever = {device.name for device in first.devices}
    for wanted in changes:
        ever |= {device.name for device in wanted.devices}
        content = with_old_names(content, wanted, None)
        assert content is not None
        assert {device.name for device in content.devices} == ever


@pytest.mark.parametrize("class_", CLASSES)
def test_where_nobody_holds_anything_the_file_is_what_is_wanted(class_: str) -> None:
    previous, wanted = spec("0", "all", class_=class_), spec("1", class_=class_)
    assert with_old_names(previous, wanted, []) == wanted
    assert with_old_names(previous, None, []) is None
    assert with_old_names(None, wanted, None) == wanted
    assert with_old_names(None, None, None) is None
