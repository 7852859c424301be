import pytest

from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import load_node_model, parse_node_model
from gpustow.simulation.scenario import FIRST_NODE_MODEL, default_flags, three_pods

_MIXED = """
name: mixed
gpus:
  - model: NVIDIA A100-SXM4-40GB
    mig: {devices: [{profile: 1g.5gb, count: 2}, {profile: 2g.10gb}]}
"""


def node(text: str) -> Node:
    return parse_node_model(text, "n.yaml").node


def test_like_mig_devices_are_served_as_gpus() -> None:
    assert default_flags(load_node_model(FIRST_NODE_MODEL).node) == {"mig-strategy": "single"}


def test_unlike_mig_devices_are_served_by_profile() -> None:
    assert default_flags(node(_MIXED)) == {"mig-strategy": "mixed"}


@pytest.mark.parametrize("model", ["t4-4", "dgx-a100"])
def test_without_mig_the_defaults_of_the_plugin_hold(model: str) -> None:
    assert default_flags(load_node_model(model).node) == {}


def test_three_pods_ask_for_one_device_each() -> None:
    workload = three_pods("nvidia.com/mig-1g.5gb")
    assert [action.kind for action in workload.actions] == ["admit"] * 3
    assert [action.pod.containers[0].limits for action in workload.actions] == [{"nvidia.com/mig-1g.5gb": 1}] * 3
