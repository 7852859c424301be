"""The table of XIDs: its shape, and what is said of a number."""

import re

import pytest

from gpustow.config.faultrule import FATAL, IGNORE, parse_rule
from gpustow.health.xids import UNNAMED, known_xids, meaning_of, nearest_xids

CLASSES = {
    "application",
    "bus",
    "echo",
    "engine",
    "firmware",
    "hang",
    "information",
    "legacy",
    "link",
    "memory",
    "repair",
    "security",
    "setup",
    "state",
}
ACTIONS = re.compile(
    r"|contact support|ignore|reset GPU|reboot node|restart application|restart fabric manager|check [A-Z0-9_/]+"
)


def test_the_table_has_the_numbers_1_to_176_in_order() -> None:
    assert list(known_xids()) == list(range(1, 177))
    assert [row.number for row in known_xids().values()] == list(range(1, 177))


def test_every_row_has_its_shape() -> None:
    for row in known_xids().values():
        assert re.fullmatch(r"[A-Z][A-Z0-9_]+", row.name), row
        assert row.meaning, row
        assert row.meaning[0].isupper(), row
        assert row.meaning[-1] != ".", row
        assert row.kind in CLASSES, row
        assert str(row.rule) in {"ignore", "fatal", "3 in 10m", "3 in 24h"}, row
        assert ACTIONS.fullmatch(row.action), row
        assert ACTIONS.fullmatch(row.follow_up), row
        assert row.application in {"yes", "no", "possible"}, row
        assert row.gpus is None or set(row.gpus) <= {"A100", "H100", "B100", "GB200"}, row
        assert row.advice, row
        assert "  " not in row.meaning + row.note, row


def test_names_are_unique() -> None:
    assert len({row.name for row in known_xids().values()}) == len(known_xids())


def test_what_newer_gpus_do_not_use_is_disputed() -> None:
    legacy = [row for row in known_xids().values() if row.kind == "legacy"]
    assert len(legacy) == 56
    assert all(row.disputed for row in legacy)


@pytest.mark.parametrize("number", [46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158])
def test_what_needs_a_reset_or_a_reboot_is_fatal(number: int) -> None:
    assert known_xids()[number].rule == FATAL


@pytest.mark.parametrize("number", [13, 31, 43, 45, 63, 66, 67, 68, 92, 93, 106, 107, 121, 137, 154, 171, 176])
def test_what_applications_do_and_what_only_informs_is_ignored(number: int) -> None:
    assert known_xids()[number].rule == IGNORE


def test_what_is_contained_counts_in_a_day_and_what_engines_do_in_ten_minutes() -> None:
    assert known_xids()[94].rule == parse_rule("3 in 24h")
    assert {str(row.rule) for row in known_xids().values() if row.kind == "engine" and row.number != 68} == {"3 in 10m"}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (79, "GPU no longer answers on PCIe; drain the node and reboot it; if it comes back, contact NVIDIA support"),
        (94, "Uncorrectable error confined to one application; restart the application"),
        (48, "Uncorrectable memory error detected; follow WORKFLOW_XID_48 of NVIDIA's XID catalogue"),
        (167, "Fatal PCIe timeout; NVIDIA states no action"),
        (UNNAMED, "an XID that the driver does not name; see the kernel's log"),
        (555, "not in the table; see NVIDIA's XID catalogue"),
    ],
)
def test_a_number_is_told_with_meaning_and_advice(number: int, text: str) -> None:
    assert meaning_of(number) == text


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("790", 79),
        ("fallen off the bus", 79),
        ("nvlink-error", 74),
        ("NVLNK_ERROR", 74),
        ("GSP_RPC_TIMOUT", 119),
    ],
)
def test_the_nearest_number_is_found_by_name_or_digits(word: str, near: int) -> None:
    assert near in nearest_xids(word)


def test_nothing_is_near_to_nothing() -> None:
    assert nearest_xids("") == ()
    assert nearest_xids("qqqqqqqq") == ()
    assert nearest_xids("9999") == ()
