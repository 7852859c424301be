"""Flag over environment over file over default, and what is told about what has no effect."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import (
    SETTINGS,
    Config,
    ConfigFile,
    DeviceDiscoveryStrategy,
    DeviceIdStrategy,
    DeviceListStrategy,
    LoadedConfig,
    MigStrategy,
    Origin,
    load_config,
)
from gpustow.config.effective import summary
from gpustow.config.filekeys import PATHS
from gpustow.config.settings import BY_FLAG
from gpustow.errors import ConfigError


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
    assert load(environ={"IMEX_CHANNEL_IDS": "0x0"}).config.imex_channel_ids == (0,)
    with pytest.raises(ConfigError, match=r"IMEX_CHANNEL_IDS: 'one' is not a number"):
        load(environ={"IMEX_CHANNEL_IDS": "one"})


@pytest.mark.parametrize(
    ("section", "ids"), [("{}", ()), ("{channelIDs: null}", ()), ("{channelIDs: []}", ()), ("{channelIDs: [0]}", (0,))]
)
def test_no_imex_channel_or_channel_0_can_be_asked_for(section: str, ids: tuple[int, ...]) -> None:
    assert load(f"imex: {section}").config.imex_channel_ids == ids


@pytest.mark.parametrize("ids", ["[2]", "[0, 0]", "[0, 1]", "[-1]"])
def test_other_imex_channels_are_refused(ids: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(f"imex: {{channelIDs: {ids}}}")
    told = ids.replace(",", "")
    assert (
        f"invalid IMEX config: channelIDs must be [] or [0]; found {told}" in problems(error.value)["imex.channelIDs"]
    )


def test_list_flags_accumulate_and_split_at_commas() -> None:
    loaded = load(flags={"device-list-strategy": ["cdi-cri, envvar", "volume-mounts", "envvar"]})
    assert loaded.config.device_list_strategies == (
        DeviceListStrategy.CDI_CRI,
        DeviceListStrategy.ENVVAR,
        DeviceListStrategy.VOLUME_MOUNTS,
    )


def test_mps_with_its_root_acts_and_is_no_matter_for_a_warning() -> None:
    loaded = load("flags: {mpsRoot: /mps}\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}")
    assert loaded.warnings == ()


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
    assert "Give the path" in str(refusal.value)


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


@dataclass(frozen=True)
class Row:
    """One setting: something else than its default, as each place writes it, and as `Config` has it."""

    flag: str
    words: str
    node: str
    value: object


ROWS = (
    Row("mig-strategy", "mixed", "mixed", MigStrategy.MIXED),
    Row("fail-on-init-error", "false", "false", False),
    Row("driver-root", "/driver", "/driver", "/driver"),
    Row("dev-root", "/devices", "/devices", "/devices"),
    Row("pass-device-specs", "true", "yes", True),
    Row(
        "device-list-strategy",
        "envvar,cdi-cri",
        "[envvar, cdi-cri]",
        (DeviceListStrategy.ENVVAR, DeviceListStrategy.CDI_CRI),
    ),
    Row("device-id-strategy", "index", "index", DeviceIdStrategy.INDEX),
    Row("gdrcopy-enabled", "1", "on", True),
    Row("gds-enabled", "T", "true", True),
    Row("mofed-enabled", "true", "true", True),
    Row("cdi-annotation-prefix", "cdi.example/", "cdi.example/", "cdi.example/"),
    Row("nvidia-cdi-hook-path", "/hook", "/hook", "/hook"),
    Row("driver-root-ctr-path", "/host", "/host", "/host"),
    Row("mps-root", "/mps", "/mps", "/mps"),
    Row("shared-devices-allocation-policy", "packed", "packed", "packed"),
    Row("device-discovery-strategy", "tegra", "tegra", DeviceDiscoveryStrategy.TEGRA),
    Row("imex-channel-ids", "0x0", "[0]", (0,)),
    Row("imex-required", "true", "true", True),
    Row("kubelet-socket", "/k/kubelet.sock", "", "/k/kubelet.sock"),
    Row("config-file", "config.yaml", "", "config.yaml"),
    Row("cdi-feature-flags", "a, b", "", ("a", "b")),
    Row("cdi-disable-hooks", "all", "", ("all",)),
    Row("cdi-directory", "/etc/cdi", "/etc/cdi", "/etc/cdi"),
    Row("metrics-address", ":9402", "':9402'", ":9402"),
    Row("strict-config", "true", "", True),
    Row("select-gpus", "0,GPU-1", "[0, GPU-1]", ("0", "GPU-1")),
    Row("exclude-gpus", "*T4", "'*T4'", ("*T4",)),
)


def nested(key: str, node: str) -> str:
    """A file that gives this key alone."""
    *sections, last = key.split(".")
    return "".join(f"{section}: {{" for section in sections) + f"{last}: {node}" + "}" * len(sections)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.flag)
def test_every_setting_is_read_from_each_place_where_it_can_stand(row: Row) -> None:
    setting = BY_FLAG[row.flag]
    places: list[tuple[LoadedConfig, Origin]] = [
        *((load(flags={name: row.words}), Origin.FLAG) for name in setting.names),
        *((load(environ={variable: row.words}), Origin.ENVIRONMENT) for variable in setting.envs),
    ]
    if setting.key:
        places += [(load(nested(setting.key, row.node)), Origin.FILE)]
    assert bool(setting.key) is bool(row.node)
    for loaded, origin in places:
        assert getattr(loaded.config, setting.attribute) == row.value
        assert loaded.origins[row.flag] is origin


@pytest.mark.parametrize("flag", [setting.flag for setting in SETTINGS if len(setting.envs) > 1])
def test_of_several_environment_variables_the_first_wins_even_when_it_is_empty(flag: str) -> None:
    setting = BY_FLAG[flag]
    first, second = setting.envs
    assert getattr(load(environ={second: "/b", first: ""}).config, setting.attribute) == ""
    assert getattr(load(environ={second: "/b"}).config, setting.attribute) == "/b"


def test_the_table_of_rows_has_every_setting() -> None:
    assert {row.flag for row in ROWS} == {setting.flag for setting in SETTINGS}


def test_the_defaults_of_the_table_are_those_of_the_config() -> None:
    assert load().config == Config()


def test_the_dev_root_is_the_driver_root_where_nothing_else_is_said() -> None:
    assert load(flags={"driver-root": "/run/nvidia"}).config.dev_root == "/run/nvidia"
    assert load("flags: {nvidiaDevRoot: ''}", {"driver-root": "/run/nvidia"}).config.dev_root == "/run/nvidia"


@pytest.mark.parametrize(
    ("file", "path", "message"),
    [
        ("flags: {migStrategy: all-balanced}", "flags.migStrategy", "unknown MIG strategy: all-balanced"),
        ("flags: {migStrategy: ''}", "flags.migStrategy", "unknown MIG strategy: "),
        ("flags: {migStrategy: 1}", "flags.migStrategy", "unknown MIG strategy: 1"),
        ("flags: {plugin: {deviceIDStrategy: pci}}", "flags.plugin.deviceIDStrategy", "invalid --device-id-strategy"),
        ("flags: {plugin: {deviceListStrategy: [cdi]}}", "flags.plugin.deviceListStrategy", "invalid strategy: cdi"),
        ("flags: {plugin: {deviceListStrategy: []}}", "flags.plugin.deviceListStrategy", "invalid strategy: there is"),
        (
            "flags: {plugin: {sharedDevicesAllocationPolicy: tight}}",
            "flags.plugin.sharedDevicesAllocationPolicy",
            "invalid --shared-devices-allocation-policy option: tight",
        ),
        (
            "flags: {deviceDiscoveryStrategy: vfio}",
            "flags.deviceDiscoveryStrategy",
            "invalid --device-discovery-strategy option: vfio",
        ),
        (
            "imex: {channelIDs: [0, 1]}",
            "imex.channelIDs",
            "invalid IMEX config: channelIDs must be [] or [0]; found [0 1]",
        ),
        ("imex: {channelIDs: [2]}", "imex.channelIDs", "invalid IMEX config: channelIDs must be [] or [0]; found [2]"),
        ("imex: {channelIDs: [0, 0]}", "imex.channelIDs", "invalid IMEX config"),
        ("imex: {channelIDs: [-1]}", "imex.channelIDs", "invalid IMEX config"),
    ],
)
def test_case_c08_a_value_of_the_file_that_cannot_be_is_refused_where_it_stands(
    file: str, path: str, message: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        load(file)
    assert str(refusal.value).startswith("configuration file config.yaml is refused")
    assert list(problems(refusal.value)) == [path]
    assert problems(refusal.value)[path].startswith(message)


@pytest.mark.parametrize(
    "text", ["imex: {}", "imex: {channelIDs: null}", "imex: {channelIDs: []}", "imex: {channelIDs: [0]}"]
)
def test_imex_channels_may_be_none_or_channel_0(text: str) -> None:
    assert load(text).config.imex_channel_ids in {(), (0,)}


def test_a_value_of_the_file_that_cannot_be_is_only_told_where_a_flag_takes_its_place() -> None:
    loaded = load("flags: {migStrategy: all-balanced}", {"mig-strategy": "mixed"})
    assert loaded.config.mig_strategy is MigStrategy.MIXED
    (warning,) = loaded.warnings
    assert warning.startswith("config.yaml: flags.migStrategy: unknown MIG strategy: all-balanced")
    assert warning.endswith("without effect, because of --mig-strategy")


def test_faults_of_file_and_flags_are_told_at_once_with_all_their_sources() -> None:
    with pytest.raises(ConfigError, match="from flags, environment and file config") as refusal:
        load("flags: {migStrategy: x}", {"device-id-strategy": "y"})
    assert set(problems(refusal.value)) == {"flags.migStrategy", "--device-id-strategy"}


MPS = "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}"


def test_case_c10_mps_and_the_mixed_strategy_are_refused() -> None:
    with pytest.raises(ConfigError, match="using --mig-strategy=mixed is not supported with MPS"):
        load(MPS, {"mig-strategy": "mixed", "mps-root": "/mps"})


def test_case_c11_mps_without_a_root_is_refused() -> None:
    with pytest.raises(ConfigError, match="using MPS requires --mps-root to be specified"):
        load(MPS)
    assert load(MPS, environ={"MPS_ROOT": "/run/nvidia/mps"}).config.mps is not None


def test_case_c34_selecting_and_excluding_together_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"gpus.exclude: it cannot be used together with --select-gpus"):
        load("gpus: {exclude: [1]}", {"select-gpus": "0"})


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("0,GPU-1", ("0", "GPU-1")),
        (" 0 , ", ("0",)),
        ("all", ()),
        ("none", ()),
        ("void", ()),
        ("", ()),
        ("/var/run/nvidia-container-devices", ()),
    ],
)
def test_what_our_own_container_was_given_by_name_is_known(text: str, devices: tuple[str, ...]) -> None:
    assert load(environ={"NVIDIA_VISIBLE_DEVICES": text}).config.visible_devices == devices


def test_names_sharing_and_placement_come_from_the_file() -> None:
    config = load(
        "resources: {gpus: [{pattern: '*', name: a}], mig: [{pattern: '1g.*', name: b}]}\n"
        "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}\n"
        "placement: {resources: [{name: gpu, policy: packed}]}"
    ).config
    assert [pattern.name for pattern in (*config.gpu_patterns, *config.mig_patterns)] == [
        "nvidia.com/a",
        "nvidia.com/b",
    ]
    assert config.time_slicing is not None
    assert [entry.name for entry in config.placement] == ["nvidia.com/gpu"]


def test_the_file_is_known_by_path_and_hash() -> None:
    assert load().file is None
    assert load("version: v1").file == ConfigFile("config.yaml", hashlib.sha256(b"version: v1").hexdigest())


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


KEYS = st.sampled_from(sorted({part.removesuffix("[]") for path in PATHS for part in path.split(".")}))
LEAVES = (
    st.none() | st.booleans() | st.integers(-2, 70) | st.floats() | st.text(max_size=8) | st.sampled_from(["v1", "gpu"])
)
TREES = st.recursive(
    LEAVES,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS | st.text(max_size=6), below, max_size=4),
    max_leaves=12,
)


@given(TREES)
def test_any_file_gives_a_config_that_can_be_shown_or_a_config_error(tree: object) -> None:
    text = yaml.safe_dump({"version": "v1", **tree} if isinstance(tree, dict) else tree)
    try:
        loaded = load(text)
    except ConfigError as error:
        assert error.problems
    else:
        assert summary(loaded)
