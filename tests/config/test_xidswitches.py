"""The variables of v0.20.0: what each list says, row by row, and which XIDs count then."""

import pytest

from gpustow.config.xidswitches import DISABLE, ENABLE, XidList, XidSwitches, read_switches


@pytest.mark.parametrize("text", ["", ",", "not-an-int", "-68", " , ", "+68", "6_8", "6.8", "0x44", str(2**64)])
def test_a_list_without_an_xid_says_nothing(text: str) -> None:
    switches, _ = read_switches({DISABLE: text, ENABLE: text})
    assert switches == XidSwitches()
    assert not switches.disabled
    assert switches.disabled.words() == []


@pytest.mark.parametrize("text", ["68", "68   ", "68,", ",68", "068"])
def test_blanks_and_empty_items_do_not_matter(text: str) -> None:
    assert read_switches({DISABLE: text})[0].disabled == XidList(frozenset({68}))


@pytest.mark.parametrize("text", ["68,67", "68,not-an-int,67", " 67 , 68 "])
def test_a_list_has_several_xids(text: str) -> None:
    xids = read_switches({ENABLE: text})[0].enabled
    assert xids == XidList(frozenset({67, 68}))
    assert 67 in xids
    assert 69 not in xids
    assert xids.words() == ["67", "68"]


@pytest.mark.parametrize("text", ["all", "xids", "ALL", " Xids ", "68,all", "all,junk", "0", "68,0"])
def test_one_word_for_all_is_all(text: str) -> None:
    xids = read_switches({DISABLE: text})[0].disabled
    assert xids == XidList(everything=True)
    assert 555 in xids
    assert xids.words() == ["all"]


@pytest.mark.parametrize(
    ("disable", "enable", "off"),
    [
        ("", "", False),
        ("all", "", True),
        ("xids", "", True),
        ("0", "", True),
        ("", "all", False),
        ("11", "11", False),
        ("79,48", "", False),
        ("all", "all", False),
        ("all", "79", False),
    ],
)
def test_case_c56_all_is_off_when_everything_is_disabled_and_nothing_enabled(
    disable: str, enable: str, *, off: bool
) -> None:
    assert read_switches({DISABLE: disable, ENABLE: enable})[0].all_off is off


def test_words_that_say_nothing_are_told() -> None:
    assert read_switches({DISABLE: "94, x,-1,", ENABLE: "0,y"})[1] == (
        "DP_DISABLE_HEALTHCHECKS: 'x' is not the number of an XID, and left out",
        "DP_DISABLE_HEALTHCHECKS: '-1' is not the number of an XID, and left out",
        "DP_ENABLE_HEALTHCHECKS: 'y' is not the number of an XID, and left out",
        "DP_ENABLE_HEALTHCHECKS: 0 is read as all, as in v0.20.0; write all",
    )
    assert read_switches({})[1] == ()
