"""Hardware and configuration in, resources and devices out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import Config, DeviceListStrategy, MigStrategy, ReplicatedResource, ReplicatedResources
from gpustow.errors import HardwareError
from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.node import Node, Platform
from gpustow.hardware.nodemodel import load_node_model, shipped_models
from gpustow.hardware.simulated import SimulatedReader
from gpustow.resources import Catalog, Resource, Sharing, build_catalog

NONE, SINGLE, MIXED = MigStrategy.NONE, MigStrategy.SINGLE, MigStrategy.MIXED


@cache
def node(name: str = "a100-4-mig-5") -> Node:
    return SimulatedReader(load_node_model(name)).read()


def with_gpus(base: Node, **changes: dict[str, object]) -> Node:
    """The node with attributes of some GPUs changed: `g0={...}`."""
    gpus = tuple(replace(gpu, **changes.get(f"g{gpu.index}", {})) for gpu in base.gpus)  # type: ignore[arg-type]
    return replace(base, gpus=gpus)


def time_slicing(*entries: ReplicatedResource, limited: bool | None = None) -> ReplicatedResources:
    return ReplicatedResources(resources=entries, fail_requests_greater_than_one=limited)


def counts(catalog: Catalog) -> dict[str, int]:
    return {resource.name: len(resource.devices) for resource in catalog.resources}


@pytest.mark.parametrize(
    ("model", "strategy", "expected"),
    [
        ("t4-4", NONE, {"nvidia.com/gpu": 4}),
        ("t4-4", SINGLE, {"nvidia.com/gpu": 4}),
        ("t4-4", MIXED, {"nvidia.com/gpu": 4}),
        ("hgx-h100", MIXED, {"nvidia.com/gpu": 8}),
        ("a100-4-mig-5", NONE, {"nvidia.com/gpu": 4}),
        ("a100-4-mig-5", SINGLE, {"nvidia.com/gpu": 20}),
        ("a100-4-mig-5", MIXED, {"nvidia.com/mig-1g.5gb": 20}),
    ],
)
def test_a_node_offers_what_the_mig_strategy_makes_of_it(
    model: str, strategy: MigStrategy, expected: dict[str, int]
) -> None:
    assert counts(build_catalog(node(model), Config(mig_strategy=strategy))) == expected


def test_a_gpu_is_a_device_by_its_uuid_and_index_and_is_its_whole_card() -> None:
    machine = node("t4-4")
    (resource,) = build_catalog(machine, Config()).resources
    assert resource.sharing is Sharing.NONE
    assert resource.whole_gpus
    for gpu, device in zip(machine.gpus, resource.devices, strict=True):
        assert (device.id, device.uuid, device.index) == (gpu.uuid, gpu.uuid, str(gpu.index))
        assert (device.gpu_index, device.numa_node, device.paths) == (gpu.index, gpu.numa_node, gpu.device_paths)
        assert device.share == 1
        assert device.mig is None
        assert device.replica is None


def test_a_mig_device_is_a_device_by_its_uuid_and_both_indices_and_its_slices_of_the_card() -> None:
    machine = node()
    (resource,) = build_catalog(machine, Config(mig_strategy=MIXED)).resources
    assert not resource.whole_gpus
    mig = machine.gpus[2].mig_devices[3]
    device = resource.by_id[mig.uuid]
    assert (device.index, device.gpu_index, device.mig) == ("2:3", 2, mig)
    assert device.share == Fraction(1, 8)
    assert device.edge == mig.start
    assert device.paths == mig.device_paths


def test_a_gpu_in_mig_mode_that_is_offered_as_whole_is_told() -> None:
    (warning,) = build_catalog(node(), Config()).warnings
    assert "GPU 0" in warning
    assert "offered as whole under MIG strategy none" in warning


def test_single_refuses_a_gpu_in_mig_mode_without_mig_devices_by_name() -> None:
    machine = with_gpus(node(), g1={"mig_devices": ()})
    with pytest.raises(HardwareError, match=f"GPU 1 .{machine.gpus[1].uuid}. is in MIG mode without MIG devices"):
        build_catalog(machine, Config(mig_strategy=SINGLE))


def test_mixed_only_tells_of_a_gpu_in_mig_mode_without_mig_devices() -> None:
    catalog = build_catalog(with_gpus(node(), g1={"mig_devices": ()}), Config(mig_strategy=MIXED))
    assert counts(catalog) == {"nvidia.com/mig-1g.5gb": 15}
    assert "GPU 1" in catalog.warnings[0]


def bigger(mig: MigDevice) -> MigDevice:
    profile = replace(mig.profile, gpu_slices=2, compute_slices=2, memory_gb=10, memory_mib=9856, memory_slices=2)
    return replace(mig, profile=profile)


def uneven() -> Node:
    machine = node()
    first, *rest = machine.gpus[0].mig_devices
    return with_gpus(machine, g0={"mig_devices": (bigger(first), *rest)})


def test_single_refuses_mig_devices_that_differ_and_shows_the_layouts() -> None:
    with pytest.raises(
        HardwareError, match=r"GPU 0: 4 x 1g\.5gb [+] 1 x 2g\.10gb; GPU 1, 2, 3: 5 x 1g\.5gb"
    ) as refusal:
        build_catalog(uneven(), Config(mig_strategy=SINGLE))
    assert "migStrategy to mixed" in str(refusal.value)


def test_mixed_gives_each_profile_its_resource_from_small_to_large() -> None:
    machine = with_gpus(uneven(), g3={"mig_enabled": False, "mig_devices": ()})
    catalog = build_catalog(machine, Config(mig_strategy=MIXED))
    assert list(counts(catalog).items()) == [
        ("nvidia.com/gpu", 1),
        ("nvidia.com/mig-1g.5gb", 14),
        ("nvidia.com/mig-2g.10gb", 1),
    ]


def test_single_refuses_plain_gpus_beside_mig_devices() -> None:
    machine = with_gpus(node(), g3={"mig_enabled": False, "mig_devices": ()})
    with pytest.raises(HardwareError, match=r"same migEnabled value, but GPU 3 .* is not in MIG mode, and GPU 0"):
        build_catalog(machine, Config(mig_strategy=SINGLE))


def test_resources_that_one_container_may_ask_for_together_are_told_with_the_way_out() -> None:
    machine = with_gpus(node(), g3={"mig_enabled": False, "mig_devices": ()})
    (warning,) = build_catalog(machine, Config(mig_strategy=MIXED)).warnings
    assert "nvidia.com/gpu, nvidia.com/mig-1g.5gb" in warning
    assert "volume-mounts" in warning
    both = Config(mig_strategy=MIXED, device_list_strategies=(DeviceListStrategy.CDI_CRI,))
    assert build_catalog(machine, both).warnings == ()


@pytest.mark.parametrize(
    ("attribute", "name"),
    [("+me", "mig-1g.5gb.me"), ("+me.all", "mig-1g.5gb.me.all"), ("+gfx", "mig-1g.5gb.gfx"), ("-me", "mig-1g.5gb-me")],
)
def test_an_attribute_of_a_profile_is_part_of_the_resource_name(attribute: str, name: str) -> None:
    machine = node()
    first, *rest = machine.gpus[0].mig_devices
    special = replace(first, profile=replace(first.profile, attribute=attribute))
    catalog = build_catalog(with_gpus(machine, g0={"mig_devices": (special, *rest)}), Config(mig_strategy=MIXED))
    assert counts(catalog)[f"nvidia.com/{name}"] == 1


def test_case_c19_a_media_profile_is_a_resource_beside_the_plain_one() -> None:
    plain, media, double = (
        MigProfile(1, 1, 10, 9728, memory_slices=1),
        MigProfile(1, 1, 10, 9728, attribute="+me", memory_slices=1),
        MigProfile(1, 1, 20, 19712, memory_slices=2),
    )
    cut = {
        f"g{gpu}": {
            "memory_bytes": 80 << 30,
            "mig_devices": tuple(
                MigDevice(at, f"MIG-{gpu}-{at}", profile, at + 7, 0, profile.memory_mib << 20, (), at)
                for at, profile in enumerate([double, media, *[plain] * 5])
            ),
        }
        for gpu in range(2)
    }
    machine = with_gpus(node(), **cut)
    catalog = build_catalog(replace(machine, gpus=machine.gpus[:2]), Config(mig_strategy=MIXED))
    assert counts(catalog) == {
        "nvidia.com/mig-1g.10gb": 10,
        "nvidia.com/mig-1g.10gb.me": 2,
        "nvidia.com/mig-1g.20gb": 2,
    }


def test_a_mig_device_that_is_part_of_an_instance_is_skipped_and_told_not_fatal() -> None:
    machine = node()
    first, *rest = machine.gpus[0].mig_devices
    part = replace(first, profile=replace(bigger(first).profile, compute_slices=1))
    catalog = build_catalog(with_gpus(machine, g0={"mig_devices": (part, *rest)}), Config(mig_strategy=MIXED))
    assert counts(catalog) == {"nvidia.com/mig-1g.5gb": 19}
    assert any(first.uuid in warning and "1c.2g.10gb" in warning for warning in catalog.warnings)


def test_a_profile_whose_name_no_resource_can_have_is_refused() -> None:
    machine = node()
    first, *rest = machine.gpus[0].mig_devices
    odd = replace(first, profile=replace(first.profile, attribute="+ME"))
    with pytest.raises(HardwareError, match="cannot be a resource"):
        build_catalog(with_gpus(machine, g0={"mig_devices": (odd, *rest)}), Config(mig_strategy=MIXED))


@pytest.mark.parametrize(("platform", "id_", "index"), [(Platform.WSL, "all", "all"), (Platform.TEGRA, "tegra", "0")])
def test_where_all_gpus_are_passed_on_as_one_there_is_one_device(platform: Platform, id_: str, index: str) -> None:
    (resource,) = build_catalog(replace(node("t4-4"), platform=platform), Config()).resources
    (device,) = resource.devices
    assert (device.id, device.index, device.numa_node) == (id_, index, None)
    assert device.paths == (("/dev/dxg",) if platform is Platform.WSL else ())


@pytest.mark.parametrize("platform", list(Platform))
def test_a_node_without_gpus_has_an_empty_catalog(platform: Platform) -> None:
    assert build_catalog(replace(node("t4-4"), gpus=(), platform=platform), Config()) == Catalog(())


def test_slices_that_the_driver_does_not_tell_follow_from_the_memory_or_the_name() -> None:
    machine = node()
    first, second, *rest = machine.gpus[0].mig_devices
    silent = replace(first, profile=replace(first.profile, memory_slices=None), start=None)
    nameless = replace(second, profile=replace(second.profile, memory_slices=None), memory_bytes=0)
    changed = with_gpus(machine, g0={"mig_devices": (silent, nameless, *rest)})
    (resource,) = build_catalog(changed, Config(mig_strategy=MIXED)).resources
    devices = resource.devices[:5]
    assert [device.share for device in devices] == [Fraction(1, 8)] * 5
    assert [device.edge for device in devices] == [0, 1, 2, 3, 4]


def test_time_slicing_replaces_each_device_by_its_replicas() -> None:
    sliced = time_slicing(ReplicatedResource(name="nvidia.com/gpu", replicas=3), limited=True)
    (resource,) = build_catalog(node("t4-4"), Config(time_slicing=sliced)).resources
    plain = build_catalog(node("t4-4"), Config()).resources[0].devices
    assert [device.id for device in resource.devices] == [f"{gpu.id}::{at}" for gpu in plain for at in range(3)]
    assert {device.share for device in resource.devices} == {Fraction(1, 3)}
    assert resource.sharing is Sharing.TIME_SLICING
    assert resource.requests_limited_to_one
    assert not resource.whole_gpus


def test_mig_devices_are_shared_by_the_name_of_their_resource() -> None:
    sliced = time_slicing(ReplicatedResource(name="nvidia.com/mig-1g.5gb", replicas=2))
    (resource,) = build_catalog(node(), Config(mig_strategy=MIXED, time_slicing=sliced)).resources
    assert len(resource.devices) == 40
    assert resource.devices[0].share == Fraction(1, 16)
    assert not resource.requests_limited_to_one


def test_a_renamed_resource_takes_the_place_of_its_own() -> None:
    entry = ReplicatedResource(name="nvidia.com/gpu", replicas=2, rename="nvidia.com/gpu.shared")
    catalog = build_catalog(node("t4-4"), Config(time_slicing=time_slicing(entry)))
    assert counts(catalog) == {"nvidia.com/gpu.shared": 8}


def test_resources_that_sharing_does_not_name_pass_through() -> None:
    machine = with_gpus(node(), g3={"mig_enabled": False, "mig_devices": ()})
    sliced = time_slicing(ReplicatedResource(name="nvidia.com/gpu", replicas=4))
    catalog = build_catalog(machine, Config(mig_strategy=MIXED, time_slicing=sliced))
    assert counts(catalog) == {"nvidia.com/gpu": 4, "nvidia.com/mig-1g.5gb": 15}
    assert [resource.sharing for resource in catalog.resources] == [Sharing.TIME_SLICING, Sharing.NONE]


@pytest.mark.parametrize(
    ("name", "hint"), [("nvidia.com/gpus", "did you mean nvidia.com/gpu?"), ("nvidia.com/x", "it has nvidia.com/gpu")]
)
def test_sharing_that_names_no_resource_of_the_node_is_told(name: str, hint: str) -> None:
    catalog = build_catalog(node("t4-4"), Config(time_slicing=time_slicing(ReplicatedResource(name=name, replicas=2))))
    assert counts(catalog) == {"nvidia.com/gpu": 4}
    assert hint in catalog.warnings[0]


def cards(resources: Sequence[Resource]) -> Counter[int]:
    loads: Counter[int] = Counter()
    for resource in resources:
        for device in resource.devices:
            loads[device.gpu_index] += device.share  # type: ignore[assignment] # a fraction counts as well
    return loads


@given(
    model=st.sampled_from([name for name in shipped_models() if name != "gb200-nvl72"]),
    strategy=st.sampled_from([NONE, MIXED]),
    replicas=st.integers(2, 9),
)
def test_ids_are_unique_and_no_card_is_given_away_twice(model: str, strategy: MigStrategy, replicas: int) -> None:
    machine = node(model)
    plain = build_catalog(machine, Config(mig_strategy=strategy))
    sliced = time_slicing(*(ReplicatedResource(name=each.name, replicas=replicas) for each in plain.resources))
    catalog = build_catalog(machine, Config(mig_strategy=strategy, time_slicing=sliced)) if plain.resources else plain
    ids = [device.id for resource in catalog.resources for device in resource.devices]
    assert len(ids) == len(set(ids)) == replicas * sum(counts(plain).values())
    assert all(load <= 1 for load in cards(plain.resources).values())
    assert cards(catalog.resources) == cards(plain.resources)


def test_two_models_and_a_gpu_of_unknown_memory_are_one_resource() -> None:
    mixed = with_gpus(
        node("t4-4"), g1={"model": "Tesla V100-PCIE-16GB"}, g2={"memory_bytes": None}, g3={"numa_node": None}
    )
    (resource,) = build_catalog(mixed, Config()).resources
    assert [device.share for device in resource.devices] == [1, 1, 1, 1]
    assert resource.devices[3].numa_node is None


def test_a_display_adapter_leaves_a_gap_in_the_indices() -> None:
    machine = node("t4-4")
    (resource,) = build_catalog(replace(machine, gpus=(machine.gpus[3], machine.gpus[0])), Config()).resources
    assert [device.index for device in resource.devices] == ["0", "3"]
