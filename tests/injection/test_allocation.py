"""What a container gets, and which requests are refused."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import Config, DeviceIdStrategy, DeviceListStrategy
from gpustow.errors import AllocationRefused
from gpustow.hardware.node import Platform
from gpustow.injection import ContainerEdits, container_edits
from gpustow.injection.hostdevices import NO_HOST_DEVICES, HostDevices
from gpustow.resources.device import Resource, Sharing
from gpustow.resources.gpu import joint_device
from tests.injection.samples import MPS, MPS_ROOT, RESPONSE_ID, gpu, gpus, shared
from tests.resources.machines import gpu as card

ALL_CDI = (DeviceListStrategy.CDI_ANNOTATIONS, DeviceListStrategy.CDI_CRI)


def answer(
    resource: Resource, ids: Sequence[str], config: Config | None = None, host: HostDevices = NO_HOST_DEVICES
) -> ContainerEdits:
    return container_edits(resource, ids, config or Config(), host, RESPONSE_ID)


def visible(resource: Resource, ids: Sequence[str], config: Config | None = None) -> str:
    edits = answer(resource, ids, config)
    assert edits == ContainerEdits(envs={"NVIDIA_VISIBLE_DEVICES": edits.envs["NVIDIA_VISIBLE_DEVICES"]})
    return edits.envs["NVIDIA_VISIBLE_DEVICES"]


@pytest.mark.parametrize(
    ("ids", "value"), [(["foo"], "foo"), (["foo", "bar", "foo"], "foo,bar"), (["bar", "foo"], "bar,foo")]
)
def test_the_devices_are_named_once_each_in_the_order_of_the_request(ids: Sequence[str], value: str) -> None:
    assert visible(gpus("foo", "bar"), ids) == value


def test_replicas_are_named_by_their_gpu() -> None:
    assert visible(shared(["device0", "device1"], 2), ["device1::0", "device0::1", "device1::1"]) == "device1,device0"


@pytest.mark.parametrize(("resource", "value"), [(gpus("foo", "bar"), "1,0"), (shared(["foo", "bar"], 2), "1,0")])
def test_the_index_strategy_names_indices_in_the_order_of_the_request(resource: Resource, value: str) -> None:
    ids = ["bar", "foo"] if resource.sharing is Sharing.NONE else ["bar::0", "foo::1", "bar::1"]
    assert visible(resource, ids, Config(device_id_strategy=DeviceIdStrategy.INDEX)) == value


def test_an_unknown_device_is_refused_by_name() -> None:
    with pytest.raises(AllocationRefused, match=r"'nvidia.com/gpu': unknown device: device2") as refusal:
        answer(gpus("device0", "device1"), ["device1", "device2"])
    assert refusal.value.resource == "nvidia.com/gpu"


@pytest.mark.parametrize("id_", ["device0", "device0::2", "device0::", "device0::x"])
def test_an_id_must_be_known_to_the_letter(id_: str) -> None:
    with pytest.raises(AllocationRefused, match=f"unknown device: {id_}"):
        answer(shared(["device0"], 2), [id_])


def test_an_empty_request_is_refused() -> None:
    with pytest.raises(AllocationRefused, match="no devices are asked for"):
        answer(gpus("device0"), [])


def test_a_device_that_is_known_and_unhealthy_is_refused_by_name() -> None:
    resource = Resource("nvidia.com/gpu", (gpu("device0", 0), gpu("device1", 1, healthy=False)))
    with pytest.raises(AllocationRefused, match="unhealthy device: device1; a new pod gets another one"):
        answer(resource, ["device0", "device1"])
    assert visible(resource, ["device0"]) == "device0"


@pytest.mark.parametrize("sharing", [Sharing.TIME_SLICING, Sharing.MPS])
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
    sharing: Sharing,
    limited: bool,  # noqa: FBT001 - a parameter of the table
    ids: Sequence[str],
    refused: bool,  # noqa: FBT001 - as above
) -> None:
    resource = shared(["device0", "device1"], 2, limited=limited, sharing=sharing)
    config = Config(mps_root=MPS_ROOT)
    if not refused:
        assert answer(resource, ids, config).envs
        return
    with pytest.raises(AllocationRefused, match=f"maximum request size for shared resources is 1; found {len(ids)}"):
        answer(resource, ids, config)


def test_requests_for_whole_gpus_are_never_limited() -> None:
    resource = Resource("nvidia.com/gpu", gpus("a", "b").devices, requests_limited_to_one=True)
    assert visible(resource, ["a", "b"]) == "a,b"


@given(st.lists(st.sampled_from([f"g{gpu}::{replica}" for gpu in range(4) for replica in range(3)]), min_size=1))
def test_every_gpu_of_a_request_is_named_exactly_once(ids: list[str]) -> None:
    named = visible(shared([f"g{gpu}" for gpu in range(4)], 3), ids).split(",")
    assert len(named) == len(set(named))
    assert set(named) == {id_.partition("::")[0] for id_ in ids}
    assert named == sorted(named, key=[id_.partition("::")[0] for id_ in ids].index)


def test_on_wsl_and_tegra_the_one_device_is_named_as_v0_20_0_does() -> None:
    for platform, uuid, index in ((Platform.WSL, "all", "all"), (Platform.TEGRA, "tegra", "0")):
        resource = Resource("nvidia.com/gpu", (joint_device(platform, card(0)),))
        assert visible(resource, [uuid]) == uuid
        assert visible(resource, [uuid], Config(device_id_strategy=DeviceIdStrategy.INDEX)) == index


def test_on_wsl_the_one_node_is_passed_and_no_control_nodes() -> None:
    resource = Resource("nvidia.com/gpu", (joint_device(Platform.WSL, card(0)),))
    edits = answer(resource, ["all"], Config(pass_device_specs=True))
    assert [(node.container_path, node.host_path) for node in edits.device_nodes] == [("/dev/dxg", "/dev/dxg")]


@pytest.mark.parametrize("strategies", [(DeviceListStrategy.ENVVAR,), ALL_CDI])
def test_other_drivers_are_asked_for_by_variable_under_every_strategy(
    strategies: tuple[DeviceListStrategy, ...],
) -> None:
    config = Config(device_list_strategies=strategies, gdrcopy_enabled=True, gds_enabled=True, mofed_enabled=True)
    envs = dict(answer(gpus("a"), ["a"], config).envs)
    envs.pop("NVIDIA_VISIBLE_DEVICES", None)
    assert envs == {"NVIDIA_GDRCOPY": "enabled", "NVIDIA_GDS": "enabled", "NVIDIA_MOFED": "enabled"}


def test_a_resource_that_is_not_shared_is_not_connected_to_a_daemon_that_others_have() -> None:
    config = Config(mps=MPS, mps_root=MPS_ROOT)
    assert visible(gpus("a"), ["a"], config) == "a"
    assert visible(shared(["a"], 2), ["a::0"], config) == "a"


def test_a_renamed_resource_has_its_own_daemon() -> None:
    resource = replace(shared(["a"], 2, sharing=Sharing.MPS), name="nvidia.com/gpu.shared")
    edits = answer(resource, ["a::1"], Config(mps=MPS, mps_root="/run/mps/"))
    assert edits.envs["CUDA_MPS_PIPE_DIRECTORY"] == "/mps/nvidia.com/gpu.shared/pipe"
    assert [(mount.host_path, mount.container_path, mount.read_only) for mount in edits.mounts] == [
        ("/run/mps/nvidia.com/gpu.shared/pipe", "/mps/nvidia.com/gpu.shared/pipe", False),
        ("/run/mps/shm", "/dev/shm", False),  # noqa: S108 - the container's
    ]


def test_a_device_that_cdi_cannot_name_is_refused_with_the_way_out() -> None:
    resource = gpus("MIG-GPU-0/1/0")
    with pytest.raises(AllocationRefused, match=r"nvidia\.com/gpu.*MIG-GPU-0/1/0.*device-id-strategy=index") as refusal:
        answer(resource, ["MIG-GPU-0/1/0"], Config(device_list_strategies=ALL_CDI))
    assert refusal.value.resource == "nvidia.com/gpu"
    assert visible(resource, ["MIG-GPU-0/1/0"]) == "MIG-GPU-0/1/0"
