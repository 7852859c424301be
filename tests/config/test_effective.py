"""The configuration in force, for people to read."""

from gpustow.config import Origin, load_config
from gpustow.config.effective import effective, summary, written

FILE = """
flags: {plugin: {deviceIDStrategy: index}}
resources: {gpus: [{pattern: '*A100*', name: a100}], mig: [{pattern: 1g.*, name: small}]}
sharing:
  mps:
    renameByDefault: true
    resources: [{name: a100, devices: [0, 2], replicas: 4}, {name: gpu, rename: other, replicas: 2}]
placement:
  resources: [{name: other, policy: packed, cap: 2, together: required}]
gpus: {exclude: [7]}
"""


def test_a_file_is_shown_with_all_that_stands_in_it() -> None:
    loaded = load_config(
        {"config-file": "c.yaml", "mps-root": "/mps"}, {"NVIDIA_VISIBLE_DEVICES": "0,1"}, lambda _: FILE
    )
    told = {each.name: each for each in effective(loaded)}
    assert told["flags.plugin.deviceIDStrategy"].value == "index"
    assert told["flags.plugin.deviceIDStrategy"].origin is Origin.FILE
    assert told["gpus.exclude"].value == ["7"]
    assert told["--kubelet-socket"].origin is Origin.DEFAULT
    assert told["resources.gpus"].value == [{"pattern": "*A100*", "name": "nvidia.com/a100"}]
    assert told["resources.mig"].value == [{"pattern": "1g.*", "name": "nvidia.com/small"}]
    assert told["sharing.mps"].value == {
        "renameByDefault": True,
        "failRequestsGreaterThanOne": True,
        "resources": [
            {"name": "nvidia.com/a100", "rename": "nvidia.com/a100.shared", "devices": ["0", "2"], "replicas": 4},
            {"name": "nvidia.com/gpu", "rename": "nvidia.com/other", "devices": "all", "replicas": 2},
        ],
    }
    assert told["placement.resources"].value == [
        {"name": "nvidia.com/other", "policy": "packed", "cap": 2, "together": "required"}
    ]
    assert told["NVIDIA_VISIBLE_DEVICES"].value == ["0", "1"]
    assert "sharing.timeSlicing" not in told


def test_case_c12_the_summary_says_which_file_is_in_force_and_what_was_given() -> None:
    loaded = load_config({"config-file": "c.yaml"}, {"MIG_STRATEGY": "mixed"}, lambda _: "flags: {gdsEnabled: true}")
    first, *given = summary(loaded)
    assert loaded.file is not None
    assert first == f"config file: c.yaml (sha256 {loaded.file.sha256[:12]})"
    assert given == [
        "--config-file = c.yaml (flag)",
        "flags.migStrategy = mixed (environment)",
        "flags.gdsEnabled = true (file)",
    ]


def test_case_c12_the_summary_says_that_there_is_no_file() -> None:
    assert summary(load_config({}, {})) == ("config file: none (flags and environment only)",)


def test_plain_data_is_written_on_one_line() -> None:
    assert written({"a": [1, True, ""], "b": {"c": "d"}}) == '{a: [1, true, ""], b: {c: d}}'
