"""Which CDI devices an answer names, and its annotation: the vectors of v0.20.0, and what the CDI library allows."""

import re
from collections.abc import Mapping, Sequence

import pytest

from gpustow.config import Config, DeviceIdStrategy, DeviceListStrategy
from gpustow.hardware.node import Platform
from gpustow.injection.cdi.names import VENDOR
from gpustow.injection.cdidevices import annotations, cdi_devices
from gpustow.injection.hostdevices import NO_HOST_DEVICES, HostDevices, simulated_host_devices
from gpustow.resources.gpu import joint_device
from tests.injection.samples import RESPONSE_ID, gpu, mig
from tests.resources.machines import gpu as card

STANDARD, CUSTOM = "cdi.k8s.io/", "custom.cdi.k8s.io/"
GDS = HostDevices(gds=("/dev/nvidia-fs0",))
MOFED = HostDevices(mofed=("/dev/infiniband/uverbs0",))
BOTH = HostDevices(gds=GDS.gds, mofed=MOFED.mofed)
IMEX = HostDevices(imex_channels=(0,))


def annotated(names: Sequence[str], prefix: str = STANDARD, response_id: str = "uuid") -> Mapping[str, str]:
    config = Config(device_list_strategies=(DeviceListStrategy.CDI_ANNOTATIONS,), cdi_annotation_prefix=prefix)
    return annotations(names, config, response_id)


@pytest.mark.parametrize(
    ("names", "prefix", "host", "value"),
    [
        ([], STANDARD, NO_HOST_DEVICES, None),
        (["gpu0"], STANDARD, NO_HOST_DEVICES, "gpu=gpu0"),
        (["gpu0"], CUSTOM, NO_HOST_DEVICES, "gpu=gpu0"),
        (["gpu0", "gpu1"], STANDARD, NO_HOST_DEVICES, "gpu=gpu0,gpu=gpu1"),
        (["gpu0", "gpu1"], CUSTOM, NO_HOST_DEVICES, "gpu=gpu0,gpu=gpu1"),
        ([], STANDARD, MOFED, "mofed=all"),
        ([], STANDARD, GDS, "gds=all"),
        (["gpu0"], STANDARD, BOTH, "gpu=gpu0,gds=all,mofed=all"),
        ([], STANDARD, IMEX, "imex-channel=0"),
    ],
)
def test_the_vectors_of_v0_20_0(names: list[str], prefix: str, host: HostDevices, value: str | None) -> None:
    devices = [gpu(name, index) for index, name in enumerate(names)]
    found = annotated(cdi_devices(devices, Config(), host), prefix)
    if value is None:
        assert found == {}
        return
    qualified = ",".join(f"{VENDOR}/{part}" for part in value.split(","))
    assert found == {f"{prefix}nvidia-device-plugin_uuid": qualified}


def test_channels_and_other_drivers_follow_the_gpus_in_the_order_of_v0_20_0() -> None:
    config = Config(imex_channel_ids=(0,), gdrcopy_enabled=True, gds_enabled=True, mofed_enabled=True)
    names = cdi_devices([gpu("b", 1), gpu("a", 0)], config, simulated_host_devices(config, Platform.NVML))
    assert [name.removeprefix(f"{VENDOR}/") for name in names] == [
        "gpu=b",
        "gpu=a",
        "imex-channel=0",
        "gdrcopy=all",
        "gds=all",
        "mofed=all",
    ]


def test_replicas_and_indices_name_what_is_behind_them_once() -> None:
    devices = [gpu("b", 1, replica=1), gpu("a", 0, replica=0), gpu("b", 1, replica=0), mig("m", 2, 3)]
    assert cdi_devices(devices, Config(), NO_HOST_DEVICES) == tuple(f"{VENDOR}/gpu={name}" for name in ("b", "a", "m"))
    by_index = cdi_devices(devices, Config(device_id_strategy=DeviceIdStrategy.INDEX), NO_HOST_DEVICES)
    assert by_index == tuple(f"{VENDOR}/gpu={name}" for name in ("1", "0", "2:3"))


@pytest.mark.parametrize("platform", [Platform.WSL, Platform.TEGRA])
@pytest.mark.parametrize("strategy", DeviceIdStrategy)
def test_where_all_gpus_are_one_device_it_is_all(platform: Platform, strategy: DeviceIdStrategy) -> None:
    device = joint_device(platform, card(0))
    assert cdi_devices([device], Config(device_id_strategy=strategy), NO_HOST_DEVICES) == (f"{VENDOR}/gpu=all",)


def test_the_name_in_the_key_is_one_that_the_cdi_library_takes() -> None:
    [key] = annotated(["a"], response_id=RESPONSE_ID)
    name = key.removeprefix(STANDARD)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,61}[A-Za-z0-9]", name)
    assert len(name) == 57


def test_other_strategies_annotate_nothing() -> None:
    others = tuple(each for each in DeviceListStrategy if each is not DeviceListStrategy.CDI_ANNOTATIONS)
    assert annotations(["a"], Config(device_list_strategies=others), "uuid") == {}
