import re
from pathlib import Path

import pytest

from gpustow.config import Config, DeviceListStrategy
from gpustow.errors import ConfigError
from gpustow.hardware.node import Platform
from gpustow.hardware.nodemodel import load_node_model
from gpustow.injection.hostdevices import CONTROL_NODES, HostDevices
from gpustow.plugin.hostreading import machine_host, simulated_host
from gpustow.plugin.offer import Offer
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, config, gpu, node

ONLY_NVML = "CDI --device-list-strategy options are only supported on NVML-based systems"
CDI = [(DeviceListStrategy.CDI_CRI,), (DeviceListStrategy.ENVVAR, DeviceListStrategy.CDI_ANNOTATIONS)]


def no_library(path: str) -> str:
    return f"{path}: cannot open shared object file"


@pytest.mark.parametrize("strategies", CDI)
def test_cdi_is_refused_on_a_board_without_nvml(strategies: tuple[DeviceListStrategy, ...]) -> None:
    config = Config(device_list_strategies=strategies)
    with pytest.raises(ConfigError, match=f"deviceListStrategy: {ONLY_NVML}: {strategies[-1].value}") as error:
        machine_host(config, Platform.TEGRA, load_error=no_library)
    assert error.value.exit_code == 3
    assert "libnvidia-ml.so.1: cannot open shared object file" in str(error.value)
    with pytest.raises(ConfigError, match=ONLY_NVML):
        simulated_host(config, Platform.TEGRA)


@pytest.mark.parametrize("strategies", CDI)
def test_cdi_is_taken_where_there_is_nvml(strategies: tuple[DeviceListStrategy, ...]) -> None:
    config = Config(device_list_strategies=strategies)
    assert machine_host(config, Platform.TEGRA, load_error=lambda _: "").control == ()
    assert simulated_host(config, Platform.WSL) == HostDevices()
    assert simulated_host(config, Platform.NVML) == HostDevices(control=CONTROL_NODES)


@pytest.mark.parametrize("platform", [Platform.NVML, Platform.WSL])
def test_nvml_is_not_looked_for_where_the_node_was_read_by_it(platform: Platform) -> None:
    def unexpected(path: str) -> str:
        raise AssertionError(path)

    machine_host(Config(device_list_strategies=CDI[0]), platform, load_error=unexpected)


@pytest.mark.parametrize("strategy", [DeviceListStrategy.ENVVAR, DeviceListStrategy.VOLUME_MOUNTS])
def test_a_board_without_nvml_is_served_under_the_other_strategies(strategy: DeviceListStrategy) -> None:
    config = Config(device_list_strategies=(strategy,))
    assert machine_host(config, Platform.TEGRA, load_error=no_library) == HostDevices()
    assert simulated_host(config, Platform.TEGRA) == HostDevices()


def test_nvml_is_looked_for_below_the_driver_root_of_our_container(tmp_path: Path) -> None:
    looked: list[str] = []

    def record(path: str) -> str:
        looked.append(path)
        return "no"

    config = Config(device_list_strategies=CDI[0], driver_root_ctr_path=str(tmp_path))
    with pytest.raises(ConfigError):
        machine_host(config, Platform.TEGRA, load_error=record)
    assert [re.sub(r".*/", "", path) for path in looked] == ["libnvidia-ml.so.1"]


async def test_the_daemon_ends_where_cdi_cannot_be_whatever_fail_on_init_error_says(tmp_path: Path) -> None:
    board = load_node_model("jetson-orin").node
    daemon = Daemon(tmp_path, board, device_list_strategy="cdi-cri", fail_on_init_error="false")
    with pytest.raises(ConfigError, match=ONLY_NVML):
        await daemon.supervisor.run()


async def test_a_reload_to_what_cannot_be_leaves_the_old_running(tmp_path: Path) -> None:
    async with FakeKubelet(tmp_path) as kubelet:
        daemon = Daemon(tmp_path, load_node_model("jetson-orin").node)
        async with daemon.running() as supervisor:
            await until(lambda: kubelet.live(GPU) and supervisor.not_ready is None)
            daemon.flags["device_list_strategy"] = "cdi-annotations"
            supervisor.reload()
            await until(lambda: ONLY_NVML in (supervisor.not_ready or ""))
            assert kubelet.live(GPU)


def test_what_the_host_lacks_is_among_the_notes_of_the_offer_and_what_it_has_is_served() -> None:
    host = HostDevices(control=CONTROL_NODES[:1], notes=("IMEX channel 0 is not there",))
    offer = Offer.of(node(gpu(0)), config(), host)
    assert "IMEX channel 0 is not there" in offer.notes
    assert [served.host for served in offer.served] == [host]
