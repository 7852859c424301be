"""`gpustow allocate`: the plugin's own answer, for devices that are named and for those that it would choose."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustow.cli import main
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.simulated import SimulatedReader
from tests.cli.commands import Ended

T4 = [gpu.uuid for gpu in load_node_model("t4-4").node.gpus]
LISTED = "/var/run/nvidia-container-devices"
VENDOR = "k8s.device-plugin.nvidia.com"

Allocate = Callable[..., Ended]


@pytest.fixture
def allocate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Allocate:
    def call(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["gpustow", "allocate", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


def answer(ended: Ended) -> Any:
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def test_an_answer_is_written_one_thing_a_line(allocate: Allocate, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        """
        version: v1
        flags:
          nvidiaDriverRoot: /run/nvidia/driver
          mpsRoot: /run/nvidia/mps
          plugin: {passDeviceSpecs: true, deviceListStrategy: [volume-mounts, cdi-cri], deviceIDStrategy: index}
        sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}
        """,
        encoding="utf-8",
    )
    ended = allocate("--node-model", "t4-4", "--config", str(file), "--ids", "1::0")
    assert (ended.code, ended.err) == (0, "note: a simulated node is taken to have the MPS control daemons\n")
    nodes = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia1"]
    assert ended.out.splitlines() == [
        f"nvidia.com/gpu: {T4[1]}::0",
        "  env         CUDA_MPS_PIPE_DIRECTORY=/mps/nvidia.com/gpu/pipe",
        "  env         NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices",
        "  mount       /run/nvidia/mps/nvidia.com/gpu/pipe at /mps/nvidia.com/gpu/pipe",
        "  mount       /run/nvidia/mps/shm at /dev/shm",
        "  mount       /dev/null at /var/run/nvidia-container-devices/1",
        *(f"  device      /run/nvidia/driver/dev/{name} at /dev/{name}, rw" for name in nodes),
        f"  CDI device  {VENDOR}/gpu=1",
    ]


def test_json_and_yaml_have_the_fields_of_kubelets_message(allocate: Allocate) -> None:
    words = ("--node-model", "t4-4", "--ids", f"{T4[2]},0", "--flag", "device-list-strategy=cdi-annotations,envvar")
    data = answer(allocate(*words, "-o", "json"))
    names = [f"{VENDOR}/gpu={T4[2]}", f"{VENDOR}/gpu={T4[0]}"]
    [container] = data["containers"]
    [(key, value)] = container["response"].pop("annotations").items()
    assert re.fullmatch(r"cdi\.k8s\.io/nvidia-device-plugin_[0-9a-f-]{36}", key)
    assert value == ",".join(names)
    assert data == {
        "resource": "nvidia.com/gpu",
        "containers": [
            {
                "ids": [T4[2], T4[0]],
                "response": {
                    "envs": {"NVIDIA_VISIBLE_DEVICES": f"{T4[2]},{T4[0]}"},
                    "mounts": [],
                    "devices": [],
                    "cdi_devices": [],
                },
            }
        ],
    }
    same = yaml.safe_load(allocate(*words, "-o", "yaml").out)
    del same["containers"][0]["response"]["annotations"]
    assert same == data


def test_mounts_and_nodes_are_written_with_all_their_fields(allocate: Allocate) -> None:
    flags = ("--flag", "device-list-strategy=volume-mounts", "--flag", "pass-device-specs=true")
    data = answer(allocate("--node-model", "wsl", "--ids", "all", *flags, "-o", "json"))
    response = data["containers"][0]["response"]
    path = "/var/run/nvidia-container-devices/all"
    assert response["mounts"] == [{"container_path": path, "host_path": "/dev/null", "read_only": False}]
    assert response["devices"] == [{"container_path": "/dev/dxg", "host_path": "/dev/dxg", "permissions": "rw"}]


def test_each_list_of_ids_is_a_container(allocate: Allocate) -> None:
    data = answer(allocate("--node-model", "t4-4", "--ids", "3,1", "--ids", "0", "-o", "json"))
    assert [container["ids"] for container in data["containers"]] == [[T4[3], T4[1]], [T4[0]]]


@pytest.mark.parametrize("words", [("--size", "2"), ()])
def test_without_ids_the_devices_are_those_that_the_plugin_prefers(allocate: Allocate, words: tuple[str, ...]) -> None:
    data = answer(allocate("--node-model", "dgx-1-v100", *words, "-o", "json"))
    gpus = load_node_model("dgx-1-v100").node.gpus
    expected = [gpus[0].uuid, gpus[3].uuid] if words else [gpus[0].uuid]
    assert data["containers"][0]["ids"] == expected


def test_mig_devices_are_served_where_nobody_says_otherwise_and_a_flag_says_otherwise(allocate: Allocate) -> None:
    [container] = answer(allocate("--node-model", "a100-4-mig-5", "--ids", "1:0", "-o", "json"))["containers"]
    assert container["ids"][0].startswith("MIG-")
    ended = allocate("--node-model", "a100-4-mig-5", "--ids", "1", "--flag", "mig-strategy=none")
    assert ended.code == 0
    assert ": GPU-" in ended.out
    assert "warning: GPU 0" in ended.err


def test_on_this_machine_the_environment_counts_as_for_the_plugin_and_on_a_node_model_it_does_not(
    allocate: Allocate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_LIST_STRATEGY", "volume-mounts")
    assert "NVIDIA_VISIBLE_DEVICES=MIG-" in allocate("--node-model", "a100-4-mig-5").out
    reader = SimulatedReader(load_node_model("a100-4-mig-5"))
    monkeypatch.setattr("gpustow.cli.allocate.reader_maker", lambda *_: lambda _config: reader)
    ended = allocate("--ids", "1")
    assert (ended.code, ended.out.splitlines()[1]) == (0, f"  env         NVIDIA_VISIBLE_DEVICES={LISTED}")
    assert "under MIG strategy none" in ended.err


def test_a_resource_is_named_with_or_without_its_prefix(allocate: Allocate) -> None:
    for name in ("mig-1g.10gb", "nvidia.com/mig-1g.10gb"):
        ended = allocate("--node-model", "hgx-h100-mig", "--resource", name)
        assert ended.out.startswith("nvidia.com/mig-1g.10gb: MIG-")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--ids", "0,9"), 2, "nvidia.com/gpu has no device '9'"),
        (("--ids", "GPU-9"), 2, "nvidia.com/gpu has no device 'GPU-9'"),
        (("--ids", ""), 1, "invalid allocation request for 'nvidia.com/gpu': no devices are asked for"),
        (("--size", "5"), 1, "5 devices are asked for, but only 4 are offered"),
        (("--ids", "0", "--size", "1"), 2, "--ids and --size cannot be used together"),
        (("--resource", "cpu"), 2, "node t4-4 has no resource 'cpu'\n  Choose one of nvidia.com/gpu."),
        (
            ("--flag", "device-list-strategy"),
            2,
            "'device-list-strategy' lacks a value; write device-list-strategy=VALUE",
        ),
        (("--flag", "device-list-strategy=cdi"), 3, "invalid strategy: cdi"),
        (("--config", "nowhere.yaml"), 3, "nowhere.yaml"),
    ],
)
def test_what_cannot_be_answered_ends_with_its_code_and_no_data(
    allocate: Allocate, words: tuple[str, ...], code: int, message: str
) -> None:
    ended = allocate("--node-model", "t4-4", *words)
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err


def test_a_simulated_board_without_nvml_has_no_cdi(allocate: Allocate) -> None:
    ended = allocate("--node-model", "jetson-orin", "--flag", "device-list-strategy=cdi-cri")
    assert (ended.code, ended.out) == (3, "")
    assert "only supported on NVML-based systems" in ended.err


def test_a_rule_of_the_configuration_is_one_of_the_answer(allocate: Allocate, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n"
        "placement: {resources: [{name: gpu, distinct: required}]}\n",
        encoding="utf-8",
    )
    words = ("--node-model", "t4-4", "--config", str(file))
    assert allocate(*words, "--ids", "0::1,1::1").code == 0
    ended = allocate(*words, "--ids", "0::1,0::2")
    assert (ended.code, ended.out) == (1, "")
    assert "distinct" in ended.err


def test_what_goes_together_badly_is_told_beside_the_answer(allocate: Allocate) -> None:
    ended = allocate("--node-model", "t4-4", "--flag", "device-list-strategy=cdi-cri,cdi-annotations", "-o", "json")
    assert ended.code == 0
    assert ended.err.startswith("warning: the device list strategies cdi-annotations and cdi-cri")
    json.loads(ended.out)


@pytest.mark.parametrize(
    ("model", "name", "advice"),
    [
        ("t4-4", "9", "Name a device by its id, or by index and replica"),
        ("a100-4-mig-5", "1", "It is several devices; name those that are meant: 1:0, 1:1, 1:2, 1:3, ..."),
    ],
)
def test_an_index_without_a_device_of_its_own_ends_with_2(
    allocate: Allocate, model: str, name: str, advice: str
) -> None:
    ended = allocate("--node-model", model, "--ids", name)
    assert (ended.code, ended.out) == (2, "")
    assert f"nvidia.com/gpu has no device '{name}'\n  {advice}" in ended.err


def test_a_replica_is_not_guessed(allocate: Allocate, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}", encoding="utf-8")
    ended = allocate("--node-model", "t4-4", "--config", str(file), "--ids", "1")
    assert ended.code == 2
    assert "name those that are meant: 1::0, 1::1\n" in ended.err


def test_a_device_that_is_named_twice_is_told(allocate: Allocate) -> None:
    ended = allocate("--node-model", "t4-4", "--ids", f"0,{T4[0]},1", "--ids", "0")
    assert (ended.code, ended.err) == (0, f"warning: one --ids names {T4[0]} 2 times; kubelet never does\n")


def test_what_is_assumed_of_a_simulated_node_is_told(allocate: Allocate) -> None:
    flags = [f"--flag={flag}" for flag in ("imex-channel-ids=0", "gds-enabled=true", "mofed-enabled=true")]
    ended = allocate("--node-model", "t4-4", *flags)
    told = "IMEX channel 0, the devices of GPUDirect Storage, the InfiniBand devices"
    assert ended.err == f"note: a simulated node is taken to have {told}\n"
