"""Which reader a command reads the node with: a node model where one is named, else the driver of this machine."""

import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gpustow.config import Config
from gpustow.hardware.node import NodeReader


def reader_maker(
    node_model: str | None, environ: Mapping[str, str], system_root: str = "/"
) -> Callable[[Config], NodeReader]:
    """What gives the reader for a configuration: the same each time, since a reader knows what it read before.

    A simulated node's schedule of faults begins now. A real node's name is NODE_NAME where the manifest sets it, else
    that of the machine; `system_root` has its /sys and /proc. Raises NodeModelError at once if the node model cannot be
    used, so that nothing is started for it.
    """
    reader = _driver(environ, system_root) if node_model is None else _simulated(node_model)
    return lambda _config: reader


def _simulated(node_model: str) -> NodeReader:
    from gpustow.hardware.nodemodel import load_node_model  # noqa: PLC0415 - a real node needs none of it
    from gpustow.hardware.simulated import SimulatedReader  # noqa: PLC0415 - as above

    start = time.monotonic()
    return SimulatedReader(load_node_model(node_model), elapsed=lambda: time.monotonic() - start)


def _driver(environ: Mapping[str, str], system_root: str) -> NodeReader:
    from gpustow.hardware.nvml import NvmlReader, Places  # noqa: PLC0415 - a simulated node needs none of it

    return NvmlReader(environ.get("NODE_NAME") or platform.node(), Places(system_root=Path(system_root)))
