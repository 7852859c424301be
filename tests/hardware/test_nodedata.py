import json

import pytest

from gpustow.hardware.nodedata import node_data
from gpustow.hardware.nodemodel import load_node_model, parse_node_model, shipped_models


@pytest.mark.parametrize("name", shipped_models())
def test_every_shipped_node_is_plain_data(name: str) -> None:
    node = load_node_model(name).node
    data = json.loads(json.dumps(node_data(node)))
    assert data["name"] == name
    assert [gpu["uuid"] for gpu in data["gpus"]] == [gpu.uuid for gpu in node.gpus]
    assert len(data["links"]) == len(node.gpus) * (len(node.gpus) - 1)


def test_values_are_words_and_numbers_with_their_units_in_the_names() -> None:
    text = """
    name: n
    cudaVersion: 12.4
    gpus: [{model: NVIDIA A30, count: 2, numaNode: [1, -1], fabric: {clusterUuid: abc, clique: 2},
            mig: [{devices: [1c.2g.12gb]}, {enabled: false}]}]
    links: {pcie: [X PIX, '? X'], nvlinks: [X 2, 0 X]}
    """
    data = node_data(parse_node_model(text, "n").node)
    first, second = data["gpus"]
    (device,) = first["mig"]["devices"]
    assert (data["platform"], data["cuda_version"], data["driver_version"]) == ("nvml", "12.4", None)
    assert (first["memory_bytes"], first["compute_capability"], first["numa_node"]) == (24576 << 20, "8.0", 1)
    assert first["fabric"] == {"cluster_uuid": "abc", "clique": 2}
    assert second["numa_node"] is None
    assert (device["profile"], device["gpu_instance"], device["start"], device["memory_slices"]) == (
        "1c.2g.12gb",
        1,
        0,
        2,
    )
    assert first["mig"]["profiles"][0]["placements"] == [0, 1, 2, 3]
    assert data["links"] == [
        {"from": 0, "to": 1, "pcie": "PIX", "nvlinks": 2, "score": 250},
        {"from": 1, "to": 0, "pcie": None, "nvlinks": 0, "score": 0},
    ]


def test_what_is_not_known_is_none() -> None:
    (gpu,) = node_data(load_node_model("jetson-orin").node)["gpus"]
    assert gpu["memory_bytes"] is None
    assert gpu["mig"]["memory_slices"] is None
