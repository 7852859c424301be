"""Fixtures: a process that reads fake machines, shared by the tests of a folder."""

from collections.abc import Iterator

import pytest

from gpustow.hardware.nodemodel import load_node_model
from tests.nvml.fakedriver import FakeDriver
from tests.nvml.readerprocess import ReaderProcess


@pytest.fixture(scope="session")
def shared_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReaderProcess]:
    """The process; what it shows is whatever the last test left."""
    driver = FakeDriver(tmp_path_factory.mktemp("machine"), load_node_model("t4-4"))
    with ReaderProcess(driver) as process:
        yield process


@pytest.fixture
def machine(shared_process: ReaderProcess) -> ReaderProcess:
    """The process with the fake machine t4-4 as new."""
    shared_process.start(load_node_model("t4-4"))
    return shared_process
