import json
from importlib import resources
from typing import Any

import jsonschema
import pytest
import yaml

from gpustow.hardware.modelfile import node_model_schema
from gpustow.hardware.nodemodel import parse_node_model, shipped_models

_MODELS = resources.files("gpustow.hardware") / "models"


def _committed_schema() -> Any:
    return json.loads((_MODELS / "node-model.schema.json").read_text(encoding="utf-8"))


def test_the_committed_schema_is_the_one_of_the_model() -> None:
    """To write it anew: gpustow models schema > src/gpustow/hardware/models/node-model.schema.json."""
    assert _committed_schema() == node_model_schema()


@pytest.mark.parametrize("name", shipped_models())
def test_the_schema_takes_every_shipped_model(name: str) -> None:
    document = yaml.safe_load((_MODELS / f"{name}.yaml").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(_committed_schema())
    jsonschema.validate(document, _committed_schema())


_GOOD = {"name": "n", "gpus": [{"model": "Tesla T4"}]}


@pytest.mark.parametrize(
    "change",
    [
        {
            "gpus": [
                {"model": "Tesla T4", "numaNode": [0], "uuid": "GPU-a", "memory": "1GiB", "mig": {"enabled": False}}
            ]
        },
        {"gpus": [{"model": "NVIDIA A30", "mig": [{"devices": ["1g.6gb", {"profile": "1g.6gb", "count": 2}]}]}]},
        {"links": {"pcie": ["X"], "nvlinks": [["X"]], "nvswitchLinks": 4}},
        {"faults": [{"fault": "lost", "after": "3s", "gpu": 0, "for": 2}, {"fault": "slow", "after": 1.5, "delay": 1}]},
    ],
)
def test_the_schema_takes_what_we_take(change: dict[str, Any]) -> None:
    document = _GOOD | change
    jsonschema.validate(document, _committed_schema())
    assert parse_node_model(json.dumps(document), "n").name == "n"


@pytest.mark.parametrize(
    "change",
    [
        {"gpus": 4},
        {"extra": 1},
        {"platform": "mars"},
        {"gpus": [{"model": "Tesla T4", "count": 0}]},
        {"gpus": [{"model": "NVIDIA A30", "mig": {"devices": [{"profil": "1g.6gb"}]}}]},
        {"faults": [{"fault": "fire", "after": 1}]},
        {"faults": [{"fault": "xid", "after": 1, "gpu": 0, "code": 0}]},
    ],
)
def test_the_schema_refuses_what_we_refuse(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(_GOOD | change, _committed_schema())
