"""Which reader a command reads the node with: a node model where one is named, else the driver of this machine."""

import platform
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gpustow.config import Config
from gpustow.hardware.node import NodeReader, Platform
from gpustow.injection.hostdevices import HostDevices

if TYPE_CHECKING:
    from gpustow.hardware.nvml.observer import CallObserver
    from gpustow.plugin.cdispecs import SpecMaker


def reader_maker(
    node_model: str | None, environ: Mapping[str, str], system_root: str = "/", calls: "CallObserver | None" = None
) -> Callable[[Config], NodeReader]:
    """What gives the reader for a configuration.

    It is the same reader as before, since a reader knows what it read before, unless the configuration says otherwise
    about where the driver is and how it is found. A simulated node's schedule of faults begins now. A real node's name
    is NODE_NAME where the manifest sets it, else that of the machine; `system_root` has its /sys and /proc, and
    `calls` is told of each call of its driver. Raises NodeModelError at once if the node model cannot be used, so that
    nothing is started for it.
    """
    if node_model is not None:
        reader = _simulated(node_model)
        return lambda _config: reader
    name = environ.get("NODE_NAME") or platform.node()
    machine = cache(lambda strategy, driver_root: _machine(name, strategy, driver_root, system_root, calls))
    return lambda config: machine(config.device_discovery_strategy.value, config.driver_root_ctr_path)


def host_reader(node_model: str | None) -> Callable[[Config, Platform], HostDevices]:
    """What reads which device nodes a node has beside those of its GPUs: a simulated one, or this machine."""
    from gpustow.plugin.hostreading import machine_host, simulated_host  # noqa: PLC0415 - after the signals are ours

    return machine_host if node_model is None else simulated_host


def spec_maker(node_model: str | None) -> "SpecMaker":
    """What makes the CDI specifications: those of a simulated node, or of this machine."""
    from gpustow.plugin.cdispecs import machine_specs, simulated_specs  # noqa: PLC0415 - as above

    return machine_specs if node_model is None else simulated_specs


def _simulated(node_model: str) -> NodeReader:
    from gpustow.hardware.nodemodel import load_node_model  # noqa: PLC0415 - a real node needs none of it
    from gpustow.hardware.simulated import SimulatedReader  # noqa: PLC0415 - as above

    start = time.monotonic()
    return SimulatedReader(load_node_model(node_model), elapsed=lambda: time.monotonic() - start)


def _machine(name: str, strategy: str, driver_root: str, system_root: str, calls: "CallObserver | None") -> NodeReader:
    from gpustow.hardware.machine import MachineReader  # noqa: PLC0415 - a simulated node needs none of it
    from gpustow.hardware.nvml import Places  # noqa: PLC0415 - as above

    return MachineReader(name, strategy, Places(driver_root, Path(system_root)), calls=calls)
