"""`gpustow xid`, in this process."""

import json
import sys
from collections.abc import Callable

import pytest
import yaml

from gpustow.cli import main
from gpustow.health.xids import known_xids
from tests.cli.commands import Ended


@pytest.fixture
def xid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def call(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["gpustow", "xid", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


def test_all_are_listed_with_what_becomes_of_a_gpu(xid: Callable[..., Ended]) -> None:
    ended = xid()
    table, more = ended.out.split("\n\n")
    header, *lines = table.splitlines()
    assert ended.code == 0
    assert header.split() == ["XID", "RULE", "CLASS", "ACTION", "MEANING"]
    assert [int(line.split()[0]) for line in lines if not line.startswith(" ")] == list(known_xids())
    assert "79   fatal     bus          reboot node          GPU no longer answers on PCIe" in lines
    assert "48   fatal     memory       see the catalogue    Uncorrectable memory error" in lines
    assert "164  ignore    information  -                    Power-smoothing circuit nearly" in lines
    assert "health.xidPolicy" in more


@pytest.mark.parametrize("words", [[], [str(number) for number in known_xids()], ["--help"]])
def test_everything_fits_into_80_columns(xid: Callable[..., Ended], words: list[str]) -> None:
    assert [line for line in xid(*words).out.splitlines() if len(line) > 80] == []


def test_one_is_told_with_all_that_is_known_of_it(xid: Callable[..., Ended]) -> None:
    assert xid("94").out.splitlines() == [
        "XID 94  ROBUST_CHANNEL_CONTAINED_ERROR",
        "  meaning           Uncorrectable error confined to one application",
        "  class             memory",
        "  by application    no",
        "  advice            restart the application",
        "  under compatible  fatal",
        "  under catalogue   3 in 24h",
        "  GPUs              A100 H100 B100 GB200",
        "  sources           disagree, state no action, or no longer use it",
        "  note              The application is lost and the GPU can be used; reset it",
        "                    when it is idle",
    ]


def test_several_are_told_in_the_order_asked_for(xid: Callable[..., Ended]) -> None:
    out = xid("79", "0048", "176", "1").out
    assert [line for line in out.splitlines() if line.startswith("XID")] == [
        "XID 79  ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS",
        "XID 48  ROBUST_CHANNEL_GPU_ECC_DBE",
        "XID 176  PCIE_CORRECTABLE_ERROR_FAULT",
        "XID 1  ROBUST_CHANNEL_FIFO_ERROR_FIFO_METHOD",
    ]
    assert "GPUs              not in the catalogue" in out
    assert "GPUs              none of A100, H100, B100 and GB200, by the catalogue" in out


def test_they_are_there_for_machines(xid: Callable[..., Ended]) -> None:
    [entry] = json.loads(xid("94", "-o", "json").out)
    assert entry == {
        "xid": 94,
        "name": "ROBUST_CHANNEL_CONTAINED_ERROR",
        "meaning": "Uncorrectable error confined to one application",
        "class": "memory",
        "rules": {"compatible": "fatal", "catalogue": "3 in 24h"},
        "action": "restart application",
        "follow_up": "ignore",
        "advice": "restart the application",
        "application": "no",
        "gpus": ["A100", "H100", "B100", "GB200"],
        "disputed": True,
        "note": "The application is lost and the GPU can be used; reset it when it is idle",
    }
    assert yaml.safe_load(xid("94", "--output=yaml").out) == [entry]
    everything = json.loads(xid("-o", "json").out)
    assert [each["xid"] for each in everything] == list(known_xids())
    assert everything[172]["gpus"] is None
    assert everything[172]["action"] is None


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("790", "79 (ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS)"),
        ("nvlink_error", "Did you mean 74 (NVLINK_ERROR)?"),
        ("qqqqqq", "`gpustow xid` lists those that are known."),
        ("7²", ""),
    ],
)
def test_what_is_not_known_ends_with_2_and_the_nearest(xid: Callable[..., Ended], code: str, hint: str) -> None:
    ended = xid("79", code)
    assert (ended.code, ended.out) == (2, "")
    assert f"{code!r} is not the number of an XID that is known here" in ended.err
    assert hint in ended.err
