"""The section `placement`: what it says, and every fault where it stands."""

from typing import Any

import pytest

from gpustow.config import load_config
from gpustow.config.placement import ResourcePlacement, read_placement
from gpustow.config.section import Findings, Section


def read(node: Any) -> tuple[tuple[ResourcePlacement, ...], Findings]:
    findings = Findings()
    return read_placement(Section(node, "placement", findings)), findings


def test_an_entry_names_policy_cap_and_rule_of_a_resource() -> None:
    entries, findings = read(
        {
            "resources": [
                {"name": "nvidia.com/gpu.shared", "policy": "packed", "cap": 2, "distinct": "required"},
                {"name": "mig-1g.10gb", "policy": "spread"},
                {"name": "gpu", "together": "required"},
            ]
        }
    )
    assert entries == (
        ResourcePlacement("nvidia.com/gpu.shared", "packed", 2, distinct=True),
        ResourcePlacement("nvidia.com/mig-1g.10gb", "spread"),
        ResourcePlacement("nvidia.com/gpu", together=True),
    )
    assert findings == Findings()


@pytest.mark.parametrize(
    ("node", "fault"),
    [
        (["x"], "placement: ['x'] is not a mapping"),
        ({}, "placement.resources: it must be a list with one entry or more"),
        ({"resources": []}, "placement.resources: it must be a list with one entry or more"),
        ({"resources": ["x"]}, "placement.resources[0]: 'x' is not a mapping"),
        (
            {"resources": [{"policy": "packed"}]},
            "placement.resources[0].name: it must be the final name of a resource, such as nvidia.com/gpu.shared",
        ),
        ({"resources": [{"name": "A"}]}, "placement.resources[0].name: 'A' is not a resource name"),
        (
            {"resources": [{"name": "gpu", "policy": "aligned"}]},
            "placement.resources[0].policy: unknown policy 'aligned'; known are distributed, packed, spread, pack",
        ),
        ({"resources": [{"name": "gpu", "policy": ["packed"]}]}, "placement.resources[0].policy: unknown policy"),
        (
            {"resources": [{"name": "gpu", "policy": "packed", "cap": 0}]},
            "placement.resources[0].cap: 0 is not a whole number above 0",
        ),
        (
            {"resources": [{"name": "gpu", "policy": "packed", "cap": True}]},
            "placement.resources[0].cap: True is not a whole number above 0",
        ),
        (
            {"resources": [{"name": "gpu", "policy": "spread", "cap": 1}]},
            "placement.resources[0].cap: a cap needs `policy: packed` in the same entry",
        ),
        (
            {"resources": [{"name": "gpu", "distinct": "preferred"}]},
            "placement.resources[0].distinct: 'preferred' is not 'required'",
        ),
        (
            {"resources": [{"name": "gpu", "distinct": "required", "together": "required"}]},
            "placement.resources[0]: distinct and together cannot both be required",
        ),
        (
            {"resources": [{"name": "gpu"}, {"name": "nvidia.com/gpu"}]},
            "placement.resources: nvidia.com/gpu is listed 2 times",
        ),
    ],
)
def test_a_fault_is_refused_where_it_stands(node: Any, fault: str) -> None:
    _, findings = read(node)
    assert len(findings.refused) == 1
    assert str(findings.refused[0]).startswith(fault)


def test_unknown_keys_are_told_with_the_nearest() -> None:
    _, findings = read({"resources": [{"name": "gpu", "polcy": "packed"}], "resource": []})
    assert [str(problem) for problem in findings.unknown] == [
        "placement.resource: unknown key, without effect; did you mean 'resources'?",
        "placement.resources[0].polcy: unknown key, without effect; did you mean 'policy'?",
    ]


def test_its_key_in_another_case_holds_with_a_warning() -> None:
    text = "placement: {Resources: [{name: gpu, policy: packed}]}"
    loaded = load_config({"config-file": "f"}, {}, lambda _: text)
    assert [entry.name for entry in loaded.config.placement] == ["nvidia.com/gpu"]
    assert loaded.warnings == ("f: placement.Resources: it is read as 'resources'; write it so",)
