"""`gpustow config`: check, show and schema, as an operator runs them."""

import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer import BadParameter

from gpustow.cli.settingflags import flags_of
from tests.cli.commands import Ended, run

SHARED = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
MPS = "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 10}]}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def check(file: Path, text: str, *more: str) -> Ended:
    file.write_text(text)
    return run("gpustow", "config", "check", str(file), *more, env={"MIG_STRATEGY": "wrong"})


def test_a_file_without_faults_ends_with_0(file: Path) -> None:
    ended = check(file, SHARED)
    assert (ended.code, ended.out, ended.err) == (0, f"{file} can be used\n", "")


def test_with_a_node_model_it_says_what_the_node_would_offer(file: Path) -> None:
    ended = check(file, SHARED, "--node-model", "t4-4")
    assert ended.code == 0
    assert "  nvidia.com/gpu: 16 on 4 GPUs, sharing time-slicing; GPU-" in ended.out
    told = json.loads(check(file, SHARED, "--node-model=t4-4", "-o", "json").out)
    (resource,) = told["resources"]
    assert (resource["name"], resource["devices"], resource["gpus"]) == ("nvidia.com/gpu", 16, 4)
    assert resource["first_ids"][1].endswith("::1")


def test_with_a_node_model_it_says_which_labels_the_node_would_have(file: Path) -> None:
    ended = check(file, SHARED, "--node-model", "t4-4")
    assert "  nvidia.com/gpu.product=Tesla-T4-SHARED\n" in ended.out
    labels = json.loads(check(file, SHARED, "--node-model=t4-4", "-o", "json").out)["labels"]
    assert (labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.replicas"]) == ("4", "4")


def test_a_node_without_gpus_offers_nothing(file: Path, tmp_path: Path) -> None:
    model = tmp_path / "empty.yaml"
    model.write_text("name: empty\ngpus: []\n")
    assert check(file, "gpus: {exclude: ['*']}", "--node-model", "t4-4").out.endswith("offers nothing\n")


def test_warnings_are_told_and_end_with_8(file: Path) -> None:
    ended = check(file, "flags: {migStrategi: mixed}")
    assert ended.code == 8
    assert "flags.migStrategi: unknown key, without effect; did you mean 'migStrategy'?" in ended.out
    assert "can be used, with 1 warning" in ended.err
    assert "2 warnings" in check(file, "flags: {migStrategi: mixed, gdsEnable: true}").err


def test_what_the_plugin_would_refuse_ends_with_3(file: Path) -> None:
    ended = check(file, "version: v2")
    assert (ended.code, ended.out) == (3, "")
    assert "unknown version: v2" in ended.err


def test_what_is_refused_is_told_in_json_with_its_place(file: Path) -> None:
    ended = check(file, "flags: {plugin: {deviceIDStrategy: serial}}", "-o", "json")
    assert ended.code == 3
    (fault,) = json.loads(ended.out)["refused"]
    assert fault["path"] == "flags.plugin.deviceIDStrategy"
    ended = check(file, "flags: {migStrategy: single}", "--node-model", "hgx-h100-mig", "-o", "json")
    assert (ended.code, json.loads(ended.out)["refused"][0]["path"]) == (5, "")


def test_beside_what_is_refused_stands_what_has_no_effect(file: Path) -> None:
    text = "Flags: {migStrategi: mixed, failOnInitError: 3}"
    ended = check(file, text)
    assert (ended.code, ended.out) == (3, "")
    assert "\n  flags.failOnInitError: 3 is not true or false\n" in ended.err
    assert f"\n  warning: {file}: flags.migStrategi: unknown key, without effect; did you mean" in ended.err
    told = json.loads(check(file, text, "-o", "json").out)
    assert [fault["path"] for fault in told["refused"]] == ["flags.failOnInitError"]
    assert [warning.removeprefix(f"{file}: ").partition(":")[0] for warning in told["warnings"]] == [
        "flags.migStrategi",
        "Flags",
    ]


def test_warnings_are_told_although_the_node_does_not_go_with_the_file(file: Path) -> None:
    text = "Flags: {migStrategy: single}"
    ended = check(file, text, "--node-model", "hgx-h100-mig")
    assert (ended.code, ended.out) == (5, f"warning: {file}: Flags: it is read as 'flags'; write it so\n")
    told = json.loads(check(file, text, "--node-model", "hgx-h100-mig", "-o", "json").out)
    assert [len(told[key]) for key in ("refused", "warnings")] == [1, 1]


def test_a_node_that_does_not_go_with_the_file_ends_with_5(file: Path) -> None:
    ended = check(file, "flags: {migStrategy: single}", "--node-model", "hgx-h100-mig")
    assert ended.code == 5


def test_flags_can_be_given_as_the_plugin_would_have_them(file: Path) -> None:
    assert check(file, MPS).code == 3
    ended = check(file, MPS, "--flag", "mps-root=/mps", "--flag=--device-list-strategy=envvar", "--node-model=t4-4")
    assert "nvidia.com/gpu: 40 on 4 GPUs, sharing mps" in ended.out


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("mps-root", "'mps-root' lacks a value; write mps-root=VALUE"),
        ("pass-device-specs", "'pass-device-specs' lacks a value; write pass-device-specs=true"),
        ("pass-device-spec=1", "the plugin has no flag 'pass-device-spec'; did you mean 'pass-device-specs'?"),
        ("qqqqqqq=1", "the plugin has no flag 'qqqqqqq'; `gpustow plugin --help` lists those that it has"),
    ],
)
def test_a_flag_that_the_plugin_does_not_have_is_a_usage_error(word: str, message: str) -> None:
    with pytest.raises(BadParameter) as refusal:
        flags_of([word])
    assert str(refusal.value) == message
    assert refusal.value.exit_code == 2


def test_notes_are_no_warnings(file: Path) -> None:
    text = "flags: {gdsEnabled: true}\nresources: {gpus: [{pattern: '*', name: x}]}"
    ended = check(file, text, "--node-model", "t4-4")
    assert (ended.code, ended.err) == (0, "")
    drops, assumed = ended.out.splitlines()[-2:]
    assert drops.startswith("note: v0.20.0's feature discovery drops resources.gpus: ")
    assert assumed == "note: a simulated node is taken to have the devices of GPUDirect Storage"
    told = yaml.safe_load(check(file, text, "--node-model", "t4-4", "-o", "yaml").out)
    assert ([f"note: {note}" for note in told["notes"]], told["warnings"]) == ([drops, assumed], [])


def test_show_prints_each_value_and_where_it_comes_from(file: Path) -> None:
    file.write_text(SHARED)
    ended = run(
        "gpustow", "config", "show", "-config-file", str(file), "-imex-required", env={"MIG_STRATEGY": "single"}
    )
    lines = ended.out.splitlines()
    assert lines[0].startswith(f"config file: {file} (sha256 ")
    told = {name: (origin, value) for name, origin, value in (line.split(maxsplit=2) for line in lines[1:])}
    assert told["flags.migStrategy"] == ("environment", "single")
    assert told["imex.required"] == ("flag", "true")
    assert told["flags.mpsRoot"] == ("default", '""')
    shared = "resources: [{name: nvidia.com/gpu, devices: all, replicas: 4}]"
    assert told["sharing.timeSlicing"] == (
        "file",
        f"{{renameByDefault: false, failRequestsGreaterThanOne: false, {shared}}}",
    )
    assert "warning: imex.required has no effect without imex.channelIDs" in ended.err


def test_show_prints_json_as_well() -> None:
    told = json.loads(run("gpustow", "config", "show", "-o", "json").out)
    assert told["file"] is None
    assert {"name": "flags.migStrategy", "value": "none", "origin": "default"} in told["settings"]


def test_show_ignores_what_the_daemon_ignores_with_its_warning() -> None:
    ended = run("gpustow", "config", "show", "--fail-on-init-error", "false", "--mig-strategy=x")
    assert ended.code == 0
    assert ended.err == "warning: ignored, because 'false' ends the flags: false --mig-strategy=x\n"
    assert re.search(r"^flags\.failOnInitError +flag +true$", ended.out, re.MULTILINE)


def test_show_refuses_what_the_plugin_refuses() -> None:
    assert run("gpustow", "config", "show", "--mig-strategy=x").code == 3
    assert run("gpustow", "config", "show", "--no-such-flag").code == 2


def test_schema_prints_a_json_schema() -> None:
    Draft202012Validator.check_schema(json.loads(run("gpustow", "config", "schema").out))
