"""Which devices an entry of the sharing section chooses: what v0.20.0 accepts and refuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config.devicechoice import read_device_choice

UUID = "8dcd427f-483b-b48f-d7e5-75fb19a52b76"


@pytest.mark.parametrize(
    ("node", "choice"),
    [
        ("all", "all"),
        (2, 2),
        ([0], ("0",)),
        (["0"], ("0",)),
        (["0:0"], ("0:0",)),
        ([f"GPU-{UUID}"], (f"GPU-{UUID}",)),
        ([f"MIG-{UUID}"], (f"MIG-{UUID}",)),
        ([f"MIG-GPU-{UUID}/0/0"], (f"MIG-GPU-{UUID}/0/0",)),
        ([f"MIG-GPU-{UUID}/10/0"], (f"MIG-GPU-{UUID}/10/0",)),
        ([0, "0:0", f"GPU-{UUID}"], ("0", "0:0", f"GPU-{UUID}")),
        (["0", "0:0", f"GPU-{UUID}"], ("0", "0:0", f"GPU-{UUID}")),
        ([], ()),
        ([f"GPU-{UUID.replace('-', '').upper()}"], (f"GPU-{UUID}",)),
        ([f"GPU-{{{UUID}}}"], (f"GPU-{UUID}",)),
        ([f"GPU-urn:uuid:{UUID}"], (f"GPU-{UUID}",)),
    ],
)
def test_a_choice_is_read_and_uuids_are_written_as_nvml_does(node: Any, choice: object) -> None:
    assert read_device_choice(node) == choice


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("not-all", "devices set as 'not-all' but the only valid string input is 'all'"),
        (0, "the count of devices must be > 0"),
        (-2, "the count of devices must be > 0"),
        (2.5, "2.5 is neither"),
        (True, "True is neither"),
        (None, "None is neither"),
        ({}, "{} is neither"),
        ([1.5], "unsupported type"),
        ([True], "unsupported type"),
        ([None], "unsupported type"),
        ([-1], "'-1' is neither"),
        (["-1"], "'-1' is neither"),
        (["0:0:0"], "'0:0:0' is neither"),
        (["invalid-UUID"], "'invalid-UUID' is neither"),
        ([UUID], f"'{UUID}' is neither"),
        (["GPU-UUID"], "'GPU-UUID' does not hold a UUID"),
        (["MIG-UUID"], "'MIG-UUID' does not hold a UUID"),
        ([f"MIG-GPU-{UUID}"], f"'MIG-GPU-{UUID}' is neither"),
        ([f"GPU-{UUID}/0/0"], f"'GPU-{UUID}/0/0' is neither"),
    ],
)
def test_what_is_no_choice_is_refused_with_the_value(node: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as refusal:
        read_device_choice(node)
    assert str(refusal.value).startswith(message)


@given(st.lists(st.text(max_size=50) | st.integers()) | st.text() | st.floats() | st.integers())
def test_any_node_is_a_choice_or_refused(node: Any) -> None:
    try:
        assert read_device_choice(node) is not None
    except ValueError as error:
        assert str(error)
