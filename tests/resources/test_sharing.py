"""Sharing some devices, under some name, into some number of replicas."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import Config, MigStrategy, ReplicatedResource, ReplicatedResources, ResourcePattern
from gpustow.config.devicechoice import DeviceChoice
from gpustow.errors import ConfigError
from gpustow.resources import Catalog, build_catalog
from tests.resources.machines import gpu, machine, node

GPU = "nvidia.com/gpu"


def entry(
    replicas: int, devices: DeviceChoice = "all", rename: str | None = None, name: str = GPU
) -> ReplicatedResource:
    return ReplicatedResource(name, replicas, rename, devices)


def catalog(*entries: ReplicatedResource, gpus: int = 2) -> Catalog:
    config = Config(time_slicing=ReplicatedResources(entries))
    return build_catalog(node(*(gpu(index) for index in range(gpus))), config)


def counts(found: Catalog) -> dict[str, dict[str, int]]:
    """How many devices each GPU has in each resource."""
    return {resource.name: dict(Counter(device.uuid for device in resource.devices)) for resource in found.resources}


def test_case_c06_a_listed_gpu_is_shared_under_another_name_and_the_others_stay_as_they_are() -> None:
    found = catalog(entry(8, ("0",), "nvidia.com/gpu-0"))
    assert counts(found) == {"nvidia.com/gpu-0": {"GPU-0": 8}, GPU: {"GPU-1": 1}}


def test_case_c07_gpus_of_one_resource_have_different_numbers_of_replicas_and_names() -> None:
    found = catalog(
        entry(2, ("GPU-0",), "nvidia.com/gpu.fast"),
        entry(8, ("GPU-1",), "nvidia.com/gpu.batch"),
    )
    assert counts(found) == {"nvidia.com/gpu.fast": {"GPU-0": 2}, "nvidia.com/gpu.batch": {"GPU-1": 8}}


def test_without_another_name_they_are_one_resource_with_different_shares() -> None:
    (resource,) = catalog(entry(2, ("0",)), entry(8, ("1",)), gpus=3).resources
    assert [device.id for device in resource.devices] == [
        "GPU-0::0",
        "GPU-0::1",
        *(f"GPU-1::{number}" for number in range(8)),
        "GPU-2",
    ]
    assert {device.uuid: device.share for device in resource.devices} == {
        "GPU-0": Fraction(1, 2),
        "GPU-1": Fraction(1, 8),
        "GPU-2": 1,
    }


def test_one_name_gathers_the_devices_of_several_resources_in_the_order_of_the_gpus() -> None:
    machine = node(gpu(0, model="B"), gpu(1, model="A"), gpu(2, model="B"))
    config = Config(
        gpu_patterns=(ResourcePattern("A", "nvidia.com/a"),),
        time_slicing=ReplicatedResources(
            (entry(2, rename="nvidia.com/all"), entry(3, name="nvidia.com/a", rename="nvidia.com/all"))
        ),
    )
    (resource,) = build_catalog(machine, config).resources
    assert [device.id for device in resource.devices] == [
        "GPU-0::0",
        "GPU-0::1",
        "GPU-1::0",
        "GPU-1::1",
        "GPU-1::2",
        "GPU-2::0",
        "GPU-2::1",
    ]


def test_a_number_of_devices_takes_the_lowest_that_no_list_has() -> None:
    found = catalog(entry(4, 2), entry(2, ("0",), "nvidia.com/listed"), gpus=4)
    assert counts(found) == {"nvidia.com/listed": {"GPU-0": 2}, GPU: {"GPU-1": 4, "GPU-2": 4, "GPU-3": 1}}


def test_an_empty_list_shares_nothing() -> None:
    assert counts(catalog(entry(4, ()))) == {GPU: {"GPU-0": 1, "GPU-1": 1}}


def test_a_mig_device_is_chosen_by_its_indices_and_by_its_uuid() -> None:
    mig = machine("a100-4-mig-5").gpus[0].mig_devices[2]
    profile = "nvidia.com/mig-1g.5gb"
    for reference in ("0:2", mig.uuid):
        config = Config(
            mig_strategy=MigStrategy.MIXED,
            time_slicing=ReplicatedResources((entry(3, (reference,), "nvidia.com/one", profile),)),
        )
        found = build_catalog(machine("a100-4-mig-5"), config)
        assert {name: sum(own.values()) for name, own in counts(found).items()} == {"nvidia.com/one": 3, profile: 19}
        assert counts(found)["nvidia.com/one"] == {mig.uuid: 3}


@pytest.mark.parametrize(
    ("entries", "position", "message"),
    [
        ([entry(2, ("7",))], 0, "nvidia.com/gpu has no device 7 on this node (it has 0, 1)"),
        ([entry(2, ("GPU-9",))], 0, "nvidia.com/gpu has no device GPU-9 on this node"),
        ([entry(2, 3)], 0, "it wants 3 devices of nvidia.com/gpu, and there are 2"),
        ([entry(2, ("0",)), entry(3, 2)], 1, "it wants 2 devices of nvidia.com/gpu, and there are 1"),
        ([entry(2, ("0",)), entry(3, ("GPU-0",))], 1, "GPU 0 (GPU-0) is shared by sharing.timeSlicing.resources[0]"),
        ([entry(2, ("0", "GPU-0"))], 0, "GPU 0 (GPU-0) is shared by sharing.timeSlicing.resources[0]"),
        ([entry(2), entry(3, ("1",))], 0, "GPU 1 (GPU-1) is shared by sharing.timeSlicing.resources[1]"),
        ([entry(2), entry(3, rename="nvidia.com/x")], 1, "GPU 0 (GPU-0) is shared by sharing.timeSlicing.resources[0]"),
    ],
)
def test_devices_that_are_not_there_or_shared_twice_are_refused_by_name(
    entries: list[ReplicatedResource], position: int, message: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        catalog(*entries)
    (problem,) = refusal.value.problems
    assert problem.path == f"sharing.timeSlicing.resources[{position}].devices"
    assert problem.message.startswith(message)


def test_of_entries_that_share_a_resource_whole_the_last_holds_and_the_others_are_told() -> None:
    found = catalog(entry(2), entry(4))
    assert counts(found) == {GPU: {"GPU-0": 4, "GPU-1": 4}}
    assert found.warnings == (
        "sharing.timeSlicing.resources[0]: nvidia.com/gpu is listed again, and the last entry holds",
    )


@given(st.data())
def test_each_device_is_shared_once_or_not_at_all(data: st.DataObject) -> None:
    gpus = data.draw(st.integers(1, 6))
    entries = data.draw(
        st.lists(
            st.builds(
                entry,
                st.integers(2, 4),
                st.integers(1, 6) | st.lists(st.integers(0, 7).map(str), max_size=4).map(tuple) | st.just("all"),
                st.sampled_from([None, "nvidia.com/a", "nvidia.com/b"]),
            ),
            max_size=3,
        )
    )
    try:
        found = catalog(*entries, gpus=gpus)
    except ConfigError:
        return
    loads: Counter[int] = Counter()
    for resource in found.resources:
        for device in resource.devices:
            loads[device.gpu_index] += device.share  # type: ignore[assignment] # a fraction counts as well
    assert loads == dict.fromkeys(range(gpus), 1)
