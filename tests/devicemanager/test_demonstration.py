"""What docs/kubernetes.md shows of the policies is what kubelet does. It is written anew with GPUSTOW_WRITE_DOCS=1."""

from pathlib import Path

from tests.devicemanager.backend import Backend
from tests.devicemanager.demonstration import EXHIBITS, table
from tests.devicemanager.documentation import check_part


async def test_the_documentation_shows_which_devices_pods_get_under_each_policy(
    backend: Backend, directory: Path
) -> None:
    lines: list[str] = []
    for exhibit in EXHIBITS:
        lines += [f"### {exhibit.title}", "", *await table(backend, directory, exhibit), ""]
    check_part("kubernetes.md", "demonstration", ["", *lines])
