"""What the node has beside its GPUs. A link to /dev/null stands for a device node: it is one when it is followed."""

from pathlib import Path

import pytest

from gpustow.config import Config, DeviceListStrategy
from gpustow.errors import HardwareError
from gpustow.hardware.node import Platform
from gpustow.injection.hostdevices import (
    CONTROL_NODES,
    HostDevices,
    imex_channel_path,
    read_host_devices,
    simulated_host_devices,
)

EVERYTHING = Config(
    imex_channel_ids=(0,), gdrcopy_enabled=True, gds_enabled=True, mofed_enabled=True, pass_device_specs=True
)
CHANNEL = "/dev/nvidia-caps-imex-channels/channel0"


def nodes(root: Path, *paths: str) -> None:
    for path in paths:
        node = root / path.lstrip("/")
        node.parent.mkdir(parents=True, exist_ok=True)
        node.symlink_to("/dev/null")


def read(root: Path, config: Config = EVERYTHING, platform: Platform = Platform.NVML) -> HostDevices:
    return read_host_devices(config, platform, root)


def test_what_is_there_is_found_in_the_order_in_which_it_is_passed_on(tmp_path: Path) -> None:
    nodes(tmp_path, *reversed(CONTROL_NODES), CHANNEL, "/dev/gdrdrv", "/dev/nvidia-fs10", "/dev/nvidia-fs2")
    nodes(tmp_path, "/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs1", "/dev/infiniband/uverbs0")
    assert read(tmp_path) == HostDevices(
        control=CONTROL_NODES,
        imex_channels=(0,),
        gdrcopy=("/dev/gdrdrv",),
        gds=("/dev/nvidia-fs2", "/dev/nvidia-fs10"),
        mofed=("/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1", "/dev/infiniband/rdma_cm"),
    )


def test_what_nobody_asks_for_is_not_looked_for(tmp_path: Path) -> None:
    nodes(tmp_path, CHANNEL, "/dev/gdrdrv", "/dev/nvidia-fs0", "/dev/infiniband/rdma_cm", CONTROL_NODES[0])
    assert read(tmp_path, Config()) == HostDevices(control=CONTROL_NODES[:1])


@pytest.mark.parametrize("platform", [Platform.WSL, Platform.TEGRA])
def test_wsl_and_tegra_have_no_control_nodes(tmp_path: Path, platform: Platform) -> None:
    nodes(tmp_path, *CONTROL_NODES)
    found = read(tmp_path, Config(pass_device_specs=True), platform)
    assert found == HostDevices()
    assert simulated_host_devices(Config(), platform) == HostDevices()


def test_the_driver_root_is_looked_through_if_it_has_device_nodes(tmp_path: Path) -> None:
    nodes(tmp_path / "driver-root", CONTROL_NODES[0], CHANNEL)
    found = read(tmp_path, Config(imex_channel_ids=(0,)))
    assert (found.control, found.imex_channels) == (CONTROL_NODES[:1], (0,))


def test_what_is_in_our_own_dev_counts_as_well_and_once(tmp_path: Path) -> None:
    nodes(tmp_path / "driver-root", CONTROL_NODES[0], CONTROL_NODES[2])
    nodes(tmp_path, CONTROL_NODES[0], CONTROL_NODES[1])
    assert read(tmp_path, Config()).control == CONTROL_NODES[:3]


def test_a_driver_root_without_device_nodes_is_not_looked_through(tmp_path: Path) -> None:
    (tmp_path / "driver-root" / "lib").mkdir(parents=True)
    with pytest.raises(HardwareError) as error:
        read(tmp_path, Config(imex_channel_ids=(0,), imex_required=True))
    assert f"there is no {tmp_path}{CHANNEL} in our container" in str(error.value)


@pytest.mark.parametrize("root", ["", "/", "/driver-root"])
def test_a_driver_root_may_be_our_own_root(tmp_path: Path, root: str) -> None:
    nodes(tmp_path, CONTROL_NODES[0])
    assert read(tmp_path, Config(driver_root_ctr_path=root)).control == CONTROL_NODES[:1]


def test_a_file_or_directory_is_no_device_node(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidiactl").write_text("")
    (tmp_path / "dev" / "nvidia-uvm").mkdir()
    for name in ("nvidia-uvm-tools", "nvidia-fs0"):
        (tmp_path / "dev" / name).symlink_to("nowhere")
    found = read(tmp_path, Config(gds_enabled=True))
    assert (found.control, found.gds) == ((), ())


def test_a_channel_that_is_required_and_missing_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    nodes(tmp_path / "driver-root", CONTROL_NODES[0])
    with pytest.raises(HardwareError, match="IMEX channel 0 is required and not there") as error:
        read(tmp_path, Config(imex_channel_ids=(0,), imex_required=True))
    assert f"{tmp_path}/driver-root{CHANNEL} and no {tmp_path}{CHANNEL}" in str(error.value)
    assert "--imex-required=false" in str(error.value)


def test_a_channel_that_is_not_required_is_left_out_with_a_note(tmp_path: Path) -> None:
    found = read(tmp_path, Config(imex_channel_ids=(0,)))
    assert found.imex_channels == ()
    assert found.notes == (f"IMEX channel 0 is not there: there is no {tmp_path}{CHANNEL} in our container",)


def test_required_without_channels_has_no_effect(tmp_path: Path) -> None:
    assert read(tmp_path, Config(imex_required=True)) == HostDevices()


def test_what_we_name_and_cannot_see_is_noted(tmp_path: Path) -> None:
    strategies = (DeviceListStrategy.CDI_CRI,)
    config = Config(device_list_strategies=strategies, gdrcopy_enabled=True, gds_enabled=True, mofed_enabled=True)
    notes = read(tmp_path, config).notes
    assert [note.partition(":")[0] for note in notes] == [
        "--gdrcopy-enabled is set, but containers get none of its devices",
        "--gds-enabled is set, but containers get none of its devices",
        "--mofed-enabled is set, but containers get none of its devices",
        "containers get none of the driver's control nodes",
    ]
    assert f"no {tmp_path}/dev/infiniband/uverbs* and no {tmp_path}/dev/infiniband/rdma_cm" in notes[2]


def test_what_the_container_runtime_finds_itself_is_not_noted(tmp_path: Path) -> None:
    assert read(tmp_path, Config(gds_enabled=True)).notes == ()


def test_a_simulated_node_has_all_that_is_asked_for() -> None:
    assert simulated_host_devices(Config(), Platform.NVML) == HostDevices(control=CONTROL_NODES)
    assert simulated_host_devices(EVERYTHING, Platform.NVML) == HostDevices(
        control=CONTROL_NODES,
        imex_channels=(0,),
        gdrcopy=("/dev/gdrdrv",),
        gds=("/dev/nvidia-fs0",),
        mofed=("/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"),
    )
    assert imex_channel_path(0) == CHANNEL


def test_this_machine_can_be_looked_at_whatever_it_has() -> None:
    assert set(read_host_devices(EVERYTHING, Platform.NVML).control) <= set(CONTROL_NODES)
