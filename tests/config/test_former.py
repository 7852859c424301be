"""The names that the allocation policy had while it was proposed: taken, with a notice."""

import pytest

from gpustow.config import LoadedConfig, Origin, load_config
from gpustow.errors import ConfigError

FLAG, ENV, FILE = "shared-devices-allocation-policy", "SHARED_DEVICES_ALLOCATION_POLICY", "file.yaml"


def load(flags: dict[str, object], env: dict[str, str] | None = None, plugin: str = "") -> LoadedConfig:
    text = f"version: v1\nflags:\n  plugin: {{{plugin}}}\n"
    return load_config({**flags, "config-file": FILE}, env or {}, lambda _path: text)


@pytest.mark.parametrize(
    ("loaded", "notice"),
    [
        (load({"allocation-policy": "packed"}), f"--allocation-policy is read as --{FLAG}; write it so"),
        (load({}, {"ALLOCATION_POLICY": "packed"}), f"ALLOCATION_POLICY is read as {ENV}; write it so"),
        (
            load({}, plugin="allocationPolicy: packed"),
            f"{FILE}: flags.plugin.allocationPolicy: it is read as 'sharedDevicesAllocationPolicy'; write it so",
        ),
    ],
)
def test_a_former_name_is_taken_with_a_notice(loaded: LoadedConfig, notice: str) -> None:
    assert loaded.config.shared_devices_allocation_policy == "packed"
    assert loaded.warnings == (notice,)


def test_the_name_that_holds_wins_over_the_former_one() -> None:
    loaded = load({FLAG: "spread", "allocation-policy": "packed"})
    assert loaded.config.shared_devices_allocation_policy == "spread"
    assert loaded.warnings == ()
    loaded = load({}, {ENV: "spread", "ALLOCATION_POLICY": "packed"})
    assert loaded.config.shared_devices_allocation_policy == "spread"
    loaded = load({}, plugin="allocationPolicy: packed, sharedDevicesAllocationPolicy: spread")
    assert loaded.config.shared_devices_allocation_policy == "spread"
    assert loaded.warnings == (
        f"{FILE}: flags.plugin.allocationPolicy: it is without effect, because of 'sharedDevicesAllocationPolicy'",
    )


def test_a_former_flag_wins_over_the_environment_as_the_flag_does() -> None:
    loaded = load({"allocation-policy": "packed"}, {ENV: "spread"})
    assert loaded.config.shared_devices_allocation_policy == "packed"
    assert loaded.origins[FLAG] is Origin.FLAG


def test_a_wrong_value_is_refused_by_the_name_that_was_used() -> None:
    with pytest.raises(ConfigError, match="--allocation-policy: invalid --shared-devices-allocation-policy option: x"):
        load({"allocation-policy": "x"})
