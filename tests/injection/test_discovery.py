"""Where we look for the driver's files and for device nodes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import Config
from gpustow.injection.discovery import DiscoveryRoots, host_path, is_directory

CONFIG = Config(driver_root_ctr_path="/driver-root")


def test_the_driver_is_looked_for_where_it_is_mounted_and_its_nodes_where_it_has_dev(tmp_path: Path) -> None:
    mounted = tmp_path / "driver-root"
    assert DiscoveryRoots.of(CONFIG, tmp_path) == DiscoveryRoots(tmp_path, tmp_path, is_mounted=False)
    mounted.mkdir()
    assert DiscoveryRoots.of(CONFIG, tmp_path) == DiscoveryRoots(mounted, tmp_path, is_mounted=True)
    (mounted / "dev").mkdir()
    assert DiscoveryRoots.of(CONFIG, tmp_path) == DiscoveryRoots(mounted, mounted, is_mounted=True)


def test_a_file_in_place_of_dev_has_no_device_nodes(tmp_path: Path) -> None:
    (tmp_path / "driver-root").mkdir()
    (tmp_path / "driver-root" / "dev").touch()
    assert DiscoveryRoots.of(CONFIG, tmp_path).devices == tmp_path


@pytest.mark.parametrize("name", ["x" * 300, "loop", "\0"])
def test_a_directory_that_cannot_be_looked_at_is_not_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert not is_directory(tmp_path / name)
    roots = DiscoveryRoots.of(Config(driver_root_ctr_path=f"/{name}"), tmp_path)
    assert roots == DiscoveryRoots(tmp_path, tmp_path, is_mounted=False)


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [
        ("/", "/dev/nvidia0", "/dev/nvidia0"),
        ("", "/dev/nvidia0", "/dev/nvidia0"),
        ("//", "/dev/nvidia0", "/dev/nvidia0"),
        ("/run/nvidia/driver", "/dev/nvidia0", "/run/nvidia/driver/dev/nvidia0"),
        ("/run/nvidia/driver/", "/dev/nvidia0", "/run/nvidia/driver/dev/nvidia0"),
        ("//run//nvidia", "/dev/nvidia0", "/run/nvidia/dev/nvidia0"),
        ("/run/nvidia/../driver", "/dev/nvidia0", "/run/driver/dev/nvidia0"),
        ("run", "/dev/nvidia0", "/run/dev/nvidia0"),
        ("/driver", "/driver-backup/x", "/driver/driver-backup/x"),
        ("/driver", "/driver/x", "/driver/driver/x"),
    ],
)
def test_what_is_found_lies_below_a_root_of_the_host(root: str, path: str, expected: str) -> None:
    assert host_path(root, path) == expected


_LETTERS = st.characters(codec="ascii", exclude_characters="/\0")
_NAMES = st.text(_LETTERS, min_size=1).filter(lambda name: name.strip("."))
_PATHS = st.lists(_NAMES, min_size=1).map(lambda names: "/" + "/".join(names))


@given(_PATHS, _PATHS)
def test_the_path_is_the_rest_of_the_hosts_path(root: str, path: str) -> None:
    assert host_path(root, path) == root + path
