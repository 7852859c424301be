"""The section `sharing`: what is read, what is refused, what is told."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from gpustow.config import ReplicatedResource, ReplicatedResources
from gpustow.config.file import read_file

UUID = "8dcd427f-483b-b48f-d7e5-75fb19a52b76"
TWO = "{resources: [{name: gpu, replicas: 2}]}"


def sharing(*entries: Mapping[str, Any], **more: Any) -> str:
    return yaml.safe_dump({"sharing": {"timeSlicing": {"resources": list(entries), **more}}})


def refusals(text: str) -> dict[str, str]:
    return {problem.path: problem.message for problem in read_file(text, "config.yaml").findings.refused}


def warnings(text: str) -> dict[str, str]:
    findings = read_file(text, "config.yaml").findings
    return {problem.path: problem.message for problem in (*findings.unknown, *findings.warnings)}


def time_slicing(text: str) -> ReplicatedResources:
    content = read_file(text, "x")
    assert content.time_slicing is not None
    return content.time_slicing


@pytest.mark.parametrize("kind", ["timeSlicing", "mps"])
@pytest.mark.parametrize("value", ["{}", "{resources: []}", "{resources: 3}", "{renameByDefault: true}"])
def test_case_c08_sharing_without_resources_is_refused(kind: str, value: str) -> None:
    text = f"sharing: {{{kind}: {value}}}"
    assert refusals(text)[f"sharing.{kind}.resources"].startswith("no resources specified")


@pytest.mark.parametrize(
    ("entry", "key", "message"),
    [
        ({}, "name", "no resource name specified"),
        ({"name": "valid"}, "replicas", "no replicas specified"),
        ({"name": "valid", "devices": "all"}, "replicas", "no replicas specified"),
        ({"name": "valid", "devices": "all", "rename": "valid-shared"}, "replicas", "no replicas specified"),
        ({"name": "valid", "replicas": 1}, "replicas", "number of replicas must be >= 2, not 1; omit the sharing"),
        ({"name": "valid", "replicas": 0}, "replicas", "number of replicas must be >= 2, not 0"),
        ({"name": "valid", "replicas": -1}, "replicas", "number of replicas must be >= 2, not -1"),
        ({"name": "valid", "replicas": "2"}, "replicas", "'2' is not a whole number"),
        ({"name": "valid", "replicas": 2.5}, "replicas", "2.5 is not a whole number"),
        ({"name": "valid", "replicas": True}, "replicas", "True is not a whole number"),
        ({"name": "$invalid$", "replicas": 2}, "name", "'$invalid$' is not a resource name"),
        ({"name": 3, "replicas": 2}, "name", "3 is not a text"),
        ({"name": "valid", "replicas": 2, "rename": "$invalid$"}, "rename", "'$invalid$' is not a resource name"),
        ({"name": "valid", "replicas": 2, "rename": ""}, "rename", "'' is not a resource name"),
        ({"name": "valid", "replicas": 2, "rename": None}, "rename", "it must not be empty"),
        ({"name": "valid", "replicas": 2, "devices": "some"}, "devices", "devices set as 'some' but the only valid"),
    ],
)
def test_a_shared_resource_that_cannot_be_is_refused(entry: Mapping[str, Any], key: str, message: str) -> None:
    assert refusals(sharing(entry))[f"sharing.timeSlicing.resources[0].{key}"].startswith(message)


def test_an_entry_that_is_no_mapping_is_refused() -> None:
    assert "sharing.timeSlicing.resources[0]" in refusals("sharing: {timeSlicing: {resources: [gpu]}}")


@pytest.mark.parametrize("value", ["'no'", "1", "[true]"])
def test_a_boolean_of_sharing_of_another_type_is_refused(value: str) -> None:
    text = f"sharing: {{timeSlicing: {{failRequestsGreaterThanOne: {value}, resources: [{{name: gpu, replicas: 2}}]}}}}"
    assert "sharing.timeSlicing.failRequestsGreaterThanOne" in refusals(text)


@pytest.mark.parametrize(
    ("entry", "read"),
    [
        ({"name": "valid", "replicas": 2}, ReplicatedResource("nvidia.com/valid", 2)),
        ({"name": "valid", "replicas": 2, "devices": "all"}, ReplicatedResource("nvidia.com/valid", 2)),
        (
            {"name": "valid", "replicas": 2, "rename": "valid-shared"},
            ReplicatedResource("nvidia.com/valid", 2, "nvidia.com/valid-shared"),
        ),
        (
            {"name": "nvidia.com/gpu", "rename": "nvidia.com/gpu-0", "devices": ["0"], "replicas": 8},
            ReplicatedResource("nvidia.com/gpu", 8, "nvidia.com/gpu-0", ("0",)),
        ),
        ({"name": "gpu", "replicas": 2, "devices": 3}, ReplicatedResource("nvidia.com/gpu", 2, devices=3)),
    ],
)
def test_case_c06_an_entry_says_what_is_shared_and_how_it_is_called(
    entry: Mapping[str, Any], read: ReplicatedResource
) -> None:
    assert time_slicing(sharing(entry)) == ReplicatedResources((read,))
    assert warnings(sharing(entry)) == {}


def test_several_entries_keep_their_order() -> None:
    shared = time_slicing(sharing({"name": "b", "replicas": 2}, {"name": "a", "replicas": 3}))
    assert [entry.name for entry in shared.resources] == ["nvidia.com/b", "nvidia.com/a"]


def test_a_float_without_a_fraction_is_a_whole_number() -> None:
    text = "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2.0}]}}"
    assert time_slicing(text).resources[0].replicas == 2


@pytest.mark.parametrize(("rename", "name"), [({}, "gpu.shared"), ({"rename": "other"}, "other")])
def test_rename_by_default_names_what_has_no_other_name(rename: Mapping[str, str], name: str) -> None:
    shared = time_slicing(sharing({"name": "gpu", "replicas": 2, **rename}, renameByDefault=True))
    assert shared.rename_by_default
    assert shared.resources[0].rename == f"nvidia.com/{name}"


def test_an_empty_list_of_devices_is_told() -> None:
    told = warnings(sharing({"name": "gpu", "replicas": 2, "devices": []}))
    assert set(told) == {"sharing.timeSlicing.resources[0].devices"}


@pytest.mark.parametrize(
    ("more", "limited"),
    [("", True), ("failRequestsGreaterThanOne: false, ", False), ("failRequestsGreaterThanOne: true, ", True)],
)
def test_case_c37_mps_limits_requests_unless_the_file_says_otherwise(more: str, limited: bool) -> None:  # noqa: FBT001 - a column
    content = read_file(f"sharing: {{mps: {{{more}resources: [{{name: gpu, replicas: 2}}]}}}}", "x")
    assert content.mps is not None
    assert content.mps.fail_requests_greater_than_one is limited


def test_time_slicing_leaves_open_what_the_file_does() -> None:
    assert time_slicing(f"sharing: {{timeSlicing: {TWO}}}").fail_requests_greater_than_one is None


def test_null_is_no_mps_but_not_no_time_slicing() -> None:
    assert read_file("sharing: {mps: null}", "x").mps is None
    assert "is not a mapping" in refusals("sharing: {timeSlicing: null}")["sharing.timeSlicing"]
    assert read_file(f"sharing: {{timeSlicing: {TWO}, mps: null}}", "x").mps is None


def test_case_c05_mps_and_time_slicing_together_are_refused() -> None:
    text = f"sharing: {{timeSlicing: {TWO}, mps: {TWO}}}"
    assert refusals(text) == {"sharing": "sharing.mps and sharing.timeSlicing are mutually exclusive; keep one of them"}
