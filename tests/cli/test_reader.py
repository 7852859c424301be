from pathlib import Path

import pytest

from gpustow.cli.reader import reader_maker
from gpustow.config import Config, DeviceDiscoveryStrategy, MigStrategy
from gpustow.errors import HardwareError, NodeModelError
from gpustow.hardware.node import Platform

CONFIG = Config()


def test_a_node_model_is_read_in_place_of_the_machine() -> None:
    node = reader_maker("t4-4", {})(CONFIG).read()
    assert (node.name, len(node.gpus)) == ("t4-4", 4)


def test_a_bad_node_model_is_refused_before_anything_reads_it() -> None:
    with pytest.raises(NodeModelError):
        reader_maker("none", {})


def test_without_one_the_driver_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library(name: str) -> None:
        raise OSError(f"{name} is hidden from this test")

    monkeypatch.setattr("ctypes.CDLL", no_library)
    config = Config(driver_root_ctr_path=str(tmp_path))
    with pytest.raises(HardwareError, match="there is no NVIDIA driver to read"):
        reader_maker(None, {"NODE_NAME": "node-1"}, str(tmp_path))(config).read()


def test_the_machine_is_read_with_the_same_reader_until_the_configuration_says_otherwise() -> None:
    make = reader_maker(None, {})
    assert make(CONFIG) is make(Config(mig_strategy=MigStrategy.MIXED))
    assert make(CONFIG) is not make(Config(driver_root_ctr_path="/host"))


def test_the_machine_is_read_as_the_configuration_says(tmp_path: Path) -> None:
    make = reader_maker(None, {"NODE_NAME": "edge"}, str(tmp_path))
    node = make(Config(device_discovery_strategy=DeviceDiscoveryStrategy.TEGRA)).read()
    assert (node.name, node.platform) == ("edge", Platform.TEGRA)


def test_a_reload_reads_with_the_same_reader_so_that_the_schedule_of_faults_goes_on() -> None:
    make = reader_maker("t4-4", {})
    assert make(CONFIG) is make(CONFIG)
