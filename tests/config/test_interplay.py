from dataclasses import replace
from itertools import combinations

import pytest

from gpustow.config import Config, DeviceListStrategy, load_config
from gpustow.config.interplay import interplay

ENVVAR, MOUNTS, ANNOTATIONS, CRI = DeviceListStrategy
NOTHING: tuple[str, ...] = ()


def config(*strategies: DeviceListStrategy) -> Config:
    return Config(device_list_strategies=strategies)


@pytest.mark.parametrize("strategy", DeviceListStrategy)
def test_one_strategy_alone_is_no_matter(strategy: DeviceListStrategy) -> None:
    assert interplay(config(strategy)) == NOTHING


def test_two_ways_to_ask_for_cdi_are_told_with_what_comes_of_it() -> None:
    [warning] = interplay(config(CRI, ANNOTATIONS))
    assert "containerd 1.7 run the hooks of CDI twice" in warning


def test_two_lists_for_one_runtime_are_told() -> None:
    [warning] = interplay(config(MOUNTS, ENVVAR))
    assert "keep the one that the runtime is set up for" in warning


def test_every_other_pair_is_no_matter() -> None:
    told = [{ANNOTATIONS, CRI}, {ENVVAR, MOUNTS}]
    for pair in combinations(DeviceListStrategy, 2):
        assert bool(interplay(config(*pair))) == (set(pair) in told)


def test_device_specs_have_no_effect_with_cdi_alone() -> None:
    asked = replace(config(CRI), pass_device_specs=True)
    assert "passDeviceSpecs has no effect" in interplay(asked)[0]
    assert interplay(replace(asked, device_list_strategies=(CRI, ENVVAR))) == NOTHING


@pytest.mark.parametrize("prefix", ["custom.cdi.k8s.io/", "", "cdi.k8s.io"])
def test_a_prefix_that_runtimes_do_not_read_is_told_where_it_is_used(prefix: str) -> None:
    [warning] = interplay(replace(config(ANNOTATIONS), cdi_annotation_prefix=prefix))
    assert f"so that {prefix or 'an empty one'} is for NVIDIA's container runtime" in warning
    assert interplay(replace(config(CRI), cdi_annotation_prefix=prefix)) == NOTHING


def test_required_channels_need_channels() -> None:
    assert interplay(Config(imex_required=True)) == ("imex.required has no effect without imex.channelIDs",)
    assert interplay(Config(imex_required=True, imex_channel_ids=(0,))) == NOTHING


def test_the_operator_is_told_when_the_configuration_is_loaded() -> None:
    loaded = load_config({"device-list-strategy": "cdi-cri,cdi-annotations"}, {})
    assert loaded.warnings == interplay(config(CRI, ANNOTATIONS))
