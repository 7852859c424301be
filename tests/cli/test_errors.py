"""Bad input, as an operator meets it: a clear message, the exit code of its kind, and nothing half started."""

from pathlib import Path

import pytest

from tests.cli.commands import Ended, no_driver, run

NODE_MODEL = "--node-model=a100-4-mig-5"


@pytest.fixture
def kubelet_directory(tmp_path: Path) -> Path:
    directory = tmp_path / "device-plugins"
    directory.mkdir()
    return directory


def plugin(kubelet_directory: Path, *words: str) -> Ended:
    ended = run("gpustow", "plugin", f"--kubelet-socket={kubelet_directory}/kubelet.sock", *words)
    assert ended.out == "", "data goes to stdout, and an error is none"
    assert "Traceback" not in ended.err
    if kubelet_directory.is_dir():
        assert list(kubelet_directory.iterdir()) == [], "nothing may be half started"
    return ended


def test_an_unreadable_configuration_is_refused(kubelet_directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    ended = plugin(kubelet_directory, NODE_MODEL, f"--config-file={path}")
    assert ended.code == 3
    assert f"configuration file {path} is refused:\n    it cannot be read: No such file or directory" in ended.err


def test_a_configuration_that_is_not_yaml_is_refused(kubelet_directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("flags: {", encoding="utf-8")
    assert plugin(kubelet_directory, NODE_MODEL, f"--config-file={path}").code == 3


def test_an_unknown_policy_is_refused(kubelet_directory: Path) -> None:
    ended = plugin(kubelet_directory, NODE_MODEL, "--shared-devices-allocation-policy=tight")
    assert ended.code == 3
    assert "--shared-devices-allocation-policy" in ended.err
    assert "tight" in ended.err
    assert "distributed" in ended.err


def test_a_bad_node_model_is_refused_with_the_path_of_the_fault(kubelet_directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    path.write_text("name: n\ngpus: [{model: NVIDIA A100-SXM4-40GB, cuont: 4}]\n", encoding="utf-8")
    ended = plugin(kubelet_directory, f"--node-model={path}")
    assert ended.code == 4
    assert f"node model {path} is refused" in ended.err
    assert "gpus[0].cuont" in ended.err


def test_a_node_model_that_is_not_there_is_refused_with_the_shipped_ones(kubelet_directory: Path) -> None:
    ended = plugin(kubelet_directory, "--node-model=a100-5")
    assert ended.code == 4
    assert "a100-4-mig-5" in ended.err


def test_a_kubelet_directory_that_is_missing_is_told(tmp_path: Path) -> None:
    ended = plugin(tmp_path / "none", NODE_MODEL)
    assert ended.code == 7
    assert f"kubelet's device plugin directory {tmp_path}/none does not exist" in ended.err
    assert "--kubelet-socket" in ended.err


def test_a_kubelet_directory_that_cannot_be_written_to_is_told_to_root_as_well() -> None:
    ended = run("gpustow", "plugin", "--kubelet-socket=/proc/self/kubelet.sock", NODE_MODEL)
    assert ended.code == 7
    assert "kubelet's device plugin directory /proc/self is not writable" in ended.err


def test_a_node_without_a_driver_is_told(kubelet_directory: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    ended = plugin(kubelet_directory, *no_driver(empty))
    assert ended.code == 5
    assert "there is no NVIDIA driver to read" in ended.err


def test_a_node_without_devices_is_told(kubelet_directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    path.write_text("name: bare\ngpus: []\n", encoding="utf-8")
    ended = plugin(kubelet_directory, f"--node-model={path}")
    assert ended.code == 6
    assert "node bare has no devices to serve" in ended.err


def test_an_unknown_flag_is_a_usage_error(kubelet_directory: Path) -> None:
    ended = plugin(kubelet_directory, "--mig-stratgy=single")
    assert ended.code == 2
    assert "--mig-stratgy" in ended.err


def test_a_flag_without_its_value_is_a_usage_error(kubelet_directory: Path) -> None:
    ended = plugin(kubelet_directory, "--mig-strategy")
    assert (ended.code, ended.err.splitlines()[0]) == (2, "gpustow: flag --mig-strategy needs a value")


def test_an_unknown_command_is_a_usage_error() -> None:
    ended = run("gpustow", "simulat")
    assert ended.code == 2
    assert "simulate" in ended.err, "the nearest command is named"


def test_the_last_line_of_a_daemon_is_in_the_form_asked_for(kubelet_directory: Path) -> None:
    ended = plugin(kubelet_directory, "--log-format=json", "--node-model=none")
    assert ended.err.startswith('{"time": ')
    assert '"level": "critical"' in ended.err


def test_the_program_of_v0_20_0_is_the_same_daemon(tmp_path: Path) -> None:
    ended = run("nvidia-device-plugin", f"--kubelet-socket={tmp_path}/kubelet.sock", "-mig-strategy", "twice")
    assert ended.code == 3
    assert "twice" in ended.err


def test_what_is_ignored_is_told(tmp_path: Path) -> None:
    nowhere = f"--kubelet-socket={tmp_path}/none/kubelet.sock"
    ended = run("nvidia-device-plugin", nowhere, "--fail-on-init-error", "false", "--node-model=t4-4")
    assert ended.code == 7
    assert "warning: ignored, because 'false' ends the flags: false --node-model=t4-4\n" in ended.err
