"""Paths as the host has them."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.injection.cdi.hostpaths import HostPaths
from gpustow.injection.cdi.specification import CdiDeviceNode, CdiEdits, CdiHook, CdiMount

DRIVER_CONTAINER = (("/driver-root", "/run/nvidia/driver"), ("/driver-root/dev", "/dev"))


@pytest.mark.parametrize(
    ("rules", "path", "host"),
    [
        ([("/driver", "/host")], "/driver/lib/a", "/host/lib/a"),
        ([("/driver", "/host")], "/driver", "/host"),
        ([("/driver", "/host")], "/driver-backup/x", "/driver-backup/x"),
        ([("/driver", "/host")], "/x/driver/y", "/x/driver/y"),
        ([("/driver/", "/host/")], "/driver/lib", "/host/lib"),
        ([("/driver", "/")], "/driver/lib", "/lib"),
        ([("/driver", "/")], "/driver", "/"),
        ([("/", "/host")], "/lib/a", "/host/lib/a"),
        ([("/", "/")], "/lib/a", "/lib/a"),
        (DRIVER_CONTAINER, "/driver-root/usr/lib/a", "/run/nvidia/driver/usr/lib/a"),
        (DRIVER_CONTAINER, "/driver-root/dev/nvidia0", "/dev/nvidia0"),
        (DRIVER_CONTAINER, "/driver-root/device", "/run/nvidia/driver/device"),
        # Not twice, though what the first rule makes fits the second.
        ([("/a", "/b"), ("/b", "/c")], "/a/x", "/b/x"),
        ([], "/lib/a", "/lib/a"),
    ],
)
def test_the_longest_rule_that_fits_whole_parts_of_a_path_holds(
    rules: list[tuple[str, str]], path: str, host: str
) -> None:
    assert HostPaths.of(rules).path(path) == host


PARTS = st.lists(st.sampled_from(["dev", "driver", "driver-backup", "lib"]), max_size=4)
PATHS = PARTS.map(lambda parts: "/" + "/".join(parts))


@given(st.dictionaries(PATHS, PATHS, max_size=3), PATHS)
def test_a_path_is_what_the_longest_directory_above_it_says(rules: dict[str, str], path: str) -> None:
    fitting = [seen for seen in rules if PurePosixPath(path).is_relative_to(seen)]
    longest = max(fitting, key=len, default=None)
    expected = (
        path if longest is None else str(PurePosixPath(rules[longest]) / PurePosixPath(path).relative_to(longest))
    )
    assert HostPaths.of(rules.items()).path(path) == expected


def test_of_edits_host_paths_alone_are_rewritten() -> None:
    edits = CdiEdits(
        env=("A=/driver/x",),
        device_nodes=(
            CdiDeviceNode("/dev/nvidia0", "/driver/dev/nvidia0", gid=44),
            CdiDeviceNode("/dev/nvidia1", "/host/dev/nvidia1"),
            CdiDeviceNode("/driver/y"),
        ),
        mounts=(CdiMount("/driver/lib/a", "/driver/lib/a", ("ro",)),),
        hooks=(CdiHook("createContainer", "/driver/hook", ("hook", "--folder", "/driver/lib")),),
    )
    assert HostPaths.of([("/driver", "/host"), ("/driver/dev", "/dev")]).edits(edits) == CdiEdits(
        env=("A=/driver/x",),
        device_nodes=(
            CdiDeviceNode("/dev/nvidia0", gid=44),
            CdiDeviceNode("/dev/nvidia1", "/host/dev/nvidia1"),
            CdiDeviceNode("/driver/y", "/host/y"),
        ),
        mounts=(CdiMount("/host/lib/a", "/driver/lib/a", ("ro",)),),
        hooks=edits.hooks,
    )
