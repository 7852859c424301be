"""`gpustow explain`: one question on the command line, many on stdin, and the page that shows it."""

import io
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpustow.cli import main
from gpustow.hardware.nodemodel import load_node_model
from gpustow.placement.policy import PolicyName
from tests.cli.commands import Ended
from tests.placement.cards import ask, counts, free_after, linked, replicas, whole

SHARING = """
version: v1
sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/gpu, replicas: 4}
placement:
  resources:
  - {name: nvidia.com/gpu, policy: packed, distinct: required}
"""

Explain = Callable[..., Ended]


@pytest.fixture
def explain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Explain:
    def call(*words: str, stdin: str = "") -> Ended:
        monkeypatch.setattr(sys, "argv", ["gpustow", "explain", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


@pytest.fixture
def sharing(tmp_path: Path) -> str:
    path = tmp_path / "sharing.yaml"
    path.write_text(SHARING, encoding="utf-8")
    return str(path)


def answer(ended: Ended) -> dict[str, Any]:
    assert (ended.code, ended.err) == (0, "")
    data = json.loads(ended.out)
    assert isinstance(data, dict)
    return data


def test_whole_gpus_are_explained_as_a_table(explain: Explain) -> None:
    ended = explain("--node-model", "dgx-1-v100", "--size", "2")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].split() == ["GPU", "FREE", "IN", "USE", "LOAD", "TAKES", "LOAD", "AFTER"]
    assert lines[1].split() == ["0", "1", "0", "0", "1", "1"]
    assert lines[2].split() == ["1", "1", "0", "0", "-", "0"]
    assert "aligned takes GPUs 0 and 3; the next best, GPUs 1 and 2, is equal but for the GPU index." in lines


def test_an_answer_is_written_as_json(explain: Explain) -> None:
    data = answer(explain("--node-model", "dgx-1-v100", "--size", "2", "-o", "json"))
    gpus = load_node_model("dgx-1-v100").node.gpus
    assert data["resource"] == "nvidia.com/gpu"
    assert data["device_ids"] == [gpus[0].uuid, gpus[3].uuid]
    assert data["per_gpu"] == {"0": 1, "3": 1}
    assert data["policy"] == "aligned"
    assert data["objective"]["partition score"] == 920
    assert data["runner_up"]["per_gpu"] == {"1": 1, "2": 1}
    assert data["decided_by"] == "GPU index"
    assert data["sentence"].startswith("aligned takes GPUs 0 and 3")
    assert data["exact"] is True


def test_devices_in_use_are_named_by_index(explain: Explain) -> None:
    base = ("--node-model", "a100-4-mig-5", "--policy", "packed", "-o", "json")
    assert answer(explain(*base, "--in-use", "2:0", "--in-use", "3:0,3:1"))["per_gpu"] == {"3": 1}
    assert answer(explain(*base, "--in-use", "2:0,2:1,2:2,2:3,2:4,3:0"))["per_gpu"] == {"3": 1}


def test_a_device_is_named_by_its_id_too(explain: Explain) -> None:
    device = load_node_model("a100-4-mig-5").node.gpus[1].mig_devices[0].uuid
    base = ("--node-model", "a100-4-mig-5", "-o", "json", "--policy", "packed")
    assert answer(explain(*base, "--in-use", device))["per_gpu"] == {"1": 1}


def test_what_is_offered_and_must_be_included_is_kept(explain: Explain) -> None:
    base = ("--node-model", "t4-4", "-o", "json", "--size", "2")
    assert answer(explain(*base, "--offered", "1,2,3", "--must-include", "3"))["per_gpu"] == {"1": 1, "3": 1}
    assert answer(explain(*base, "--in-use", "0", "--must-include", "0"))["per_gpu"]["0"] == 1


def test_not_offered_devices_are_in_use_unless_it_is_known_what_is(explain: Explain) -> None:
    base = ("--node-model", "a100-4-mig-5", "-o", "json", "--policy", "packed")
    offered = ("--offered", "0:0,0:1,1:0,1:1,1:2,1:3,1:4")
    assert answer(explain(*base, *offered))["per_gpu"] == {"0": 1}
    assert answer(explain(*base, *offered, "--in-use", "1:0"))["per_gpu"] == {"0": 1}
    assert answer(explain(*base, "--offered", "0:0,1:1", "--in-use", "1:0"))["per_gpu"] == {"1": 1}


def test_what_another_resource_holds_makes_a_gpu_busy(explain: Explain) -> None:
    base = ("--node-model", "hgx-h100-mig", "-o", "json", "--policy", "packed")
    free = answer(explain(*base))
    assert free["objective"]["idle GPUs opened"] == 1
    gpu = next(gpu for gpu in load_node_model("hgx-h100-mig").node.gpus[::-1] if gpu.mig_devices)
    busy = answer(explain(*base, "--in-use", gpu.mig_devices[0].uuid))
    assert busy["per_gpu"] == {str(gpu.index): 1}
    assert busy["objective"]["idle GPUs opened"] == 0


def test_the_configuration_names_policy_and_rule(explain: Explain, sharing: str) -> None:
    data = answer(explain("--node-model", "t4-4", "--config", sharing, "--size", "3", "-o", "json"))
    assert data["policy"] == "packed"
    assert data["per_gpu"] == {"0": 1, "1": 1, "2": 1}
    data = answer(
        explain("--node-model", "t4-4", "--config", sharing, "--size", "2", "--policy", "distributed", "-o", "json")
    )
    assert (data["policy"], data["per_gpu"]) == ("distributed", {"0": 1, "1": 1})


def test_a_resource_is_named_with_or_without_its_prefix(explain: Explain) -> None:
    for name in ("gpu", "nvidia.com/gpu"):
        assert answer(explain("--node-model", "t4-4", "--resource", name, "-o", "json"))["resource"] == "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--resource", "cpu"], "node t4-4 has no resource 'cpu'\n  Choose one of nvidia.com/gpu."),
        (["--policy", "aligned"], "unknown policy 'aligned'\n  Choose one of distributed, packed, spread"),
        (["--in-use", "0,9"], "nvidia.com/gpu has no device '9'"),
        (["--offered", "GPU-x"], "nvidia.com/gpu has no device 'GPU-x'"),
    ],
)
def test_a_name_that_does_not_exist_ends_with_2(explain: Explain, words: list[str], message: str) -> None:
    ended = explain("--node-model", "t4-4", *words)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


def test_an_infeasible_request_ends_with_1(explain: Explain) -> None:
    ended = explain("--node-model", "t4-4", "--size", "5")
    assert (ended.code, ended.out) == (1, "")
    assert "5 devices are asked for, but only 4 are offered" in ended.err


def test_a_node_without_devices_ends_with_6(explain: Explain, tmp_path: Path) -> None:
    model = tmp_path / "empty.yaml"
    model.write_text("name: empty\ngpus: []\n", encoding="utf-8")
    ended = explain("--node-model", str(model))
    assert (ended.code, ended.out) == (6, "")
    assert "node empty has no devices to serve" in ended.err


def test_questions_are_answered_one_a_line(explain: Explain, sharing: str) -> None:
    questions = [
        {"size": 1},
        {"size": 2, "policy": "distributed", "in_use": ["0::0", "1::0"]},
        {"size": 2, "offered": ["0::1", "0::2", "3::0"], "must_include": ["3::0"]},
        {"size": 99},
    ]
    ended = explain(
        "--node-model", "t4-4", "--config", sharing, "--batch", stdin="\n".join(map(json.dumps, questions)) + "\n\n"
    )
    assert (ended.code, ended.err) == (0, "")
    answers = [json.loads(line) for line in ended.out.splitlines()]
    assert [line.get("per_gpu") for line in answers] == [{"0": 1}, {"2": 1, "3": 1}, {"0": 1, "3": 1}, None]
    assert answers[3] == {"error": "99 devices are asked for, but only 16 are offered"}
    assert answers[1]["policy"] == "distributed"
    assert answers[2]["sentence"].startswith("packed takes 1 on GPU 0 and 1 on GPU 3")


@pytest.mark.parametrize("words", [("--size", "2"), ("--policy", "packed"), ("--in-use", "0")])
def test_a_batch_does_not_mix_with_a_question_in_options(explain: Explain, words: tuple[str, str]) -> None:
    ended = explain("--node-model", "t4-4", "--batch", *words, stdin='{"size": 1}')
    assert (ended.code, ended.out) == (2, "")
    assert "--batch takes its questions from stdin alone" in ended.err


def test_lines_that_are_no_questions_are_told_at_the_end(explain: Explain) -> None:
    lines = [
        "nonsense",
        "[]",
        '{"size": "2"}',
        '{"size": true}',
        '{"size": 1, "policy": 3}',
        '{"size": 1, "offered": "0"}',
        '{"size": 1, "count": 2}',
        '{"size": 1, "policy": "best"}',
        "[" * 100_000,
        '{"size": 1}',
        '{"size": 0}',
    ]
    ended = explain("--node-model", "t4-4", "--batch", stdin="\n".join(lines))
    assert ended.code == 4
    answers = [json.loads(line) for line in ended.out.splitlines()]
    assert ["error" in line for line in answers] == [True] * 9 + [False] * 2
    for part in (
        "line 1: it is not JSON",
        "line 2: a question must be an object",
        "line 3: size: '2' is not a whole number",
        "line 4: size: True is not a whole number",
        "line 5: policy: 3 is not a text",
        "line 6: offered: '0' is not a list of texts",
        "line 7: unknown field 'count'; known are offered, must_include, size, policy, in_use",
        "line 8: unknown policy 'best'",
    ):
        assert part in ended.err


def test_a_table_with_long_values_fits_80_columns(explain: Explain, sharing: str) -> None:
    base = ("--node-model", "dgx-2", "--config", sharing, "--size", "20")
    for policy in ("distributed", "spread", "packed"):
        table, objective, _ = explain(*base, "--policy", policy).out.split("\n\n")
        assert max(map(len, (*table.splitlines(), *objective.splitlines()))) <= 80
    assert "own slots      4x 2 12x 1" in explain(*base, "--policy", "spread").out


def test_an_answer_that_is_not_proven_says_so(explain: Explain, tmp_path: Path) -> None:
    model = tmp_path / "node.yaml"
    model.write_text(
        "name: odd\ngpus: [{model: Tesla T4, count: 17}]\nlinks: {fabric: random, seed: 1}\n", encoding="utf-8"
    )
    ended = explain("--node-model", str(model), "--size", "4")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[-1].startswith("There are too many answers")


PAGE = Path(__file__).parents[2] / "docs" / "policies.md"


def worked_examples() -> list[tuple[str, str]]:
    """The commands of the page, and what it shows under each."""
    examples = []
    for block in PAGE.read_text(encoding="utf-8").split("```console\n")[1:]:
        command, _, shown = block.partition("```")[0].partition("\n")
        examples.append((command.removeprefix("$ gpustow explain "), shown))
    return examples


@pytest.mark.parametrize(("command", "shown"), worked_examples())
def test_the_page_on_policies_shows_what_the_command_prints(
    explain: Explain, monkeypatch: pytest.MonkeyPatch, command: str, shown: str
) -> None:
    monkeypatch.chdir(PAGE.parent)
    assert explain(*shlex.split(command)).out == shown


PICTURE = re.compile(r"    ([a-z-]+), (\d+) (?:slots|GPUs?)(?:, linked (.*))?\n((?:    GPU \d+ .*\n)+)")


@pytest.mark.parametrize("picture", PICTURE.findall(PAGE.read_text(encoding="utf-8")))
def test_the_pictures_of_the_page_are_true(picture: tuple[str, str, str, str]) -> None:
    policy, size, pairs, rows = picture
    before, after = zip(*(re.findall(r"\|([#o.]+)\|", row) for row in rows.splitlines()), strict=True)
    devices = whole(len(before)) if policy == "aligned" else replicas([len(slots) for slots in before])
    used = {gpu: slots.count("#") for gpu, slots in enumerate(before)}
    links = linked(len(before), [(int(pair[0]), int(pair[2]), 1) for pair in pairs.split()])
    name = "packed" if policy == "aligned" else policy
    placement = ask(name, devices, int(size), available=free_after(devices, used), links=links)
    assert counts(placement, len(before)) == [slots.count("o") for slots in after]
    assert [len(slots) for slots in before] == [len(slots) for slots in after]


def test_the_page_has_a_picture_of_every_policy() -> None:
    drawn = {picture[0] for picture in PICTURE.findall(PAGE.read_text(encoding="utf-8"))}
    assert drawn == {name.value for name in PolicyName}


def test_the_page_says_everything_once() -> None:
    headings = re.findall(r"^## .*", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(headings) == len(set(headings))


@pytest.mark.parametrize(("size", "lines"), [("1", 0), ("2", 1)])
def test_a_request_that_allocate_would_refuse_is_told(explain: Explain, tmp_path: Path, size: str, lines: int) -> None:
    file = tmp_path / "sharing.yaml"
    sharing = "{failRequestsGreaterThanOne: true, resources: [{name: gpu, replicas: 4}]}"
    file.write_text(f"sharing: {{timeSlicing: {sharing}}}", encoding="utf-8")
    ended = explain("--node-model", "t4-4", "--config", str(file), "--size", size)
    assert ended.code == 0
    assert ended.err == (
        "warning: Allocate would refuse 2 devices of nvidia.com/gpu, because of failRequestsGreaterThanOne\n" * lines
    )
