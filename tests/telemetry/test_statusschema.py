import json
from importlib.resources import files

import jsonschema
import pytest

from gpustow.placement import Inventory, Request, place
from gpustow.telemetry.decisions import Decisions
from gpustow.telemetry.facts import Check, Facts
from gpustow.telemetry.picture import node_status
from gpustow.telemetry.plainjson import camel_case, plain
from gpustow.telemetry.statusschema import status_schema
from tests.telemetry.samples import NOW, facts, hold

SHIPPED = json.loads((files("gpustow.telemetry") / "node-status.schema.json").read_text(encoding="utf-8"))


def decided(known: Facts) -> Decisions:
    decisions = Decisions(clock=lambda: NOW)
    served, node = known.served[0], known.node
    assert node is not None
    inventory = Inventory.of(served.resource.devices, node.links)
    placement = place(Request(inventory.ids, (), 1), inventory, served.policy)
    decisions.add(served.resource.name, placement, placement.explanation(), 0.001)
    return decisions


def test_the_schema_that_ships_is_that_of_the_values() -> None:
    assert status_schema() == SHIPPED, "run `python -m gpustow.telemetry.statusschema`"
    jsonschema.Draft202012Validator.check_schema(SHIPPED)


@pytest.mark.parametrize("model", ["a100-4-mig-5", "dgx-1-v100", "wsl", "jetson-orin", "a30-mig"])
def test_what_is_told_of_a_node_is_valid(model: str) -> None:
    known = hold(facts(model), 0)
    told = json.loads(json.dumps(plain(node_status(known, decided(known)))))
    jsonschema.validate(told, SHIPPED)
    assert told["gpus"]
    assert told["decisions"][0]["devicesByGpu"]


def test_what_is_told_before_anything_is_known_is_valid() -> None:
    jsonschema.validate(json.loads(json.dumps(plain(node_status(Facts(NOW, (Check("node", "no"),)))))), SHIPPED)


def test_a_status_with_a_wrong_type_is_not_valid() -> None:
    told = plain(node_status(facts()))
    told["gpus"][0]["index"] = "zero"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(json.dumps(told)), SHIPPED)


def test_names_are_in_camel_case() -> None:
    assert camel_case("wholly_free_gpus") == "whollyFreeGpus"
    assert camel_case("at") == "at"


def test_keys_that_are_data_stay_as_they_are() -> None:
    assert plain({"my_key": (1, 2)}) == {"my_key": [1, 2]}
