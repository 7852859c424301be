"""`gpustow simulate`, as a program of its own where the terminal matters and in this process where not."""

import asyncio
import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustow.cli import main
from gpustow.hardware.modelfile import node_model_schema
from gpustow.hardware.nodemodel import parse_node_model
from gpustow.version import __version__
from tests.cli.commands import BIN, Ended, environment, run

PAGE = Path(__file__).parents[2] / "docs" / "simulate.md"

SENTENCE = "distributed leaves 1 GPU wholly free, packed leaves 3."


@pytest.fixture(autouse=True)
def _root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def call(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["gpustow", "simulate", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_without_arguments_it_shows_the_first_scenario() -> None:
    ended = run("gpustow", "simulate")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[-1] == SENTENCE
    assert "nvidia.com/gpu  20 devices" in ended.out
    assert "NVIDIA_VISIBLE_DEVICES=MIG-" in ended.out
    assert "GPU 0 │ A │ B │ C │   │   │ 3 of 5" in ended.out
    assert "\x1b" not in ended.out


def test_a_terminal_gets_colours_unless_it_wants_none() -> None:
    assert "\x1b[" in in_terminal()
    assert "\x1b[" not in in_terminal(NO_COLOR="1")


def in_terminal(**env: str) -> str:
    """What the command writes to a terminal, without a terminal for its progress."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(BIN / "gpustow"), "simulate", "--policy=packed"],
        stdout=slave,
        stderr=subprocess.DEVNULL,
        env=environment({"TERM": "xterm-256color"} | env),
    )
    os.close(slave)
    chunks = []
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(master)
    assert process.wait(30) == 0
    return b"".join(chunks).decode()


def test_json_is_by_policy(simulate: Callable[..., Ended]) -> None:
    report: dict[str, Any] = json.loads(simulate("-o", "json").out)
    assert {policy: result["wholly_free_gpus"] for policy, result in report.items()} == {"distributed": 1, "packed": 3}
    [first, *_] = report["packed"]["pods"]
    assert first["envs"] == {"NVIDIA_VISIBLE_DEVICES": first["device_ids"][0]}


def test_an_empty_node_model_is_as_none(simulate: Callable[..., Ended]) -> None:
    assert "a100-4-mig-5: 4 x " in simulate("--node-model=", "--policy=packed").out


def test_policies_named_twice_run_once(simulate: Callable[..., Ended]) -> None:
    report = json.loads(simulate("-o", "json", "--policy=packed", "--policy=packed").out)
    assert list(report) == ["packed"]


def test_another_node_is_simulated_with_pods_that_ask_for_what_it_has(
    simulate: Callable[..., Ended], tmp_path: Path
) -> None:
    model = write(
        tmp_path / "node.yaml",
        """
name: mixed
gpus:
  - model: NVIDIA A100-SXM4-40GB
    mig: {devices: [{profile: 1g.5gb, count: 3}, {profile: 2g.10gb}]}
""",
    )
    report = json.loads(simulate("--node-model", model, "-o", "json", "--policy=packed").out)["packed"]
    assert report["resources"].keys() == {"nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb"}
    assert {pod["phase"] for pod in report["pods"]} == {"running"}


def test_a_configuration_brings_its_own_policy_and_replicas(simulate: Callable[..., Ended], tmp_path: Path) -> None:
    config = write(
        tmp_path / "config.yaml",
        """
flags: {plugin: {sharedDevicesAllocationPolicy: packed}}
sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
""",
    )
    report = json.loads(simulate("--node-model=t4-4", f"--config={config}", "-o", "json").out)
    assert list(report) == ["packed"]
    assert report["packed"]["resources"] == {"nvidia.com/gpu": {"capacity": 16, "allocatable": 16}}
    assert report["packed"]["wholly_free_gpus"] == 3


@pytest.mark.parametrize(("words", "code"), [([], 0), (["--strict"], 8)])
def test_a_refused_pod_is_shown_and_is_an_error_only_if_asked(
    simulate: Callable[..., Ended], tmp_path: Path, words: list[str], code: int
) -> None:
    pods = write(tmp_path / "pods.yaml", "pods: [{name: big, limits: {nvidia.com/gpu: 21}}]")
    ended = simulate(f"--pods={pods}", "--policy=packed", *words)
    assert ended.code == code
    assert "default/big  refused (" in ended.out
    assert ended.err == ("" if code == 0 else "gpustow: pods were refused: default/big\n")


@pytest.mark.parametrize(("words", "code"), [([], 0), (["--strict"], 8)])
def test_a_pod_that_no_scheduler_would_bind_is_warned_of(
    simulate: Callable[..., Ended], tmp_path: Path, words: list[str], code: int
) -> None:
    pods = write(tmp_path / "pods.yaml", "pods: [{name: lost, limits: {nvidia.com/gpus: 1}}]")
    ended = simulate(f"--pods={pods}", *words)
    assert ended.code == code
    assert "default/lost  unschedulable: there is no resource nvidia.com/gpus here" in ended.out
    assert ended.err.startswith("warning: pod default/lost: there is no resource nvidia.com/gpus here; advertised: ")
    assert ended.err.count("warning: ") == 1


def test_strict_does_not_forget_a_refusal_when_the_pod_is_admitted_later(
    simulate: Callable[..., Ended], tmp_path: Path
) -> None:
    pods = write(
        tmp_path / "pods.yaml",
        """
pods:
  - {name: all, limits: {nvidia.com/gpu: 20}}
  - {name: late, limits: {nvidia.com/gpu: 1}}
steps: [{admit: all}, {admit: late}, {release: [late, all]}, {admit: late}]
""",
    )
    ended = simulate(f"--pods={pods}", "--policy=packed", "--strict")
    assert (ended.code, ended.err) == (8, "gpustow: pods were refused: default/late\n")
    assert "before that refused (" in ended.out


def test_a_strict_run_without_refusals_is_fine(simulate: Callable[..., Ended]) -> None:
    assert simulate("--strict", "--policy=packed").code == 0


def test_warnings_are_told_once_and_not_among_the_data(simulate: Callable[..., Ended], tmp_path: Path) -> None:
    config = write(tmp_path / "config.yaml", "flags: {migStrategy: single}\nimex: {required: true}")
    ended = simulate(f"--config={config}", "--policy=packed", "--policy=distributed", "-o", "json")
    assert ended.err.count("warning: ") == 1
    assert "imex.required has no effect" in ended.err
    json.loads(ended.out)


@pytest.mark.parametrize("policies", [["packed"], ["packed", "distributed"]])
def test_a_warning_that_is_logged_is_told_once(
    simulate: Callable[..., Ended], tmp_path: Path, policies: list[str]
) -> None:
    config = write(tmp_path / "config.yaml", "flags: {migStrategy: single}\nimex: {required: true}")
    words = [f"--policy={policy}" for policy in policies]
    ended = simulate(f"--config={config}", "--log-level=warning", *words)
    assert ended.err.count("imex.required has no effect") == 1
    assert " WARNING gpustow.plugin.supervisor: " in ended.err


def test_a_configuration_that_is_no_text_is_refused(simulate: Callable[..., Ended], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    ended = simulate(f"--config={path}")
    assert ended.code == 3
    assert "it is not a text file\n  Give the path of a file that can be read here." in ended.err


def test_the_environment_does_not_name_the_node(
    simulate: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUSTOW_NODE_MODEL", "t4-4")
    assert "a100-4-mig-5: 4 x " in simulate("--policy=packed").out


_LONG = "pods: [{name: p, count: 1000, limits: {nvidia.com/gpu: 1}}]"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_and_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, code: int) -> None:
    pods = write(tmp_path / "pods.yaml", _LONG)
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is too deep for sockets
        process = _simulating(folder, pods)
        process.send_signal(number)
        assert process.communicate(timeout=30) == (b"", b"")
        assert process.returncode == code
        assert list(Path(folder).iterdir()) == []


def test_a_second_signal_changes_nothing_about_the_first(
    simulate: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def signalled(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGHUP)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)

    monkeypatch.setattr("gpustow.cli.simulate._run", signalled)
    try:
        assert simulate().code == 143
    finally:
        logging.disable(logging.NOTSET)


def test_a_hangup_that_is_ignored_ends_nothing(tmp_path: Path) -> None:
    pods = write(tmp_path / "pods.yaml", "pods: [{name: p, count: 60, limits: {nvidia.com/gpu: 1}}]")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with tempfile.TemporaryDirectory() as folder:
        try:
            process = _simulating(folder, pods)
        finally:
            signal.signal(signal.SIGHUP, before)
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert b"wholly free" in out


def _simulating(folder: str, pods: str) -> "subprocess.Popen[bytes]":
    """The command at work, with its temporary directory in a folder."""
    process = subprocess.Popen(
        [str(BIN / "gpustow"), "simulate", "--pods", pods, "--policy=packed"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment({"TMPDIR": folder}),
    )
    while process.poll() is None and not list(Path(folder).iterdir()):
        time.sleep(0.01)
    return process


def test_logs_can_be_watched(simulate: Callable[..., Ended]) -> None:
    assert (
        "nvidia.com/gpu: in use: kubelet has the list of devices" in simulate("--log-level=info", "--policy=packed").err
    )


def test_progress_is_drawn_for_people_only(simulate: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpustow.cli.simulate._somebody_looks", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    ended = simulate("--policy=packed", "-o", "json")
    assert ended.code == 0
    json.loads(ended.out)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (
            ["--policy=paked"],
            3,
            "--policy: unknown policy 'paked' (choose from distributed, packed, spread, packed-aligned)",
        ),
        (["--node-model=none"], 4, "node model none is refused"),
        (["--pods=/none.yaml"], 4, "workload /none.yaml is refused"),
        (["--config=/none.yaml"], 3, "file /none.yaml is refused:\n  it cannot be read: No such file or directory"),
        (["--config=/none.yaml"], 3, "Give the path of a file that can be read here."),
        (["--output=xml"], 2, "xml"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(
    simulate: Callable[..., Ended], words: list[str], code: int, told: str
) -> None:
    ended = simulate(*words)
    assert (ended.code, ended.out) == (code, "")
    assert told in ended.err


def _yaml_blocks_of_the_page() -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_can_be_simulated(simulate: Callable[..., Ended], tmp_path: Path) -> None:
    node, _faults, pods = _yaml_blocks_of_the_page()
    model = write(tmp_path / "node.yaml", node)
    workload = write(tmp_path / "pods.yaml", pods)
    report = json.loads(simulate("--node-model", model, "--policy=packed", "-o", "json").out)["packed"]
    assert {name: counts["capacity"] for name, counts in report["resources"].items()} == {
        "nvidia.com/gpu": 2,
        "nvidia.com/mig-3g.20gb": 2,
        "nvidia.com/mig-1g.5gb": 8,
    }
    assert simulate("--pods", workload, "--policy=packed", "--strict").code == 0


def test_the_error_on_the_page_is_the_one_that_is_printed(
    simulate: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, pods = _yaml_blocks_of_the_page()
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "pods.yaml", pods.replace("count: 3", "count: 0").replace("admit: train\n", "admit: trian\n"))
    ended = simulate("--pods=pods.yaml")
    assert ended.code == 4
    assert textwrap.indent(ended.err, "    ") in PAGE.read_text(encoding="utf-8")


def test_a_fault_of_ours_is_not_dressed_up(simulate: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_name: str) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("gpustow.cli.simulate.load_node_model", fails)
    with pytest.raises(RuntimeError, match="a fault"):
        simulate()


@pytest.mark.parametrize(
    "words", [["--help"], ["simulate", "--help"], ["plugin", "--help"], ["plugin", "-help"], ["plugin", "-h"]]
)
def test_help_has_an_example(words: list[str]) -> None:
    ended = run("gpustow", *words)
    assert ended.code == 0
    assert "Examples:" in ended.out
    assert ended.err == ""


def test_without_a_command_there_is_help() -> None:
    ended = run("gpustow")
    assert ended.code == 2
    assert "simulate" in ended.out + ended.err


@pytest.mark.parametrize(
    "words",
    [
        ["gpustow", "--version"],
        ["gpustow", "plugin", "-v"],
        ["nvidia-device-plugin", "-v"],
        ["nvidia-device-plugin", "-version"],
        ["nvidia-device-plugin", "--version=true"],
    ],
)
def test_every_program_tells_its_version(words: list[str]) -> None:
    assert run(*words).out == f"{__version__}\n"


def test_a_container_is_shown_with_what_cdi_asks_for(simulate: Callable[..., Ended], tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("flags: {plugin: {deviceListStrategy: [cdi-annotations, cdi-cri]}}\n", encoding="utf-8")
    words = ("--node-model", "t4-4", "--config", str(config), "--policy", "packed")
    table = simulate(*words).out
    assert re.search(
        r"^      annotation cdi\.k8s\.io/\S+=k8s\.device-plugin\.nvidia\.com/gpu=GPU-", table, re.MULTILINE
    )
    assert re.search(r"^      CDI devices: k8s\.device-plugin\.nvidia\.com/gpu=GPU-", table, re.MULTILINE)
    pod = yaml.safe_load(simulate(*words, "-o", "yaml").out)["packed"]["pods"][0]
    assert pod["containers"][0]["cdi_devices"][0].startswith("k8s.device-plugin.nvidia.com/gpu=GPU-")
    assert len(pod["containers"][0]["annotations"]) == 1


def test_the_schedule_of_faults_of_the_page_is_one() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## Faults")[2]
    model = parse_node_model(page.partition("```yaml\n")[2].partition("```")[0], "page")
    kinds = [type(fault).__name__ for fault in model.faults]
    assert kinds == ["XidFault", "GpuLost", "SlowNvml", "MigReconfigured"]
    sections = node_model_schema()["$defs"]
    keys = {
        key: about
        for name in ("XidSection", "LostSection", "SlowSection", "MigChangeSection")
        for key, about in sections[name]["properties"].items()
        if key != "fault"
    }
    table = page.partition("\n## ")[0]
    assert [key for key, about in keys.items() if "description" not in about or f"`{key}`" not in table] == []
