"""The v1 file: what is read, what is refused, what is told."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import ReplicatedResource
from gpustow.config.file import read_file
from gpustow.errors import ConfigError

UUID = "8dcd427f-483b-b48f-d7e5-75fb19a52b76"


def refusals(text: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as refusal:
        read_file(text, "config.yaml")
    assert "config.yaml" in str(refusal.value)
    return {problem.path: problem.message for problem in refusal.value.problems}


def warnings(text: str) -> dict[str, str]:
    findings = read_file(text, "config.yaml").findings
    return {problem.path: problem.message for problem in (*findings.unknown, *findings.warnings)}


def sharing(entry: Mapping[str, Any], **more: Any) -> str:
    return yaml.safe_dump({"sharing": {"timeSlicing": {"resources": [entry], **more}}})


@pytest.mark.parametrize(
    "text", ["", "version: v1", "version:", "version: ''", "version: v1\nflags:\nimex:\nsharing: {}"]
)
def test_a_file_without_settings_says_nothing(text: str) -> None:
    content = read_file(text, "x")
    assert content.values == {}
    assert content.findings.unknown == content.findings.warnings == []


@pytest.mark.parametrize("version", ["v2", "1", "v1beta1", "2.5"])
def test_case_c08_another_version_is_refused(version: str) -> None:
    assert refusals(f"version: {version}") == {"version": f"unknown version: {version} (only v1 is known)"}


@pytest.mark.parametrize(
    "text", ["[1]", "text", "flags: 3", "flags: {plugin: []}", "sharing: {timeSlicing: }", "imex: 1"]
)
def test_something_else_where_keys_should_stand_is_refused(text: str) -> None:
    assert all("is not a mapping" in message for message in refusals(text).values())


def test_a_file_that_is_not_yaml_is_refused_with_the_line() -> None:
    assert "line 2" in refusals("flags:\n  migStrategy: ]")[""]


@pytest.mark.parametrize("text", ["deviceListStrategy: envvar", "deviceListStrategy: [envvar]"])
def test_case_c01_a_device_list_strategy_may_be_a_text_or_a_list(text: str) -> None:
    content = read_file(f"flags: {{plugin: {{{text}, deviceIDStrategy: uuid}}}}", "x")
    assert content.values["flags.plugin.deviceListStrategy"] == ("envvar",)


@pytest.mark.parametrize("value", ["{}", "3", "[1]"])
def test_case_c01_a_device_list_strategy_of_another_type_is_refused(value: str) -> None:
    message = refusals(f"flags: {{plugin: {{deviceListStrategy: {value}}}}}")["flags.plugin.deviceListStrategy"]
    assert message.startswith("invalid deviceListStrategy: ")


def test_case_c01_a_list_that_is_written_as_one_text_is_refused_with_the_list_form() -> None:
    message = refusals('flags: {plugin: {deviceListStrategy: "cdi-cri,envvar"}}')["flags.plugin.deviceListStrategy"]
    assert "write a list: deviceListStrategy: [cdi-cri,envvar]" in message


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("flags: {migStrategy: all-balanced}", "flags.migStrategy"),
        ("flags: {migStrategy: ''}", "flags.migStrategy"),
        ("flags: {migStrategy: 1}", "flags.migStrategy"),
        ("flags: {migStrategy: [none]}", "flags.migStrategy"),
        ("flags: {failOnInitError: 'true'}", "flags.failOnInitError"),
        ("flags: {plugin: {deviceIDStrategy: pci}}", "flags.plugin.deviceIDStrategy"),
        ("flags: {plugin: {deviceListStrategy: [cdi]}}", "flags.plugin.deviceListStrategy"),
        ("flags: {plugin: {sharedDevicesAllocationPolicy: tight}}", "flags.plugin.sharedDevicesAllocationPolicy"),
        ("imex: {channelIDs: 0}", "imex.channelIDs"),
        ("imex: {channelIDs: [true]}", "imex.channelIDs"),
    ],
)
def test_a_value_that_cannot_be_is_refused_where_it_stands(text: str, path: str) -> None:
    assert list(refusals(text)) == [path]


def test_null_counts_as_absent() -> None:
    assert read_file("flags: {migStrategy: null, plugin: null}", "x").values == {}


def test_a_number_or_boolean_where_text_is_expected_becomes_text() -> None:
    content = read_file("flags: {nvidiaDriverRoot: 1, mpsRoot: true, nvidiaDevRoot: off}", "x")
    assert content.values == {
        "flags.nvidiaDriverRoot": "1",
        "flags.mpsRoot": "true",
        "flags.nvidiaDevRoot": "false",
    }


def test_every_fault_of_a_file_is_told_at_once() -> None:
    assert set(refusals("version: v3\nflags: {migStrategy: x, plugin: {deviceIDStrategy: y}}")) == {
        "version",
        "flags.migStrategy",
        "flags.plugin.deviceIDStrategy",
    }


def test_case_c03_a_misspelt_key_is_told_with_its_path_and_the_nearest_key() -> None:
    told = warnings("sharing: {timeSlicng: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}")
    assert told == {"sharing.timeSlicng": "unknown key, without effect; did you mean 'timeSlicing'?"}


def test_case_c03_a_key_in_another_case_is_honoured_and_told() -> None:
    text = "Sharing: {timeslicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    content = read_file(text, "x")
    assert content.time_slicing is not None
    assert warnings(text) == {
        "Sharing": "it is read as 'sharing'; write it so",
        "sharing.timeslicing": "it is read as 'timeSlicing'; write it so",
    }


def test_of_two_cases_of_one_key_the_right_one_counts() -> None:
    for text in ("{migStrategy: mixed, MIGSTRATEGY: single}", "{MIGSTRATEGY: single, migStrategy: mixed}"):
        assert read_file(f"flags: {text}", "x").values == {"flags.migStrategy": "mixed"}


def test_case_c03_a_key_that_stands_twice_is_told() -> None:
    assert warnings("version: v1\nversion: v1") == {
        "version": "it stands twice, in line 1 and in line 2; the last counts"
    }


def test_a_key_like_no_other_is_told_with_the_keys_that_are_known() -> None:
    assert "known here: channelIDs, required" in warnings("imex: {zzz: 1}")["imex.zzz"]


def test_case_c04_keys_at_the_wrong_level_are_told() -> None:
    told = warnings(
        "sharing: {timeSlicing: {replicas: 4, resources: "
        "[{name: nvidia.com/gpu, replicas: 4, failRequestsGreaterThanOne: true}]}}"
    )
    assert set(told) == {
        "sharing.timeSlicing.replicas",
        "sharing.timeSlicing.resources[0].failRequestsGreaterThanOne",
    }


def test_what_feature_discovery_reads_is_passed_over() -> None:
    assert warnings("flags: {useNodeFeatureAPI: true, gfd: {oneshot: true, sleepInterval: 60s}}") == {}


def test_resource_patterns_are_dropped_with_a_warning() -> None:
    assert set(warnings("resources: {gpus: [{pattern: '*', name: gpu}], mig: []}")) == {"resources"}


@pytest.mark.parametrize("value", ["{}", "resources: []", "resources: 3", "renameByDefault: true"])
def test_case_c08_sharing_without_resources_is_refused(value: str) -> None:
    text = f"sharing: {{timeSlicing: {{{value.strip('{}')}}}}}"
    assert refusals(text)["sharing.timeSlicing.resources"].startswith("no resources specified")


@pytest.mark.parametrize(
    ("entry", "key", "message"),
    [
        ({}, "name", "no resource name specified"),
        ({"name": "valid"}, "replicas", "no replicas specified"),
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
        ({"name": "valid", "replicas": 2, "devices": "some"}, "devices", "devices set as 'some'"),
        ({"name": "valid", "replicas": 2, "devices": 0}, "devices", "the count of devices must be > 0"),
        ({"name": "valid", "replicas": 2, "devices": -2}, "devices", "the count of devices must be > 0"),
        ({"name": "valid", "replicas": 2, "devices": None}, "devices", "None is neither"),
        ({"name": "valid", "replicas": 2, "devices": True}, "devices", "True is neither"),
        ({"name": "valid", "replicas": 2, "devices": [1.5]}, "devices", "[1.5] holds something else"),
    ],
)
def test_a_shared_resource_that_cannot_be_is_refused(entry: Mapping[str, Any], key: str, message: str) -> None:
    assert refusals(sharing(entry))[f"sharing.timeSlicing.resources[0].{key}"].startswith(message)


def test_an_entry_that_is_no_mapping_is_refused() -> None:
    assert "sharing.timeSlicing.resources[0]" in refusals("sharing: {timeSlicing: {resources: [gpu]}}")


def test_a_boolean_of_sharing_of_another_type_is_refused() -> None:
    text = sharing({"name": "gpu", "replicas": 2}, failRequestsGreaterThanOne="no")
    assert "sharing.timeSlicing.failRequestsGreaterThanOne" in refusals(text)


@pytest.mark.parametrize("more", [{}, {"devices": "all"}])
def test_a_shared_resource_gets_its_full_name(more: Mapping[str, Any]) -> None:
    content = read_file(sharing({"name": "valid", "replicas": 2, **more}), "x")
    assert content.time_slicing is not None
    assert content.time_slicing.resources == (ReplicatedResource(name="nvidia.com/valid", replicas=2),)
    assert not content.time_slicing.rename_by_default
    assert content.time_slicing.fail_requests_greater_than_one is None


def test_a_float_without_a_fraction_is_a_whole_number() -> None:
    content = read_file("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2.0}]}}", "x")
    assert content.time_slicing is not None
    assert content.time_slicing.resources[0].replicas == 2


def test_rename_by_default_names_the_shared_resource() -> None:
    content = read_file(sharing({"name": "gpu", "replicas": 2}, renameByDefault=True), "x")
    assert content.time_slicing is not None
    assert content.time_slicing.resources[0].rename == "nvidia.com/gpu.shared"


@pytest.mark.parametrize(("by_default", "kept"), [(False, None), (True, "nvidia.com/gpu.shared")])
def test_case_c06_another_name_is_dropped_with_a_warning(by_default: bool, kept: str | None) -> None:  # noqa: FBT001 - a parameter of the table
    text = sharing({"name": "gpu", "replicas": 2, "rename": "gpu-0"}, renameByDefault=by_default)
    content = read_file(text, "x")
    assert content.time_slicing is not None
    assert content.time_slicing.resources[0].rename == kept
    assert set(warnings(text)) == {"sharing.timeSlicing.resources[0].rename"}


@pytest.mark.parametrize("devices", [2, [0], ["0:1"], [f"GPU-{UUID}"], [0, f"MIG-{UUID}"]])
def test_case_c06_chosen_devices_are_dropped_with_a_warning(devices: object) -> None:
    told = warnings(sharing({"name": "gpu", "replicas": 2, "devices": devices}))
    assert set(told) == {"sharing.timeSlicing.resources[0].devices"}


def test_a_resource_that_is_listed_twice_is_told() -> None:
    entry = "{name: gpu, replicas: 2}"
    told = warnings(f"sharing: {{timeSlicing: {{resources: [{entry}, {entry}]}}}}")
    assert "nvidia.com/gpu is listed more than once" in told["sharing.timeSlicing.resources"]


def test_mps_is_checked_though_it_does_not_act_and_null_is_absent() -> None:
    assert read_file("sharing: {mps: null}", "x").unacted == []
    assert read_file("sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}", "x").unacted == ["sharing.mps"]
    assert "sharing.mps.resources[0].replicas" in refusals("sharing: {mps: {resources: [{name: gpu, replicas: 1}]}}")


KEYS = st.sampled_from(
    [
        "version",
        "flags",
        "plugin",
        "sharing",
        "timeSlicing",
        "mps",
        "resources",
        "name",
        "replicas",
        "devices",
        "rename",
    ]
)
LEAVES = (
    st.none() | st.booleans() | st.integers(-2, 70) | st.floats() | st.text(max_size=8) | st.sampled_from(["v1", "gpu"])
)
TREES = st.recursive(
    LEAVES,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS | st.text(max_size=6), below, max_size=4),
    max_leaves=12,
)


@given(TREES)
def test_any_tree_gives_a_content_or_a_config_error(tree: object) -> None:
    text = yaml.safe_dump({"version": "v1", **tree} if isinstance(tree, dict) else tree)
    try:
        read_file(text, "x")
    except ConfigError as error:
        assert error.problems


@given(st.text(max_size=60))
def test_any_text_gives_a_content_or_a_config_error(text: str) -> None:
    try:
        read_file(text, "x")
    except ConfigError as error:
        assert error.problems
