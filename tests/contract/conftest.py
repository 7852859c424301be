import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def directory() -> Iterator[Path]:
    """Kubelet's directory; short, because a unix socket's path has 107 bytes and pytest's own are long."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as name:
        yield Path(name)
