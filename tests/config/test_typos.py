"""Typos: one edit in a valid file, and what the operator is told."""

import json
import string
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from gpustow.config import load_config
from gpustow.config.filekeys import nearest
from gpustow.errors import ConfigError

TYPOS = 2000

FILES: tuple[dict[str, Any], ...] = (
    {
        "version": "v1",
        "flags": {
            "migStrategy": "none",
            "failOnInitError": True,
            "nvidiaDriverRoot": "/",
            "deviceDiscoveryStrategy": "auto",
            "plugin": {
                "passDeviceSpecs": False,
                "deviceListStrategy": ["envvar"],
                "deviceIDStrategy": "uuid",
                "sharedDevicesAllocationPolicy": "packed",
            },
            "gfd": {"oneshot": False, "noTimestamp": False, "sleepInterval": "60s", "outputFile": "/gfd"},
        },
        "resources": {"gpus": [{"pattern": "*", "name": "nvidia.com/gpu"}], "mig": [{"pattern": "1g.*", "name": "x"}]},
        "sharing": {
            "timeSlicing": {
                "renameByDefault": False,
                "failRequestsGreaterThanOne": True,
                "resources": [
                    {"name": "nvidia.com/gpu", "rename": "nvidia.com/gpu-0", "devices": ["0"], "replicas": 8},
                    {"name": "nvidia.com/gpu", "devices": ["1"], "replicas": 4},
                ],
            }
        },
    },
    {
        "flags": {
            "mpsRoot": "/run/nvidia/mps",
            "gdsEnabled": False,
            "gdrcopyEnabled": False,
            "useNodeFeatureAPI": True,
        },
        "sharing": {"mps": {"failRequestsGreaterThanOne": False, "resources": [{"name": "gpu", "replicas": 10}]}},
        "imex": {"channelIDs": [], "required": False},
        "gpus": {"exclude": ["0"]},
        "placement": {"resources": [{"name": "gpu", "policy": "packed", "cap": 2}]},
        "health": {
            "xidPolicy": "compatible",
            "events": {"eccDoubleBit": "fatal"},
            "recovery": {"enabled": True, "holdTime": "1m"},
        },
    },
)


def keys(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """Each key: the path of its section, the section, the key."""
    if isinstance(node, list):
        for at, item in enumerate(node):
            yield from keys(item, f"{path}[{at}]")
    elif isinstance(node, dict):
        for key, below in node.items():
            yield path, node, key
            yield from keys(below, f"{path}.{key}" if path else key)


def mistype(random: Random, word: str) -> str:
    """One edit: a letter left out, added, taken for another, or two of them swapped."""
    at = random.randrange(len(word))
    letter = random.choice(string.ascii_letters)
    swapped = word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :]
    return random.choice(
        [word[:at] + word[at + 1 :], word[:at] + letter + word[at:], word[:at] + letter + word[at + 1 :], swapped]
    )


def told(file: dict[str, Any]) -> str:
    """Warnings and refusals about a file."""
    try:
        return "\n".join(load_config({"config-file": "f"}, {}, lambda _: json.dumps(file)).warnings)
    except ConfigError as error:
        return str(error)


@pytest.mark.parametrize("file", FILES)
def test_the_files_are_valid(file: dict[str, Any]) -> None:
    assert told(file).replace("flags.mpsRoot", "").count("\n") == 0
    assert "unknown" not in told(file)


def test_case_c03_each_mistyped_key_is_told_with_its_path_and_nearly_each_with_the_key_that_was_meant() -> None:
    random = Random(7)
    missed, not_guessed = [], []
    for _ in range(TYPOS):
        file = deepcopy(random.choice(FILES))
        path, section, key = random.choice(list(keys(file)))
        typo = mistype(random, key)
        if not typo or typo in section:
            continue
        section[typo] = section.pop(key)
        text = told(file)
        if f" {path}.{typo}: ".replace(" .", " ") not in text:
            missed.append((path, key, typo, text))
        elif f"did you mean {key!r}" not in text and f"read as {key!r}" not in text:
            not_guessed.append((key, typo))
    assert len(missed) <= TYPOS // 100, missed[:5]
    assert len(not_guessed) <= TYPOS // 20, not_guessed[:20]


WORDS = (
    ("flags", "migStrategy", "mixed"),
    ("flags", "deviceDiscoveryStrategy", "auto"),
    ("flags.plugin", "deviceIDStrategy", "index"),
    ("flags.plugin", "deviceListStrategy", "envvar"),
    ("flags.plugin", "sharedDevicesAllocationPolicy", "distributed"),
)


def test_each_mistyped_word_is_refused_with_its_path() -> None:
    random = Random(7)
    for _ in range(TYPOS // 10):
        path, key, word = random.choice(WORDS)
        typo = mistype(random, word)
        if typo == word:
            continue
        node: dict[str, Any] = {key: typo}
        for section in reversed(path.split(".")):
            node = {section: node}
        assert f"\n  {path}.{key}: " in told(node)


@pytest.mark.parametrize(
    ("section", "key", "known", "meant"),
    [
        ("flags", "deviceListStrategy", ("plugin",), "flags.plugin.deviceListStrategy"),
        ("", "migStrategy", ("flags",), "flags.migStrategy"),
        ("sharing.mps.resources[]", "failRequestsGreaterThanOne", ("name",), "sharing.mps.failRequestsGreaterThanOne"),
        ("sharing", "resources", ("mps", "timeSlicing"), "sharing.timeSlicing.resources"),
        ("sharing", "replicas", ("mps",), "sharing.timeSlicing.resources[].replicas"),
        ("flags", "deviceIdStrategi", ("plugin",), "flags.plugin.deviceIDStrategy"),
        ("sharing.timeSlicing", "Resources", ("resources",), "resources"),
        ("flags", "zzz", ("plugin",), ""),
    ],
)
def test_case_c04_a_misplaced_key_is_found_where_it_belongs(
    section: str, key: str, known: tuple[str, ...], meant: str
) -> None:
    assert nearest(section, key, known) == meant
