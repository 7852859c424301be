"""Under which configurations v0.20.0's feature discovery labels a node otherwise."""

import pytest

from gpustow.config import Config, load_config
from gpustow.features import label_differences

ENTRY = "sharing: {%s: {%sresources: [{name: gpu, replicas: 2%s}]}}"


def config(text: str) -> Config:
    return load_config({"config-file": "f", "mps-root": "/mps"}, {}, lambda _: text).config


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (ENTRY % ("timeSlicing", "", ", rename: few"), "sharing.timeSlicing.resources[].rename"),
        (ENTRY % ("mps", "", ", devices: 1"), "sharing.mps.resources[].devices"),
        (
            "resources: {gpus: [{pattern: '*', name: x}], mig: [{pattern: '*', name: z}]}",
            "resources.gpus, resources.mig",
        ),
    ],
)
def test_what_it_drops_is_told_by_key(text: str, keys: str) -> None:
    (note,) = label_differences(config(text))
    assert note.startswith(f"v0.20.0's feature discovery drops {keys}: ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ENTRY % ("timeSlicing", "", ""),
        ENTRY % ("mps", "", ", devices: all"),
        ENTRY % ("timeSlicing", "renameByDefault: true, ", ", rename: few"),
    ],
)
def test_what_it_reads_as_we_do_is_not_told(text: str) -> None:
    assert label_differences(config(text)) == ()
