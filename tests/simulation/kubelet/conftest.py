import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest


@pytest.fixture
def directory() -> Iterator[Path]:
    """Kubelet's directory; short, because a unix socket's path has 107 bytes and pytest's own are long."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as name:
        yield Path(name)


@pytest.fixture
def random() -> Random:
    return Random(1)
