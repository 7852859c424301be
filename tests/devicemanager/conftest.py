"""Which kubelets the tests of this folder run on: always the embedded one, and on request the real device manager.

`pytest tests/devicemanager --device-manager=1.36,1.37` (or `=all`) adds the device managers of these versions of
Kubernetes, built by `program.py`; where one cannot be had its tests are skipped, with the reason. `make
test-devicemanager` does that. A plain `pytest` needs no Go and runs on the embedded kubelet alone.
"""

import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest

from gpustow.plugin import service
from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import place_and_note
from tests.devicemanager.program import PROGRAMS, ProgramUnavailableError, missing
from tests.devicemanager.table import Table

OPTION = "--device-manager"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, default="", help="versions of the real device manager to test with, or `all`")


def device_managers(config: pytest.Config) -> list[Backend]:
    asked = str(config.getoption(OPTION, default=""))
    versions = [*PROGRAMS] if asked == "all" else asked.split(",") if asked else []
    return [Backend(version) for version in versions]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[Table.KEY] = Table()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The test of the table comes last, whatever the order of the others, and only where there is a table."""
    about_table = [item for item in items if item.path.name == "test_table.py"]
    items[:] = [item for item in items if item not in about_table]
    config.stash[Table.KEY].expect(items)
    if device_managers(config):
        items += about_table
    else:
        _leave_out_comparisons(config, items)


def _leave_out_comparisons(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a real device manager there is nothing that the embedded kubelet could be compared with."""
    comparisons = [item for item in items if "device_manager" in getattr(item, "fixturenames", ())]
    items[:] = [item for item in items if item not in comparisons]
    config.hook.pytest_deselected(items=comparisons)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.config.stash[Table.KEY].note(item, report)
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`backend` is every kubelet, `device_manager` the real ones alone."""
    real = device_managers(metafunc.config)
    for name, backends in (("backend", [Backend(embedded=True), *real]), ("device_manager", real)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, backends, ids=lambda value: str(value).replace(" ", "-"), indirect=True)


@pytest.fixture(autouse=True)
def _note_what_kubelet_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "place", place_and_note)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    return _to_be_had(request)


@pytest.fixture
def device_manager(request: pytest.FixtureRequest) -> Backend:
    return _to_be_had(request)


def _to_be_had(request: pytest.FixtureRequest) -> Backend:
    asked: Backend = request.param
    if not asked.embedded and (reason := _lacking(asked.version)) is not None:
        pytest.skip(f"no device manager: {reason}")
    return asked


@cache
def _lacking(version: str) -> str | None:
    """Why there is no device manager of this version; it is built if need be."""
    if (reason := missing()) is not None:
        return reason
    try:
        PROGRAMS[version].build()
    except ProgramUnavailableError as error:
        return str(error)
    return None


@pytest.fixture
def directory() -> Iterator[Path]:
    """Kubelet's directory; short, because a unix socket's path has 107 bytes and pytest's own are long."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as name:
        (Path(name) / "device-plugins").mkdir()
        yield Path(name)
