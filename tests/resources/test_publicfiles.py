"""Configuration files that people published, and those that they got wrong."""

import pytest

from gpustow.cli.arguments import Flag, rewrite
from gpustow.config import SETTINGS, DeviceIdStrategy, Kind, LoadedConfig, load_config
from gpustow.errors import ConfigError
from gpustow.hardware.mig import MigProfile
from gpustow.hardware.node import Node
from gpustow.resources import Sharing, build_catalog
from tests.resources.machines import gpu, mig_device, node

A1 = """
version: v1
flags: {migStrategy: "none", failOnInitError: true, nvidiaDriverRoot: "/",
        plugin: {passDeviceSpecs: false, deviceListStrategy: envvar, deviceIDStrategy: uuid}}
sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
"""
A2 = """
version: v1
flags: {migStrategy: "none", failOnInitError: true,
        plugin: {passDeviceSpecs: true, deviceListStrategy: "volume-mounts", deviceIDStrategy: "index"}}
sharing: {timeSlicing: {renameByDefault: true, resources: [{name: "nvidia.com/gpu", replicas: 50}]}}
"""
A3 = """
version: v1
flags: {migStrategy: none}
sharing: {timeSlicing: {renameByDefault: false, failRequestsGreaterThanOne: true,
          resources: [{name: nvidia.com/gpu, replicas: 5}]}}
"""
A4 = """
version: v1
flags:
  migStrategy: "none"
  failOnInitError: true
  nvidiaDriverRoot: "/"
  plugin: {passDeviceSpecs: false, deviceListStrategy: "envvar", deviceIDStrategy: "uuid"}
  gfd: {oneshot: false, noTimestamp: false, sleepInterval: 60s,
        outputFile: /etc/kubernetes/node-feature-discovery/features.d/gfd}
sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 10}]}}
"""
A6_BIG = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 2\n"
A6_SMALL = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 8\n"
A7_MIXED = "version: v1\nflags:\n  migStrategy: mixed\n"
A7_SINGLE = "version: v1\nflags:\n  migStrategy: single\n"
A8 = """
version: v1
sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}], renameByDefault: false,
          failRequestsGreaterThanOne: true}}
"""
A10 = """
version: v1
flags: {migStrategy: "none", failOnInitError: true,
        plugin: {passDeviceSpecs: true, deviceListStrategy: "volume-mounts", deviceIDStrategy: "index"}}
sharing: {timeSlicing: {renameByDefault: true, failRequestsGreaterThanOne: true,
          resources: [{name: "nvidia.com/gpu", replicas: 2}]}}
"""
A12 = """
version: v1
flags: {migStrategy: mixed}
sharing: {timeSlicing: {resources: [{name: nvidia.com/mig-1g.5gb, replicas: 2}]}}
"""

SLICED = node(
    gpu(
        0,
        model="NVIDIA A100-SXM4-40GB",
        memory_bytes=40 << 30,
        mig=tuple(mig_device(0, index, MigProfile(1, 1, 5, 4864, memory_slices=1)) for index in range(7)),
    )
)


def gpus(count: int) -> Node:
    return node(*(gpu(index) for index in range(count)))


def load(text: str, flags: dict[str, object] | None = None) -> LoadedConfig:
    return load_config({"config-file": "config.yaml", **(flags or {})}, {}, lambda _: text)


@pytest.mark.parametrize(
    ("text", "machine", "expected"),
    [
        pytest.param(A1, gpus(4), {"nvidia.com/gpu": 16}, id="A1"),
        pytest.param(A2, gpus(1), {"nvidia.com/gpu.shared": 50}, id="A2"),
        pytest.param(A3, gpus(1), {"nvidia.com/gpu": 5}, id="A3"),
        pytest.param(A4, gpus(2), {"nvidia.com/gpu": 20}, id="A4"),
        pytest.param(A6_BIG, gpus(8), {"nvidia.com/gpu": 16}, id="A6 big"),
        pytest.param(A6_SMALL, gpus(1), {"nvidia.com/gpu": 8}, id="A6 small"),
        pytest.param(A7_MIXED, SLICED, {"nvidia.com/mig-1g.5gb": 7}, id="A7 mixed"),
        pytest.param(A7_SINGLE, SLICED, {"nvidia.com/gpu": 7}, id="A7 single"),
        pytest.param(A8, gpus(3), {"nvidia.com/gpu": 12}, id="A8"),
        pytest.param(A10, gpus(2), {"nvidia.com/gpu.shared": 4}, id="A10"),
        pytest.param(A12, SLICED, {"nvidia.com/mig-1g.5gb": 14}, id="A12"),
    ],
)
def test_a_published_file_gives_the_resources_that_its_authors_saw(
    text: str, machine: Node, expected: dict[str, int]
) -> None:
    loaded = load(text, {"mps-root": "/run/nvidia/mps"} if text == A4 else {})
    assert not any("unknown key" in warning or "refused" in warning for warning in loaded.warnings)
    catalog = build_catalog(machine, loaded.config)
    assert {resource.name: len(resource.devices) for resource in catalog.resources} == expected


def test_published_files_say_how_requests_are_limited_and_devices_named() -> None:
    (limited,) = build_catalog(gpus(1), load(A3).config).resources
    assert (limited.sharing, limited.requests_limited_to_one) == (Sharing.TIME_SLICING, True)
    (by_mps,) = build_catalog(gpus(1), load(A4, {"mps-root": "/mps"}).config).resources
    assert (by_mps.sharing, by_mps.requests_limited_to_one) == (Sharing.MPS, True)
    assert load(A10).config.device_id_strategy is DeviceIdStrategy.INDEX


def test_published_arguments_are_taken_as_they_are() -> None:
    """A13: the form that a cloud's manifest has."""
    words = (
        "--pass-device-specs",
        "--device-list-strategy=volume-mounts",
        "--imex-channel-ids=0",
        "--config-file=/config/ndp/config.yaml",
    )
    line = rewrite(words, [Flag(setting.names, boolean=setting.kind is Kind.BOOLEAN) for setting in SETTINGS])
    flags: dict[str, object] = {}
    for word in line.words:
        name, _, value = word.removeprefix("--").partition("=")
        flags[name] = value
    config = load_config(flags, {}, lambda _: "").config
    assert line.ignored == ()
    assert (config.pass_device_specs, config.imex_channel_ids) == (True, (0,))
    assert config.config_file == "/config/ndp/config.yaml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}",
            "number of replicas must be >= 2, not 1; omit the sharing section to turn sharing off",
            id="X1",
        ),
        ("version: v2", "unknown version: v2"),
        ("imex: {channelIDs: [1]}", "channelIDs must be [] or [0]; found [1]"),
        ("flags: {migStrategy: all-1g.5gb}", "unknown MIG strategy: all-1g.5gb (choose from none, single, mixed)"),
        (
            "sharing: {mps: {resources: [{name: a, replicas: 4}]}, timeSlicing: {resources: [{name: b, replicas: 9}]}}",
            "sharing.mps and sharing.timeSlicing are mutually exclusive",
        ),
        (
            "flags: {migStrategy: mixed, mpsRoot: /mps}\nsharing: {mps: {resources: [{name: gpu, replicas: 4}]}}",
            "using --mig-strategy=mixed is not supported with MPS",
        ),
    ],
)
def test_a_published_mistake_is_refused_with_the_way_out(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        load(text)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        pytest.param(
            "sharing: {timeSlicing: {replicas: 4, renameByDefault: false, resources: [{name: gpu, replicas: 4}]}}",
            "sharing.timeSlicing.replicas: unknown key, without effect; "
            "did you mean 'sharing.timeSlicing.resources.replicas'?",
            id="X3",
        ),
        pytest.param(
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4, failRequestsGreaterThanOne: true}]}}",
            "sharing.timeSlicing.resources[0].failRequestsGreaterThanOne: unknown key, without effect; "
            "did you mean 'sharing.timeSlicing.failRequestsGreaterThanOne'?",
            id="X4",
        ),
    ],
)
def test_a_published_mistake_without_effect_is_told_and_refused_where_that_is_asked_for(
    text: str, warning: str
) -> None:
    assert load(text).warnings == (f"config.yaml: {warning}",)
    with pytest.raises(ConfigError):
        load(text, {"strict-config": "true"})
