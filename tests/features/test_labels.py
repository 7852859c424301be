"""The cases of gpu-feature-discovery v0.20.0's own tests, with its mock devices, and where we differ from it."""

from dataclasses import replace

import pytest

from gpustow.config import Config, MigStrategy, ReplicatedResource, ReplicatedResources
from gpustow.config.patterns import ResourcePattern
from gpustow.features import Labels, node_labels
from gpustow.hardware.mig import MigDevice, MigEngines, MigProfile
from gpustow.hardware.node import FabricIdentity, Gpu, Platform
from tests.resources.machines import gpu, machine, node

MIB = 1 << 20
BASE = {"compute.major": "8", "compute.minor": "0", "family": "ampere", "memory": "300"}
PLAIN = {"count": "1", "replicas": "1", "sharing-strategy": "none", "product": "MOCKMODEL"}
SHARED = {"count": "1", "replicas": "2", "sharing-strategy": "time-slicing", "product": "MOCKMODEL-SHARED"}
CUT = {"count": "1", "replicas": "0", "sharing-strategy": "none", "product": "MOCKMODEL", "memory": "300"}
INVALID = {
    "product": "MOCKMODEL-MIG-INVALID",
    "count": "0",
    "replicas": "0",
    "sharing-strategy": "",
    "memory": "0",
}
NO_ENGINES = {f"engines.{engine}": "0" for engine in ("copy", "decoder", "encoder", "jpeg", "ofa")}


def full(index: int = 0) -> Gpu:
    return gpu(index, model="MOCKMODEL", memory_bytes=300 * MIB, compute_capability=(8, 0))


def cut(index: int, *parts: MigDevice) -> Gpu:
    return gpu(index, model="MOCKMODEL", memory_bytes=300 * MIB, compute_capability=(0, 0), mig=parts)


def part(slices: int, compute: int, gigabytes: int, index: int = 0, engines: MigEngines | None = None) -> MigDevice:
    profile = MigProfile(slices, compute, gigabytes, gigabytes, multiprocessors=0)
    return MigDevice(index, f"MIG-{index}", profile, index, 0, 0, (), engines=engines or MigEngines())


def sliced(
    *,
    name: str = "nvidia.com/gpu",
    replicas: int = 2,
    rename: str | None = None,
    strategy: MigStrategy = MigStrategy.NONE,
) -> Config:
    entries = (ReplicatedResource(name, replicas, rename),)
    return Config(mig_strategy=strategy, time_slicing=ReplicatedResources(entries))


def mps(*, replicas: int = 2, rename: str | None = None) -> Config:
    return Config(mps=ReplicatedResources((ReplicatedResource("nvidia.com/gpu", replicas, rename),)))


def of_gpus(found: Labels, prefix: str = "nvidia.com/gpu.") -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in found.labels.items() if key.startswith(prefix)}


def strategy(name: MigStrategy) -> Config:
    return Config(mig_strategy=name)


@pytest.mark.parametrize("mig_strategy", MigStrategy)
def test_a_node_without_gpus_has_no_labels(mig_strategy: MigStrategy) -> None:
    assert node_labels(node(), strategy(mig_strategy)) == Labels({})


@pytest.mark.parametrize(
    ("gpus", "config", "expected"),
    [
        ((full(),), Config(), BASE | PLAIN),
        ((full(),), sliced(), BASE | SHARED),
        ((full(), full(1)), sliced(), BASE | SHARED | {"count": "2"}),
        ((cut(0),), sliced(), CUT),
        ((cut(0), cut(1)), sliced(), CUT | {"count": "2"}),
        ((cut(0), full(1)), sliced(), BASE | SHARED | {"count": "2"}),
        ((full(),), sliced(name="nvidia.com/not-gpu"), BASE | PLAIN),
        ((full(),), sliced(rename="nvidia.com/gpu.shared"), BASE | SHARED | {"product": "MOCKMODEL"}),
        ((full(),), mps(), BASE | SHARED | {"sharing-strategy": "mps"}),
        ((full(),), mps(rename="nvidia.com/x"), BASE | SHARED | {"sharing-strategy": "mps", "product": "MOCKMODEL"}),
    ],
)
def test_whole_gpus_are_labelled_as_in_v0_20_0(gpus: tuple[Gpu, ...], config: Config, expected: dict[str, str]) -> None:
    found = node_labels(node(*gpus), config)
    assert of_gpus(found) == expected
    assert "nvidia.com/mig.strategy" not in found.labels


def test_under_single_gpus_without_mig_are_whole_gpus() -> None:
    found = node_labels(node(full(), full(1)), strategy(MigStrategy.SINGLE))
    assert of_gpus(found) == BASE | PLAIN | {"count": "2"}
    assert found.labels["nvidia.com/mig.strategy"] == "single"


def test_under_single_mig_devices_are_the_gpus() -> None:
    found = node_labels(node(cut(0, part(1, 2, 100))), strategy(MigStrategy.SINGLE))
    slices = {"slices.gi": "1", "slices.ci": "2", "multiprocessors": "0"}
    product = {"product": "MOCKMODEL-MIG-2c.1g.100gb", "memory": "100"}
    assert of_gpus(found) == PLAIN | product | slices | NO_ENGINES


def test_the_attributes_of_mig_devices_are_told() -> None:
    engines = MigEngines(copy=13, decoder=14, encoder=15, jpeg=16, ofa=17)
    gpus = [cut(index, part(1, 1, 100, engines=engines)) for index in range(2)]
    found = of_gpus(node_labels(node(*gpus), strategy(MigStrategy.SINGLE)))
    assert found["count"] == "2"
    assert [found[f"engines.{key}"] for key in ("copy", "decoder", "encoder", "jpeg", "ofa")] == [
        "13",
        "14",
        "15",
        "16",
        "17",
    ]


def test_engines_that_are_not_known_have_no_labels() -> None:
    unknown = replace(part(1, 1, 100), engines=None)
    found = of_gpus(node_labels(node(cut(0, unknown)), strategy(MigStrategy.SINGLE)))
    assert not [key for key in found if key.startswith("engines")]


@pytest.mark.parametrize(
    ("gpus", "more", "why"),
    [
        ((cut(0),), {}, "has no MIG devices"),
        ((cut(0, part(1, 1, 100), part(3, 3, 100, 1)),), {}, "different profiles (1g.100gb, 3g.100gb)"),
        (
            (cut(0, part(1, 1, 100)), full(1)),
            {"compute.major": "8", "compute.minor": "0", "family": "ampere"},
            "others are not",
        ),
        (
            (cut(0, part(1, 1, 100)), full(1), cut(2)),
            {"compute.major": "8", "compute.minor": "0", "family": "ampere"},
            "has no MIG devices",
        ),
    ],
)
def test_under_single_a_node_that_does_not_go_with_it_is_invalid(
    gpus: tuple[Gpu, ...], more: dict[str, str], why: str
) -> None:
    found = node_labels(node(*gpus), strategy(MigStrategy.SINGLE))
    assert of_gpus(found) == INVALID | more
    assert found.labels["nvidia.com/mig.strategy"] == "single"
    assert any(why in note for note in found.notes)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (strategy(MigStrategy.SINGLE), {"replicas": "1", "product": "MOCKMODEL-MIG-1g.300gb"}),
        (sliced(strategy=MigStrategy.SINGLE), {"replicas": "2", "product": "MOCKMODEL-MIG-1g.300gb-SHARED"}),
        (
            sliced(strategy=MigStrategy.SINGLE, rename="nvidia.com/gpu.shared"),
            {"replicas": "2", "product": "MOCKMODEL-MIG-1g.300gb"},
        ),
    ],
)
def test_shared_mig_devices_under_single(config: Config, expected: dict[str, str]) -> None:
    found = of_gpus(node_labels(node(cut(0, part(1, 1, 300))), config))
    assert {key: found[key] for key in expected} == expected


def test_under_mixed_each_profile_has_its_own_labels() -> None:
    gpus = (cut(0, part(3, 3, 20), part(1, 1, 5, 1), part(1, 1, 5, 2)), cut(1), full(2))
    config = sliced(name="nvidia.com/mig-1g.5gb", strategy=MigStrategy.MIXED)
    found = node_labels(node(*gpus), config)
    assert of_gpus(found) == BASE | PLAIN | {"count": "3"}
    small = of_gpus(found, "nvidia.com/mig-1g.5gb.")
    assert (small["product"], small["count"]) == ("MOCKMODEL-MIG-1g.5gb-SHARED", "2")
    assert (small["replicas"], small["sharing-strategy"]) == ("2", "time-slicing")
    big = of_gpus(found, "nvidia.com/mig-3g.20gb.")
    assert (big["product"], big["count"], big["replicas"]) == ("MOCKMODEL-MIG-3g.20gb", "1", "1")


def test_the_plus_of_a_profile_is_a_point_in_its_labels() -> None:
    media = replace(part(1, 1, 10), profile=MigProfile(1, 1, 10, 9728, "+me"))
    found = node_labels(node(cut(0, media)), strategy(MigStrategy.MIXED))
    assert found.labels["nvidia.com/mig-1g.10gb.me.product"] == "MOCKMODEL-MIG-1g.10gb.me"


def test_a_part_of_an_instance_has_labels_though_it_has_no_resource() -> None:
    found = node_labels(node(cut(0, part(2, 1, 10))), strategy(MigStrategy.MIXED))
    assert found.labels["nvidia.com/mig-1c.2g.10gb.replicas"] == "1"


@pytest.mark.parametrize(("gpus", "capable"), [((full(),), "false"), ((full(), cut(1)), "true")])
def test_a_node_is_mig_capable_if_any_gpu_is(gpus: tuple[Gpu, ...], capable: str) -> None:
    assert node_labels(node(*gpus), Config()).labels["nvidia.com/mig.capable"] == capable


@pytest.mark.parametrize(("config", "capable"), [(Config(), "false"), (sliced(), "false"), (mps(), "true")])
def test_mps_is_what_the_configuration_asks_for(config: Config, capable: str) -> None:
    assert node_labels(node(full()), config).labels["nvidia.com/mps.capable"] == capable


def test_mps_on_a_node_with_mig_costs_that_label_only() -> None:
    found = node_labels(node(full(), cut(1)), mps())
    assert found.labels["nvidia.com/mps.capable"] == "false"
    assert found.labels["nvidia.com/gpu.count"] == "2"
    assert any("MPS is not supported for MIG" in note for note in found.notes)


@pytest.mark.parametrize(
    ("driver", "parts"),
    [
        ("400.300", ("400", "300", "")),
        ("550.90.07", ("550", "90", "07")),
    ],
)
def test_the_driver_version_is_told_whole_and_in_parts(driver: str, parts: tuple[str, str, str]) -> None:
    labels = node_labels(replace(node(full()), driver_version=driver, cuda_version="8.0"), Config()).labels
    assert tuple(labels[f"nvidia.com/cuda.driver.{key}"] for key in ("major", "minor", "rev")) == parts
    assert tuple(labels[f"nvidia.com/cuda.driver-version.{key}"] for key in ("major", "minor", "revision")) == parts
    assert labels["nvidia.com/cuda.driver-version.full"] == driver
    assert (labels["nvidia.com/cuda.runtime.major"], labels["nvidia.com/cuda.runtime.minor"]) == ("8", "0")
    assert labels["nvidia.com/cuda.runtime-version.full"] == "8.0"


def test_versions_that_are_not_known_have_labels_on_a_tegra_board_alone() -> None:
    silent = replace(node(full()), driver_version="", cuda_version="")
    assert not [key for key in node_labels(silent, Config()).labels if ".cuda." in f".{key.partition('/')[2]}"]
    labels = node_labels(replace(silent, platform=Platform.TEGRA), Config()).labels
    assert labels["nvidia.com/cuda.driver-version.full"] == "unknown.unknown.unknown"
    assert labels["nvidia.com/cuda.driver.major"] == "unknown"
    assert labels["nvidia.com/cuda.runtime-version.full"] == "0.0"


@pytest.mark.parametrize("driver", ["550", "1.2.3.4"])
def test_a_driver_version_of_another_form_is_told_and_costs_its_parts(driver: str) -> None:
    found = node_labels(replace(node(full()), driver_version=driver), Config())
    assert "nvidia.com/cuda.driver.major" not in found.labels
    assert found.labels["nvidia.com/cuda.driver-version.full"] == driver
    assert any("does not match" in note for note in found.notes)


def test_a_cuda_version_without_a_minor_number_is_told_as_it_is() -> None:
    labels = node_labels(replace(node(full()), cuda_version="13"), Config()).labels
    assert (labels["nvidia.com/cuda.runtime.major"], labels["nvidia.com/cuda.runtime.minor"]) == ("13", "")


def test_the_clique_is_that_of_all_gpus_with_a_fabric() -> None:
    fabric = FabricIdentity("11111111-2222-3333-4444-555555555555", 7)
    in_one = node(replace(full(), fabric=fabric), replace(full(1), fabric=fabric), full(2))
    labels = node_labels(in_one, Config()).labels
    assert labels["nvidia.com/gpu.clique"] == "11111111-2222-3333-4444-555555555555.7"


def test_gpus_of_different_cliques_have_no_label_for_it() -> None:
    fabrics = [FabricIdentity("11111111-2222-3333-4444-555555555555", clique) for clique in range(2)]
    found = node_labels(node(*(replace(full(at), fabric=fabric) for at, fabric in enumerate(fabrics))), Config())
    assert "nvidia.com/gpu.clique" not in found.labels
    assert any("different NVLink fabrics" in note for note in found.notes)


def test_of_several_models_the_most_frequent_whole_one_is_told() -> None:
    others = [replace(full(index), model="OTHER") for index in (1, 2)]
    found = node_labels(node(full(), *others, cut(3), cut(4)), Config())
    assert (found.labels["nvidia.com/gpu.product"], found.labels["nvidia.com/gpu.count"]) == ("MOCKMODEL", "3")
    assert any("different models (MOCKMODEL, OTHER)" in note for note in found.notes)


def test_whole_gpus_are_told_before_gpus_in_mig_mode() -> None:
    others = [replace(cut(index), model="OTHER") for index in (1, 2)]
    assert node_labels(node(full(), *others), Config()).labels["nvidia.com/gpu.product"] == "MOCKMODEL"


def test_gpus_that_are_not_ours_have_no_labels() -> None:
    found = node_labels(node(full(), full(1)), Config(exclude_gpus=("0",)))
    assert found.labels["nvidia.com/gpu.count"] == "1"


def test_the_sharing_of_a_renamed_model_is_found_by_its_name() -> None:
    config = replace(sliced(name="nvidia.com/mock"), gpu_patterns=(ResourcePattern("MOCK*", "nvidia.com/mock"),))
    assert of_gpus(node_labels(node(full()), config)) == BASE | SHARED


def test_of_several_numbers_of_replicas_the_largest_is_told() -> None:
    entries = (
        ReplicatedResource("nvidia.com/gpu", 4, devices=("0",)),
        ReplicatedResource("nvidia.com/gpu", 3, devices=("1",)),
    )
    found = node_labels(node(full(), full(1)), Config(time_slicing=ReplicatedResources(entries)))
    assert found.labels["nvidia.com/gpu.replicas"] == "4"


def test_an_entry_for_the_whole_resource_goes_before_others() -> None:
    entries = (
        ReplicatedResource("nvidia.com/gpu", 9, devices=("0",)),
        ReplicatedResource("nvidia.com/gpu", 3),
    )
    found = node_labels(node(full(), full(1)), Config(time_slicing=ReplicatedResources(entries)))
    assert found.labels["nvidia.com/gpu.replicas"] == "3"


def test_a_label_that_kubernetes_does_not_take_is_told() -> None:
    found = node_labels(node(replace(full(), model="X" * 70)), Config())
    assert any("does not take the label nvidia.com/gpu.product" in note for note in found.notes)


def test_memory_that_is_not_known_has_no_label() -> None:
    found = node_labels(node(replace(full(), memory_bytes=None, compute_capability=None)), Config())
    assert of_gpus(found) == PLAIN


@pytest.mark.parametrize("name", ["a100-4-mig-5", "hgx-h100-mig", "a30-mig", "wsl", "jetson-orin", "gb200-tray"])
@pytest.mark.parametrize("mig_strategy", MigStrategy)
def test_the_labels_of_shipped_node_models_are_ones_that_kubernetes_takes(name: str, mig_strategy: MigStrategy) -> None:
    found = node_labels(machine(name), strategy(mig_strategy))
    assert found.labels["nvidia.com/gpu.product"]
    assert not [note for note in found.notes if "does not take" in note]
