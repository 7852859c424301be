"""The JSON schema of the file: it takes what is taken without a word, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gpustow.config import load_config
from gpustow.config.filekeys import PATHS
from gpustow.config.fileschema import file_schema
from gpustow.config.goyaml import parse
from gpustow.errors import ConfigError

VALIDATOR = Draft202012Validator(file_schema())


def fits(node: Any) -> bool:
    return bool(VALIDATOR.is_valid(node))


@pytest.mark.parametrize(
    "text",
    [
        "version: v1",
        "flags: {migStrategy: mixed, gfd: {sleepInterval: 60s}, plugin: {deviceListStrategy: envvar}}",
        "flags: {plugin: {deviceListStrategy: [envvar]}}",
        "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4, devices: [0, '0:1'], rename: a}]}}",
        "sharing: {mps: {failRequestsGreaterThanOne: false, resources: [{name: gpu, replicas: 4, devices: 2}]}}",
        "resources: {gpus: [{pattern: '*', name: a}]}",
        "imex: {channelIDs: [0]}",
        "gpus: {select: [0, GPU-1]}",
        "placement: {resources: [{name: gpu, policy: packed, cap: 2}]}",
        "health: {xidPolicy: catalogue, xids: {94: 3 in 24h}, events: {unwatched: ignore}, recovery: {enabled: false}}",
        "health:",
        "flags:",
    ],
)
def test_what_is_valid_fits(text: str) -> None:
    root = parse(text).root
    assert fits(root), list(VALIDATOR.iter_errors(root))


@pytest.mark.parametrize(
    "text",
    [
        "version: v2",
        "flags: {migStrategi: mixed}",
        "flags: {migStrategy: all}",
        "flags: {plugin: {deviceListStrategy: []}}",
        "sharing: {timeSlicing: {resources: []}}",
        "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 1}]}}",
        "sharing: {timeSlicing: {replicas: 2, resources: [{name: gpu, replicas: 2}]}}",
        "sharing: {timeSlicing: {resources: [{name: GPU, replicas: 2}]}}",
        "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}, mps: {resources: [{name: gpu, replicas: 2}]}}",
        "imex: {channelIDs: [1]}",
        "placement: {resources: [{name: gpu, policy: aligned}]}",
        "health: {xids: {x: fatal}}",
        "health: {xids: {48: deadly}}",
        "health: {events: {rowRemapPending: 2 in 1h}}",
        "health: {recovery: {flapCount: 0}}",
        "nothing: 1",
    ],
)
def test_what_is_refused_or_told_does_not_fit(text: str) -> None:
    assert not fits(parse(text).root)


def paths(schema: dict[str, Any], path: str = "") -> set[str]:
    """The paths of all keys that a schema knows."""
    found = set()
    for key, below in schema.get("properties", {}).items():
        own = f"{path}.{key}" if path else key
        found |= {own, *paths(below, own), *paths(below.get("items", {}), f"{own}[]")}
    return found


def test_the_schema_knows_the_keys_that_the_file_can_have() -> None:
    assert paths(file_schema()) == set(PATHS)


FLAGS = st.fixed_dictionaries(
    {},
    optional={
        "migStrategy": st.sampled_from(["none", "single", "mixed", "", "x", 1]),
        "failOnInitError": st.booleans() | st.just("true"),
        "plugin": st.fixed_dictionaries(
            {},
            optional={
                "deviceListStrategy": st.sampled_from(["envvar", ["envvar"], [], "cdi", 3]),
                "deviceIDStrategy": st.sampled_from(["uuid", "index", "pci"]),
            },
        ),
    },
)
NAMES = st.sampled_from(["gpu", "nvidia.com/gpu", "GPU", "a.b-c", "-", ""])
ENTRIES = st.fixed_dictionaries(
    {"name": NAMES, "replicas": st.integers(0, 3)},
    optional={
        "rename": NAMES,
        "devices": st.sampled_from(["all", "some", 0, 1, [0], ["0:1"], ["x"], [1.5]]),
    },
)
HEALTH = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "xidPolicy": st.sampled_from(["compatible", "catalogue", "strict"]),
        "xids": st.dictionaries(st.sampled_from(["48", "94", "0", "x"]), st.sampled_from(["fatal", "3 in 24h", 3])),
        "unknownXids": st.sampled_from(["ignore", "never"]),
        "events": st.dictionaries(
            st.sampled_from(["eccDoubleBit", "rowRemapPending", "unwatched", "lost"]),
            st.sampled_from(["ignore", "2 in 1h", True]),
        ),
        "recovery": st.fixed_dictionaries(
            {},
            optional={"enabled": st.booleans() | st.just(1), "flapCount": st.integers(-1, 2)},
        ),
    },
)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "version": st.sampled_from(["v1", "v2"]),
        "flags": FLAGS,
        "sharing": st.fixed_dictionaries(
            {"timeSlicing": st.fixed_dictionaries({"resources": st.lists(ENTRIES, max_size=2)})}
        ),
        "imex": st.fixed_dictionaries({"channelIDs": st.sampled_from([[], [1], 0])}),
        "health": HEALTH,
    },
)


@given(FILES)
def test_a_file_fits_if_and_only_if_it_is_taken_without_a_word(node: dict[str, Any]) -> None:
    try:
        taken = load_config({"config-file": "x"}, {}, lambda _: json.dumps(node)).warnings == ()
    except ConfigError:
        taken = False
    assert fits(node) is taken, list(VALIDATOR.iter_errors(node))
