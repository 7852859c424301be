"""What a container gets, and which requests are refused."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import Config, DeviceIdStrategy
from gpustow.errors import AllocationRefused
from gpustow.injection import ContainerEdits, container_edits
from gpustow.resources.device import Device, Resource, Sharing


def gpus(*names: str, healthy: bool = True) -> Resource:
    return Resource(
        "nvidia.com/gpu",
        tuple(Device(name, name, at, str(at), Fraction(1), (), healthy=healthy) for at, name in enumerate(names)),
    )


def shared(names: Sequence[str], replicas: int, *, limited: bool = False) -> Resource:
    return Resource(
        "nvidia.com/gpu",
        tuple(
            Device(f"{name}::{replica}", name, at, f"0:{at}", Fraction(1, replicas), (), replica=replica)
            for at, name in enumerate(names)
            for replica in range(replicas)
        ),
        Sharing.TIME_SLICING,
        requests_limited_to_one=limited,
    )


def visible(resource: Resource, ids: Sequence[str], config: Config | None = None) -> str:
    edits = container_edits(resource, ids, config or Config())
    assert edits == ContainerEdits(envs={"NVIDIA_VISIBLE_DEVICES": edits.envs["NVIDIA_VISIBLE_DEVICES"]})
    return edits.envs["NVIDIA_VISIBLE_DEVICES"]


@pytest.mark.parametrize(
    ("ids", "value"), [(["foo"], "foo"), (["foo", "bar", "foo"], "foo,bar"), (["bar", "foo"], "bar,foo")]
)
def test_the_devices_are_named_once_each_in_the_order_of_the_request(ids: Sequence[str], value: str) -> None:
    assert visible(gpus("foo", "bar"), ids) == value


def test_replicas_are_named_by_their_gpu() -> None:
    assert visible(shared(["device0", "device1"], 2), ["device1::0", "device0::1", "device1::1"]) == "device1,device0"


@pytest.mark.parametrize(("resource", "value"), [(gpus("foo", "bar"), "1,0"), (shared(["foo", "bar"], 2), "0:1,0:0")])
def test_the_index_strategy_names_indices_in_the_order_of_the_request(resource: Resource, value: str) -> None:
    ids = ["bar", "foo"] if resource.sharing is Sharing.NONE else ["bar::0", "foo::1", "bar::1"]
    assert visible(resource, ids, Config(device_id_strategy=DeviceIdStrategy.INDEX)) == value


def test_an_unknown_device_is_refused_by_name() -> None:
    with pytest.raises(AllocationRefused, match=r"'nvidia.com/gpu': unknown device: device2") as refusal:
        container_edits(gpus("device0", "device1"), ["device1", "device2"], Config())
    assert refusal.value.resource == "nvidia.com/gpu"


@pytest.mark.parametrize("id_", ["device0", "device0::2", "device0::", "device0::x"])
def test_an_id_must_be_known_to_the_letter(id_: str) -> None:
    with pytest.raises(AllocationRefused, match=f"unknown device: {id_}"):
        container_edits(shared(["device0"], 2), [id_], Config())


def test_an_empty_request_is_refused() -> None:
    with pytest.raises(AllocationRefused, match="no devices are asked for"):
        container_edits(gpus("device0"), [], Config())


def test_a_device_that_is_unhealthy_is_answered_because_it_was_the_pods_already() -> None:
    assert visible(gpus("device0", healthy=False), ["device0"]) == "device0"


@pytest.mark.parametrize(
    ("limited", "ids", "refused"),
    [
        (False, ["device0::1"], False),
        (False, ["device0::1", "device1::0"], False),
        (True, ["device0::1"], False),
        (True, ["device0::1", "device1::0"], True),
        (True, ["device0::1", "device0::1"], True),
    ],
)
def test_a_shared_request_for_more_than_one_is_refused_where_that_is_asked_for(
    limited: bool,  # noqa: FBT001 - a parameter of the table
    ids: Sequence[str],
    refused: bool,  # noqa: FBT001 - as above
) -> None:
    resource = shared(["device0", "device1"], 2, limited=limited)
    if not refused:
        assert container_edits(resource, ids, Config()).envs
        return
    with pytest.raises(AllocationRefused, match=f"maximum request size for shared resources is 1; found {len(ids)}"):
        container_edits(resource, ids, Config())


def test_requests_for_whole_gpus_are_never_limited() -> None:
    resource = Resource("nvidia.com/gpu", gpus("a", "b").devices, requests_limited_to_one=True)
    assert visible(resource, ["a", "b"]) == "a,b"


@given(st.lists(st.sampled_from([f"g{gpu}::{replica}" for gpu in range(4) for replica in range(3)]), min_size=1))
def test_every_gpu_of_a_request_is_named_exactly_once(ids: list[str]) -> None:
    named = visible(shared([f"g{gpu}" for gpu in range(4)], 3), ids).split(",")
    assert len(named) == len(set(named))
    assert set(named) == {id_.partition("::")[0] for id_ in ids}
    assert named == sorted(named, key=[id_.partition("::")[0] for id_ in ids].index)
