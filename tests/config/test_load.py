"""Flag over environment over file over default, and what is told about what has no effect."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import (
    SETTINGS,
    Config,
    DeviceIdStrategy,
    DeviceListStrategy,
    LoadedConfig,
    MigStrategy,
    Origin,
    load_config,
)
from gpustow.errors import ConfigError

ACTING_FLAGS = {
    "config-file",
    "strict-config",
    "mig-strategy",
    "fail-on-init-error",
    "shared-devices-allocation-policy",
    "device-list-strategy",
    "device-id-strategy",
    "kubelet-socket",
}


def load(
    file: str | None = None,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> LoadedConfig:
    given = dict(flags or {})
    if file is not None:
        given["config-file"] = "config.yaml"
    return load_config(given, environ or {}, lambda _: file or "")


def problems(error: ConfigError) -> dict[str, str]:
    return {problem.path: problem.message for problem in error.problems}


def test_nothing_given_means_the_defaults_of_the_table() -> None:
    loaded = load()
    assert loaded.config == Config()
    assert set(loaded.origins.values()) == {Origin.DEFAULT}
    assert loaded.warnings == ()


def test_an_empty_file_means_the_defaults() -> None:
    assert load("").config == Config(config_file="config.yaml")


@pytest.mark.parametrize(
    ("flags", "environ", "strategy", "origin"),
    [
        ({"mig-strategy": "mixed"}, {"MIG_STRATEGY": "single"}, MigStrategy.MIXED, Origin.FLAG),
        ({}, {"MIG_STRATEGY": "single"}, MigStrategy.SINGLE, Origin.ENVIRONMENT),
        ({}, {}, MigStrategy.NONE, Origin.FILE),
    ],
)
def test_case_c09_a_flag_wins_over_the_environment_and_that_over_the_file(
    flags: Mapping[str, object], environ: Mapping[str, str], strategy: MigStrategy, origin: Origin
) -> None:
    loaded = load("flags: {migStrategy: none}", flags, environ)
    assert loaded.config.mig_strategy is strategy
    assert loaded.origins["mig-strategy"] is origin


def test_case_c09_a_boolean_that_is_not_given_leaves_the_files_value() -> None:
    assert load("flags: {failOnInitError: false}").config.fail_on_init_error is False


@pytest.mark.parametrize("word", ["1", "t", "T", "TRUE", "true", "True"])
def test_a_boolean_is_true_by_each_of_go_s_words(word: str) -> None:
    assert load(environ={"FAIL_ON_INIT_ERROR": word}).config.fail_on_init_error is True


@pytest.mark.parametrize("word", ["0", "f", "F", "FALSE", "false", "False", ""])
def test_a_boolean_in_the_environment_is_false_by_each_of_go_s_words_and_when_empty(word: str) -> None:
    loaded = load(environ={"FAIL_ON_INIT_ERROR": word})
    assert loaded.config.fail_on_init_error is False
    assert loaded.origins["fail-on-init-error"] is Origin.ENVIRONMENT


@pytest.mark.parametrize("flags", [{"fail-on-init-error": "yes"}, {"fail-on-init-error": ""}])
def test_another_word_for_a_boolean_is_refused_with_the_name_of_the_flag(flags: Mapping[str, object]) -> None:
    with pytest.raises(ConfigError) as refusal:
        load(flags=flags)
    assert list(problems(refusal.value)) == ["--fail-on-init-error"]


def test_a_boolean_flag_may_be_given_as_a_boolean() -> None:
    assert load(flags={"fail-on-init-error": False}).config.fail_on_init_error is False
    assert load(flags={"fail-on-init-error": True}).config.fail_on_init_error is True


def test_an_empty_text_in_the_environment_counts_as_set_and_is_checked() -> None:
    with pytest.raises(ConfigError) as refusal:
        load(environ={"MIG_STRATEGY": ""})
    assert "unknown MIG strategy: " in problems(refusal.value)["MIG_STRATEGY"]


def test_an_empty_kubelet_socket_means_to_register_with_nobody() -> None:
    assert load(flags={"kubelet-socket": ""}).config.kubelet_socket == ""


def test_an_empty_list_in_the_environment_has_one_empty_item_and_is_refused() -> None:
    with pytest.raises(ConfigError, match="invalid strategy: "):
        load(environ={"DEVICE_LIST_STRATEGY": ""})


def test_an_empty_list_of_numbers_in_the_environment_is_left_alone() -> None:
    assert load(environ={"IMEX_CHANNEL_IDS": ""}).origins["imex-channel-ids"] is Origin.DEFAULT


def test_numbers_may_be_hexadecimal_and_what_is_no_number_is_refused() -> None:
    assert load(environ={"IMEX_CHANNEL_IDS": "0x0, 1"}).warnings
    with pytest.raises(ConfigError, match=r"IMEX_CHANNEL_IDS: 'one' is not a number"):
        load(environ={"IMEX_CHANNEL_IDS": "one"})


def test_list_flags_accumulate_and_split_at_commas() -> None:
    loaded = load(flags={"device-list-strategy": ["envvar, cdi-cri", "volume-mounts"]})
    (warning,) = loaded.warnings
    assert "--device-list-strategy cdi-cri" in warning
    assert "--device-list-strategy volume-mounts" in warning
    assert loaded.config.device_list_strategies == (DeviceListStrategy.ENVVAR,)


def test_a_strategy_that_does_not_act_yet_is_told_and_the_environment_variable_takes_its_place() -> None:
    loaded = load(environ={"DEVICE_LIST_STRATEGY": "cdi-cri"})
    assert loaded.config.device_list_strategies == (DeviceListStrategy.ENVVAR,)
    assert loaded.warnings == ("accepted, but without effect in this version: DEVICE_LIST_STRATEGY cdi-cri",)


@pytest.mark.parametrize("setting", [setting for setting in SETTINGS if not setting.acts], ids=lambda each: each.flag)
def test_every_setting_that_does_not_act_is_told_when_it_is_set(setting: object) -> None:
    assert isinstance(setting, type(SETTINGS[0]))
    value = {"boolean": "true", "list of numbers": "7"}.get(setting.kind.value, "nvml")
    (warning,) = load(flags={setting.flag: value}).warnings
    assert warning.endswith(f": --{setting.flag}")


def test_what_acts_and_what_does_not_is_as_documented() -> None:
    assert {setting.flag for setting in SETTINGS if setting.acts} == ACTING_FLAGS


def test_all_settings_without_effect_are_told_in_one_warning() -> None:
    loaded = load(
        "flags: {mpsRoot: /mps}\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}",
        environ={"PASS_DEVICE_SPECS": "true", "NVIDIA_CTK_PATH": "/ctk"},
    )
    (warning,) = loaded.warnings
    assert warning == (
        "accepted, but without effect in this version: "
        "PASS_DEVICE_SPECS, NVIDIA_CDI_HOOK_PATH or NVIDIA_CTK_PATH, flags.mpsRoot, sharing.mps"
    )


def test_a_setting_without_effect_is_not_told_when_it_says_what_is_so_anyway() -> None:
    assert load(environ={"PASS_DEVICE_SPECS": "false", "NVIDIA_DRIVER_ROOT": "/"}).warnings == ()


def test_an_alias_of_a_flag_means_the_flag() -> None:
    loaded = load(flags={"container-driver-root": "/driver"})
    assert loaded.origins["driver-root-ctr-path"] is Origin.FLAG


def test_of_two_environment_variables_the_first_wins() -> None:
    loaded = load(environ={"CONFIG_FILE": "", "NVIDIA_CTK_PATH": "x", "NVIDIA_CDI_HOOK_PATH": "/usr/bin/nvidia-ctk"})
    assert loaded.warnings == ()


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("mig-strategy", "Mixed", "unknown MIG strategy: Mixed"),
        ("device-id-strategy", "pci", "invalid --device-id-strategy option: pci"),
        ("device-list-strategy", "cdi", "invalid strategy: cdi"),
        ("shared-devices-allocation-policy", "dense", "invalid --shared-devices-allocation-policy option: dense"),
        ("device-discovery-strategy", "vfio", "invalid --device-discovery-strategy option: vfio"),
    ],
)
def test_an_unknown_word_is_refused_with_the_words_that_are_known(flag: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        load(flags={flag: value})
    text = problems(refusal.value)[f"--{flag}"]
    assert text.startswith(message)
    assert "choose from" in text


def test_every_fault_of_flags_and_environment_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as refusal:
        load(flags={"mig-strategy": "x"}, environ={"DEVICE_ID_STRATEGY": "y"})
    assert set(problems(refusal.value)) == {"--mig-strategy", "DEVICE_ID_STRATEGY"}


def test_a_file_that_cannot_be_read_is_refused_with_its_path_and_what_to_do() -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config({"config-file": "/nowhere/config.yaml"}, {})
    assert "/nowhere/config.yaml" in str(refusal.value)
    assert "No such file or directory" in str(refusal.value)
    assert "--config-file" in str(refusal.value)


def test_a_file_that_is_not_text_is_refused() -> None:
    def read(_: str) -> str:
        return b"\xff".decode()

    with pytest.raises(ConfigError, match="it cannot be read"):
        load_config({"config-file": "x"}, {}, read)


def test_a_file_is_read_from_the_path_that_the_environment_names(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    path.write_text("flags: {plugin: {deviceIDStrategy: index}}", encoding="utf-8")
    loaded = load_config({}, {"CONFIG_FILE": str(path)})
    assert loaded.config.device_id_strategy is DeviceIdStrategy.INDEX
    assert loaded.config.config_file == str(path)


def test_an_unknown_key_is_told_and_with_strict_config_refused() -> None:
    loaded = load("flags: {migStrategi: mixed}")
    assert loaded.config.mig_strategy is MigStrategy.NONE
    assert loaded.warnings == (
        "config.yaml: flags.migStrategi: unknown key, without effect; did you mean 'migStrategy'?",
    )
    with pytest.raises(ConfigError, match=r"flags\.migStrategi"):
        load("flags: {migStrategi: mixed}", {"strict-config": True})


@given(
    flags=st.dictionaries(st.sampled_from([setting.flag for setting in SETTINGS]), st.text(max_size=12), max_size=5),
    environ=st.dictionaries(
        st.sampled_from([name for setting in SETTINGS for name in setting.envs]), st.text(max_size=12), max_size=5
    ),
)
def test_any_flags_and_environment_give_a_config_or_a_config_error(
    flags: dict[str, object], environ: dict[str, str]
) -> None:
    try:
        loaded = load_config(flags, environ, lambda _: "")
    except ConfigError:
        return
    assert set(loaded.origins) == {setting.flag for setting in SETTINGS}
