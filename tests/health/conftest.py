from collections.abc import Iterator

import pytest

from gpustow.hardware.nodemodel import parse_node_model
from tests.health.watchedmachine import NODE, WatchedMachine
from tests.nvml.machine import shared_process
from tests.nvml.readerprocess import ReaderProcess

__all__ = ["shared_process"]


@pytest.fixture
def machine(shared_process: ReaderProcess) -> Iterator[WatchedMachine]:
    """A new machine with three GPUs, all well, and a source that is to watch them."""
    watched = WatchedMachine(shared_process)
    watched.start(parse_node_model(NODE, "node"))
    yield watched
    watched.close()
