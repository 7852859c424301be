"""The v1 file: what is read, what is refused, what is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import load_config
from gpustow.config.file import read_file
from gpustow.errors import ConfigError


def refusals(text: str) -> dict[str, str]:
    try:
        refused = tuple(read_file(text, "config.yaml").findings.refused)
    except ConfigError as error:
        assert "config.yaml" in str(error)
        refused = error.problems
    return {problem.path: problem.message for problem in refused}


def warnings(text: str) -> dict[str, str]:
    findings = read_file(text, "config.yaml").findings
    return {problem.path: problem.message for problem in (*findings.unknown, *findings.warnings)}


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
        ("flags: {migStrategy: [none]}", "flags.migStrategy"),
        ("flags: {failOnInitError: 'true'}", "flags.failOnInitError"),
        ("flags: {plugin: {deviceListStrategy: [1]}}", "flags.plugin.deviceListStrategy"),
        ("flags: {gfd: {oneshot: 1}}", "flags.gfd.oneshot"),
        ("flags: {gfd: {sleepInterval: 60 s}}", "flags.gfd.sleepInterval"),
        ("flags: {gfd: {sleepInterval: true}}", "flags.gfd.sleepInterval"),
        ("flags: {gfd: {sleepInterval: 1e30}}", "flags.gfd.sleepInterval"),
        ("flags: {useNodeFeatureAPI: 'yes'}", "flags.useNodeFeatureAPI"),
        ("gpus: {select: {}}", "gpus.select"),
        ("gpus: {select: [true]}", "gpus.select"),
        ("gpus: {exclude: '0,1'}", "gpus.exclude"),
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


def test_every_fault_is_told_at_once_whatever_its_kind_with_the_keys_that_have_no_effect() -> None:
    text = """
        version: v3
        Flags: {migStrategy: wrong, failOnInitError: x, plugin: {passDeviceSpecs: 3, passDeviceSpec: z}}
        sharing: {timeSlicing: {resources: []}}
    """
    with pytest.raises(ConfigError) as refusal:
        load_config({"config-file": "config.yaml"}, {}, lambda _path: text)
    assert {problem.path for problem in refusal.value.problems} == {
        "version",
        "flags.migStrategy",
        "flags.failOnInitError",
        "flags.plugin.passDeviceSpecs",
        "sharing.timeSlicing.resources",
    }
    assert refusal.value.warnings == (
        "config.yaml: flags.plugin.passDeviceSpec: unknown key, without effect; did you mean 'passDeviceSpecs'?",
        "config.yaml: Flags: it is read as 'flags'; write it so",
    )
    first, *lines = str(refusal.value).splitlines()
    assert first.endswith("is refused:")
    assert [line.startswith("  warning: config.yaml: ") for line in lines] == [False] * 5 + [True] * 2


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
    assert told == {
        "sharing.timeSlicing.replicas": "unknown key, without effect; "
        "did you mean 'sharing.timeSlicing.resources.replicas'?",
        "sharing.timeSlicing.resources[0].failRequestsGreaterThanOne": "unknown key, without effect; "
        "did you mean 'sharing.timeSlicing.failRequestsGreaterThanOne'?",
    }


@pytest.mark.parametrize(
    ("value", "nanoseconds"), [("60s", 60 * 10**9), ("5", 5), ("'5ns'", 5), ("infinite", 2**63 - 1)]
)
def test_what_feature_discovery_reads_is_read_and_not_told(value: str, nanoseconds: int) -> None:
    text = f"flags: {{useNodeFeatureAPI: true, gfd: {{oneshot: true, sleepInterval: {value}}}}}"
    assert warnings(text) == {}
    assert read_file(text, "x").values == {
        "flags.useNodeFeatureAPI": True,
        "flags.gfd.oneshot": True,
        "flags.gfd.sleepInterval": nanoseconds,
    }


@pytest.mark.parametrize("text", ["[0, 'GPU-1']", "[0, GPU-1]"])
def test_gpus_are_selected_by_numbers_and_texts(text: str) -> None:
    assert read_file(f"gpus: {{select: {text}, exclude: 1}}", "x").values == {
        "gpus.select": ("0", "GPU-1"),
        "gpus.exclude": ("1",),
    }


def test_the_section_placement_is_read() -> None:
    content = read_file("placement: {resources: [{name: gpu, policy: spread}]}", "x")
    assert [(entry.name, entry.policy) for entry in content.placement] == [("nvidia.com/gpu", "spread")]
    assert read_file("placement:", "x").placement == ()


@given(st.text(max_size=60))
def test_any_text_gives_a_content_or_a_config_error(text: str) -> None:
    try:
        read_file(text, "x")
    except ConfigError as error:
        assert error.problems


MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: gpus}
data:
  any: "flags: {migStrategy: mixed}"
  other: ""
"""


def test_the_manifest_of_a_config_map_is_told_in_one_warning() -> None:
    content = read_file(MANIFEST, "cm.yaml")
    assert content.values == {}
    (warning,) = content.findings.unknown
    assert "this is the manifest of a ConfigMap" in warning.message
    assert "the configuration is the text under its data.any or data.other" in warning.message
    assert "which has none" in warnings("apiVersion: v1\nkind: ConfigMap\n")[""]


def test_the_manifest_of_a_config_map_is_refused_where_the_operator_is_strict() -> None:
    flags = {"config-file": "cm.yaml"}
    assert len(load_config(flags, {}, lambda _: MANIFEST).warnings) == 1
    with pytest.raises(ConfigError, match="this is the manifest of a ConfigMap"):
        load_config({**flags, "strict-config": "true"}, {}, lambda _: MANIFEST)
