"""Which reader a command reads the node with: a node model where one is named, else the driver of this machine."""

import ctypes
import time
from collections.abc import Callable

from gpustow.config import Config
from gpustow.errors import HardwareError
from gpustow.hardware.node import Node, NodeReader
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.simulated import SimulatedReader

LIBRARY = "libnvidia-ml.so.1"
"""NVIDIA's management library, which comes with the driver."""


def reader_maker(node_model: str | None) -> Callable[[Config], NodeReader]:
    """What makes the reader for a configuration.

    Raises NodeModelError at once if the node model cannot be used, so that nothing is started for it.
    """
    if node_model is None:
        return lambda _config: DriverReader()
    start = time.monotonic()
    reader = SimulatedReader(load_node_model(node_model), elapsed=lambda: time.monotonic() - start)
    return lambda _config: reader


class DriverReader:
    """Reads the driver of this machine."""

    def read(self) -> Node:
        """Raises HardwareError: there is no driver, or there is one and this version cannot read it yet."""
        try:
            ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise HardwareError(
                f"there is no NVIDIA driver to read: {error}",
                advice="Install the driver, run under the NVIDIA container runtime, or serve a --node-model.",
            ) from error
        raise HardwareError(
            f"{LIBRARY} is there, but this version of gpustow cannot read it yet",
            advice="Serve a --node-model.",
        )
