"""Where the driver is: as we see it, and as the host does."""

from pathlib import Path

from gpustow.config import Config
from gpustow.injection.cdi.generator.roots import DATA_DIRECTORIES, PROGRAM_DIRECTORIES, DriverRoot
from tests.injection.cdi.generator.drivertree import Tree


def _config(driver_root: str = "/run/nvidia/driver", dev_root: str = "/", mounted: str = "/driver-root") -> Config:
    return Config(driver_root=driver_root, dev_root=dev_root, driver_root_ctr_path=mounted)


def test_the_driver_is_searched_where_it_is_mounted_and_the_nodes_where_it_has_dev(tmp_path: Path) -> None:
    Tree(tmp_path).file("/driver-root/usr/x", "driver").file("/driver-root/dev/y").file("/dev/z").file("/proc/p")
    root = DriverRoot.of(_config(), tmp_path)
    assert root.driver.names("/usr") == ("x",)
    assert root.devices.names("/dev") == ("y",)
    assert root.system.names("/proc") == ("p",)
    assert root.host_path("/usr/x") == "/run/nvidia/driver/usr/x"
    assert root.device_host_path("/dev/y") == "/dev/y"
    assert root.warnings == ()
    assert not root.simulated


def test_a_driver_root_without_dev_has_its_nodes_in_our_own(tmp_path: Path) -> None:
    Tree(tmp_path).file("/driver-root/usr/x").file("/dev/z")
    assert DriverRoot.of(_config(), tmp_path).devices.names("/dev") == ("z",)


def test_where_nothing_is_mounted_our_own_file_system_is_searched(tmp_path: Path) -> None:
    Tree(tmp_path).file("/usr/x")
    root = DriverRoot.of(_config("/", "/"), tmp_path)
    assert root.driver.names("/usr") == ("x",)
    assert root.warnings == ()


def test_a_driver_root_that_is_not_mounted_where_it_should_be_is_told(tmp_path: Path) -> None:
    (note,) = DriverRoot.of(_config(), tmp_path).warnings
    assert note == (
        "/driver-root is not there, so that the files of the driver root /run/nvidia/driver are looked for in our own "
        "file system; mount it there, or set --driver-root-ctr-path"
    )


def test_the_environment_adds_directories_of_programs_and_names_those_of_data(tmp_path: Path) -> None:
    root = DriverRoot.of(
        _config(), tmp_path, {"PATH": "/opt/bin/:relative::/usr/bin", "XDG_DATA_DIRS": "/opt/share:/usr/share"}
    )
    others = [each for each in PROGRAM_DIRECTORIES if each != "/usr/bin"]
    assert root.programs == ("/opt/bin", "/usr/bin", *others)
    assert root.data == ("/opt/share", "/usr/share")
    assert DriverRoot.of(_config(), tmp_path).data == DATA_DIRECTORIES


def test_a_simulated_node_has_roots_too() -> None:
    root = DriverRoot.of_simulated(_config(dev_root="/run/nvidia/driver"))
    assert root.simulated
    assert root.device_host_path("/dev/nvidia0") == "/run/nvidia/driver/dev/nvidia0"
    assert root.driver.resolve("/usr/bin/nvidia-smi") is None
