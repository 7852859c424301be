"""`gpustow inspect`, in this process on a node model, and as a program of its own on the fake library."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpustow.cli import main
from gpustow.hardware.nodemodel import load_node_model, parse_node_model
from tests.cli.commands import Ended, run
from tests.nvml.fakedriver import FakeDriver


@pytest.fixture
def inspect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def call(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["gpustow", "inspect", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


def test_a_node_is_shown_as_a_table(inspect: Callable[..., Ended]) -> None:
    ended = inspect("--node-model", "t4-4")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("t4-4\n4 GPUs, platform nvml, driver 550.90.07, CUDA 12.4\n")
    assert "0    Tesla T4  15360 MiB  7.5         0     -\n" in ended.out
    assert "0    00000000:00:1B.0  /dev/nvidia0  GPU-" in ended.out


def test_a_node_is_written_as_json(inspect: Callable[..., Ended]) -> None:
    data = json.loads(inspect("--node-model", "a30-mig", "--output=json").out)
    assert [len(gpu["mig"]["devices"]) for gpu in data["gpus"]] == [4, 4]


def test_a_node_is_written_as_a_node_model_that_is_the_same_node(inspect: Callable[..., Ended]) -> None:
    text = inspect("--node-model", "hgx-h100-mig", "-o", "node-model").out
    assert parse_node_model(text, "written").node == load_node_model("hgx-h100-mig").node


def test_a_node_model_that_is_refused_ends_with_4(inspect: Callable[..., Ended]) -> None:
    ended = inspect("--node-model", "nowhere")
    assert (ended.code, ended.out) == (4, "")
    assert "nowhere" in ended.err


def _on(driver: FakeDriver, *words: str) -> Ended:
    variables = driver.environment | {"GPUSTOW_SYSTEM_ROOT": str(driver.system_root), "NODE_NAME": "dgx-a100"}
    return run("gpustow", "inspect", *words, env=variables)


def test_a_machine_becomes_a_node_model(tmp_path: Path) -> None:
    model = load_node_model("dgx-a100")
    ended = _on(FakeDriver(tmp_path, model), "-o", "node-model")
    assert (ended.code, ended.err) == (0, "")
    assert parse_node_model(ended.out, "written").node == model.node


def test_the_driver_is_found_where_the_plugins_environment_says(tmp_path: Path) -> None:
    driver = FakeDriver(tmp_path, load_node_model("t4-4"))
    variables = {name: value for name, value in driver.environment.items() if name != "LD_LIBRARY_PATH"}
    variables |= {"DRIVER_ROOT_CTR_PATH": str(driver.driver_root), "GPUSTOW_SYSTEM_ROOT": str(driver.system_root)}
    assert "4 GPUs, platform nvml" in run("gpustow", "inspect", env=variables).out


def test_warnings_about_the_configuration_are_told_and_not_among_the_data(tmp_path: Path) -> None:
    driver = FakeDriver(tmp_path, load_node_model("t4-4"))
    config = tmp_path / "config.yaml"
    config.write_text("imex: {required: true}", encoding="utf-8")
    variables = driver.environment | {"GPUSTOW_SYSTEM_ROOT": str(driver.system_root), "CONFIG_FILE": str(config)}
    ended = run("gpustow", "inspect", "-o", "json", env=variables)
    assert ended.code == 0
    assert ended.err == "warning: imex.required has no effect without imex.channelIDs\n"
    json.loads(ended.out)


def test_what_could_not_be_read_of_a_machine_is_told(tmp_path: Path) -> None:
    driver = FakeDriver(tmp_path, load_node_model("dgx-a100"))
    driver.lose(2)
    driver.fail("nvmlDeviceGetMemoryInfo", 999, gpu=3)
    ended = _on(driver)
    assert ended.code == 0
    assert ended.out.startswith("dgx-a100\n7 GPUs")
    assert ended.out.endswith(
        "Could not be read\n  GPU 2 is lost: it is left out\n"
        "  GPU 3: memory cannot be read: Unknown Error (nvmlDeviceGetMemoryInfo)\n"
    )


def test_a_driver_that_cannot_be_read_ends_with_5_and_what_to_do(tmp_path: Path) -> None:
    driver = FakeDriver(tmp_path, load_node_model("dgx-a100"))
    driver.fail("nvmlInitWithFlags", 9)
    ended = _on(driver)
    assert (ended.code, ended.out) == (5, "")
    assert "Driver Not Loaded" in ended.err
    assert "nvidia-smi has to work there" in ended.err
