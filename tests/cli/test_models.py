"""`gpustow models`, in this process."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpustow.cli import main
from gpustow.hardware.fabrics import FABRICS
from gpustow.hardware.modelfile import node_model_schema
from gpustow.hardware.nodemodel import shipped_models
from tests.cli.commands import Ended


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def call(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["gpustow", "models", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


def test_every_shipped_model_is_listed_with_what_it_is(models: Callable[..., Ended]) -> None:
    ended = models()
    table, more = ended.out.split("\n\n")
    header, *lines = table.splitlines()
    assert ended.code == 0
    assert header.split() == ["NAME", "GPUS", "MIG", "DESCRIPTION"]
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(shipped_models())
    at = lines.index("hgx-h100-mig            8     32   NVIDIA HGX H100 with every GPU cut into 3g,")
    assert lines[at + 1] == " " * 35 + "2g and two 1g"
    assert "`gpustow models fabrics`" in more


@pytest.mark.parametrize("words", [[], ["fabrics"], *(["show", name] for name in shipped_models() if name != "dgx-2")])
def test_everything_fits_into_80_columns(models: Callable[..., Ended], words: list[str]) -> None:
    assert [line for line in models(*words).out.splitlines() if len(line) > 80] == []


def test_every_fabric_is_listed_with_how_many_gpus_it_is_for(models: Callable[..., Ended]) -> None:
    header, *lines = models("fabrics").out.splitlines()
    assert header.split() == ["FABRIC", "GPUS", "DESCRIPTION"]
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(FABRICS)
    assert "hgx-a100-4         4     four NVLinks between any two of four GPUs, two sockets" in lines
    assert "uniform            any   synthetic: every pair alike" in lines


def test_the_list_is_there_for_machines(models: Callable[..., Ended]) -> None:
    entries = {entry["name"]: entry for entry in json.loads(models("-o", "json").out)}
    assert set(entries) == set(shipped_models())
    assert entries["a100-4-mig-5"] == {
        "name": "a100-4-mig-5",
        "description": "Four A100 SXM4 40 GB, each cut into five MIG devices of one slice",
        "platform": "nvml",
        "gpus": 4,
        "mig_devices": 20,
    }


def test_a_model_is_drawn_with_its_gpus_and_links(models: Callable[..., Ended]) -> None:
    out = models("show", "dgx-1-v100").out
    assert out.startswith(
        "dgx-1-v100: NVIDIA DGX-1, eight V100 SXM2 16 GB in a hybrid cube mesh\n8 GPUs, platform nvml"
    )
    assert "GPU1  NV1   X     NV2   NV1   SYS   NV2   SYS   SYS   0" in out
    assert "GPU1  PIX   X     PHB   PHB   SYS   SYS   SYS   SYS   0" in out
    assert "MIG" not in out.partition("Links")[2]


def test_a_file_is_drawn_with_its_mig_layout_and_faults(models: Callable[..., Ended], tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(
        """
        name: mine
        gpus: [{model: NVIDIA A100-SXM4-40GB, mig: {devices: [1c.3g.20gb, 2c.3g.20gb, {profile: 1g.5gb, start: 6}]}}]
        faults: [{fault: lost, after: 5s, gpu: 0}, {fault: xid, after: 1s, gpu: 0, code: 79}]
        """
    )
    out = models("show", str(file)).out
    assert "GPU 0  |2 in 3g.20gb                       |        |        |1g.5gb  |        |" in out
    assert "0:1         2c.3g.20gb  19968 MiB  1             1                 0:4\n" in out
    assert "\n0:1         MIG-" in out
    assert out.endswith("Faults\n  after 1 s  GPU 0 reports XID 79\n  after 5 s  GPU 0 is lost\n")


def test_the_schema_is_the_one_of_the_file(models: Callable[..., Ended]) -> None:
    assert json.loads(models("schema").out) == node_model_schema()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: n\ngpus: [{modle: Tesla T4}]", "gpus[0].modle: there is no such key; did you mean model?"),
        (None, "shipped"),
    ],
)
def test_a_model_that_is_refused_ends_with_4_and_the_reasons(
    models: Callable[..., Ended], tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "node.yaml"
    if content is not None:
        file.write_text(content)
    ended = models("show", str(file))
    assert (ended.code, ended.out) == (4, "")
    assert message in ended.err
