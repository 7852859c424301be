"""Names of resources by the operator's patterns."""

import pytest

from gpustow.config import Config, MigStrategy, ResourcePattern
from gpustow.errors import HardwareError
from gpustow.hardware.mig import MigProfile
from gpustow.hardware.node import Platform
from gpustow.hardware.nodemodel import parse_node_model
from gpustow.resources import build_catalog
from gpustow.resources.naming import Naming
from tests.hardware.profiletable import BOARDS
from tests.resources.machines import gpu, machine, mig_device, node

NONE, SINGLE, MIXED = MigStrategy.NONE, MigStrategy.SINGLE, MigStrategy.MIXED
PART = MigProfile(2, 1, 10, 9856)


def names(config: Config, *gpus: object, platform: Platform = Platform.NVML) -> dict[str, int]:
    found = build_catalog(node(*gpus, platform=platform), config)  # type: ignore[arg-type]
    return {resource.name: len(resource.devices) for resource in found.resources}


def test_gpus_are_named_by_the_first_pattern_that_matches_their_model() -> None:
    config = Config(
        gpu_patterns=(ResourcePattern("*T4", "nvidia.com/t4"), ResourcePattern("Tesla*", "nvidia.com/tesla"))
    )
    models = ("Tesla T4", "Tesla V100", "NVIDIA A30", "Tesla T4")
    assert names(config, *(gpu(index, model=model) for index, model in enumerate(models))) == {
        "nvidia.com/t4": 2,
        "nvidia.com/tesla": 1,
        "nvidia.com/gpu": 1,
    }


@pytest.mark.parametrize("platform", [Platform.WSL, Platform.TEGRA])
def test_where_all_gpus_are_passed_on_as_one_the_first_gives_the_name(platform: Platform) -> None:
    config = Config(gpu_patterns=(ResourcePattern("*T4", "nvidia.com/t4"),))
    assert names(config, gpu(0), gpu(1, model="x"), platform=platform) == {"nvidia.com/t4": 1}


@pytest.mark.parametrize("strategy", [SINGLE, MIXED])
def test_mig_devices_are_named_by_the_patterns_for_profiles(strategy: MigStrategy) -> None:
    config = Config(mig_strategy=strategy, mig_patterns=(ResourcePattern("1g.*", "nvidia.com/small"),))
    found = build_catalog(machine("a30-mig"), config)
    assert [(resource.name, len(resource.devices)) for resource in found.resources] == [("nvidia.com/small", 8)]


def test_a_part_of_an_instance_is_offered_where_a_pattern_names_it_and_under_single() -> None:
    cut = gpu(0, mig=(mig_device(0, 0, PART), mig_device(0, 1, PART)))
    named = Config(mig_strategy=MIXED, mig_patterns=(ResourcePattern("1c.2g.10gb", "nvidia.com/half"),))
    assert names(named, cut) == {"nvidia.com/half": 2}
    assert names(Config(mig_strategy=SINGLE), cut) == {"nvidia.com/gpu": 2}
    assert names(Config(mig_strategy=MIXED), cut) == {}


@pytest.mark.parametrize(
    ("profile", "name"),
    [
        (MigProfile(1, 1, 10, 9728), "mig-1g.10gb"),
        (MigProfile(1, 1, 10, 9728, "+me"), "mig-1g.10gb.me"),
        (MigProfile(1, 1, 24, 24192, "+me.all"), "mig-1g.24gb.me.all"),
        (MigProfile(1, 1, 24, 24192, "+gfx"), "mig-1g.24gb.gfx"),
        (MigProfile(1, 1, 24, 24192, "-me"), "mig-1g.24gb-me"),
        (PART, None),
    ],
)
def test_a_profile_is_named_as_in_v0_20_0(profile: MigProfile, name: str | None) -> None:
    assert Naming(MIXED).of_mig(profile) == (name and f"nvidia.com/{name}")


@pytest.mark.parametrize("board", BOARDS)
def test_every_profile_of_every_board_is_a_resource_of_its_name(board: str) -> None:
    for name, *_ in BOARDS[board]:
        model = parse_node_model(f"name: n\ngpus: [{{model: '{board}', mig: {{devices: ['{name}']}}}}]\n", "n")
        for strategy, resource in ((MIXED, f"nvidia.com/mig-{name.replace('+', '.')}"), (SINGLE, "nvidia.com/gpu")):
            (found,) = build_catalog(model.node, Config(mig_strategy=strategy)).resources
            assert (found.name, len(found.devices)) == (resource, 1)
            assert 0 < found.devices[0].share <= 1


def test_a_profile_that_cannot_be_a_name_can_have_one_by_a_pattern() -> None:
    odd = MigProfile(1, 1, 10, 9728, "+ME")
    with pytest.raises(HardwareError, match=r"resources\.mig"):
        Naming(MIXED).of_mig(odd)
    assert Naming(MIXED, mig_patterns=(ResourcePattern("*", "nvidia.com/x"),)).of_mig(odd) == "nvidia.com/x"
