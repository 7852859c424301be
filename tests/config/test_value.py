"""Values as flags, environment and file write them."""

from typing import Any

import pytest

from gpustow.config import FEATURE_SETTINGS, SETTINGS, Setting
from gpustow.config.setting import Value
from gpustow.config.value import read_node, read_words


def setting(flag: str) -> Setting:
    return next(each for each in (*SETTINGS, *FEATURE_SETTINGS) if each.flag == flag)


@pytest.mark.parametrize(
    ("flag", "words", "value"),
    [
        ("mig-strategy", ["a", "b"], "b"),
        ("gds-enabled", ["false", "true"], True),
        ("device-list-strategy", ["a, b", "c"], ("a", "b", "c")),
        ("device-list-strategy", [""], ("",)),
        ("imex-channel-ids", ["0, 0x10", "010"], (0, 16, 8)),
        ("sleep-interval", ["30s", "1m"], 60 * 10**9),
    ],
)
def test_words_are_read_by_the_kind_of_the_setting(flag: str, words: list[str], value: Value) -> None:
    assert read_words(setting(flag), words) == value


@pytest.mark.parametrize(
    ("flag", "value"), [("gds-enabled", False), ("imex-channel-ids", None), ("sleep-interval", None)]
)
def test_an_empty_variable_is_no_fault_where_it_cannot_be_a_value(flag: str, value: Value | None) -> None:
    assert read_words(setting(flag), [""], empty_is_unset=True) == value


def test_of_several_words_none_may_be_wrong() -> None:
    with pytest.raises(ValueError, match="'yes' is not true or false"):
        read_words(setting("gds-enabled"), ["yes", "true"])


@pytest.mark.parametrize(
    ("flag", "word"),
    [
        ("gds-enabled", ""),
        ("gds-enabled", "on"),
        ("imex-channel-ids", "a"),
        ("imex-channel-ids", ""),
        ("sleep-interval", ""),
    ],
)
def test_other_words_are_refused(flag: str, word: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        read_words(setting(flag), [word])


@pytest.mark.parametrize(
    ("flag", "node", "value"),
    [
        ("mps-root", 1.5, "1.5"),
        ("mps-root", False, "false"),
        ("gds-enabled", True, True),
        ("device-list-strategy", "envvar", ("envvar",)),
        ("select-gpus", [0, "GPU-1"], ("0", "GPU-1")),
        ("select-gpus", 3, ("3",)),
        ("imex-channel-ids", [], ()),
        ("sleep-interval", 5, 5),
        ("sleep-interval", "5s", 5 * 10**9),
        ("mig-strategy", None, None),
    ],
)
def test_nodes_are_read_by_the_kind_of_the_setting(flag: str, node: Any, value: Value | None) -> None:
    assert read_node(setting(flag), node) == value


@pytest.mark.parametrize(
    ("flag", "node"),
    [
        ("mps-root", []),
        ("gds-enabled", "true"),
        ("device-list-strategy", [1]),
        ("device-list-strategy", 1),
        ("select-gpus", [True]),
        ("imex-channel-ids", 0),
        ("sleep-interval", [1]),
        ("sleep-interval", 1e30),
    ],
)
def test_other_nodes_are_refused(flag: str, node: Any) -> None:
    with pytest.raises(ValueError, match="is not"):
        read_node(setting(flag), node)
