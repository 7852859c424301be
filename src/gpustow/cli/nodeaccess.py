"""How the daemon gets at its node: what reads it and tells of it, and what shows that it has changed.

A simulated node and a real one differ in each of these, and in nothing else that the daemon knows of.
"""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gpustow.cli.reader import host_reader, reader_maker, spec_maker
from gpustow.config import Config
from gpustow.hardware.node import Node, NodeReader, Platform
from gpustow.injection.cdi.specs import CdiSpecs
from gpustow.injection.hostdevices import HostDevices

if TYPE_CHECKING:
    from gpustow.hardware.simulated import SimulatedReader
    from gpustow.health.event import HealthSource
    from gpustow.telemetry.nvmlcounts import NvmlCounts


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """What the supervisor is given of a node; see there. All are asked anew for each configuration."""

    make_reader: Callable[[Config], NodeReader]
    read_host: Callable[[Config, Platform], HostDevices]
    make_specs: Callable[[Node, Config, HostDevices], CdiSpecs]
    make_source: Callable[[Config], "HealthSource"]
    traces: Callable[[Config], Hashable]
    mps_trouble: Callable[[str], Awaitable[str | None]]
    nvml_counts: "NvmlCounts | None" = None
    simulated: str | None = None
    """The name of the node model; None for this machine."""


def node_access(node_model: str | None, environ: Mapping[str, str], system_root: str = "/") -> NodeAccess:
    """The way to the node of a node model where one is named, else to this machine. Raises NodeModelError."""
    rest = host_reader(node_model), spec_maker(node_model)
    if node_model is None:
        counts = _nvml_counts()
        return NodeAccess(
            reader_maker(None, environ, system_root, counts),
            *rest,
            lambda config: _nvml_source(config, counts),
            lambda config: _traces(config, system_root),
            _mps_trouble,
            counts,
        )
    make_reader = reader_maker(node_model, environ, system_root)
    reader = cast("SimulatedReader", make_reader(Config()))
    return NodeAccess(
        make_reader,
        *rest,
        lambda _config: _simulated_source(reader),
        lambda _config: reader.phase(),
        _no_mps_trouble,
        simulated=node_model,
    )


def _nvml_counts() -> "NvmlCounts":
    from gpustow.telemetry.nvmlcounts import NvmlCounts  # noqa: PLC0415 - a simulated node needs none of it

    return NvmlCounts()


def _nvml_source(config: Config, counts: "NvmlCounts") -> "HealthSource":
    from gpustow.health.nvmlsource import NvmlSource  # noqa: PLC0415 - as above

    return NvmlSource(config.driver_root_ctr_path, calls=counts)


def _simulated_source(reader: "SimulatedReader") -> "HealthSource":
    from gpustow.health.simulatedsource import SimulatedSource  # noqa: PLC0415 - a real node needs none of it

    return SimulatedSource(reader.model, elapsed=reader.elapsed)


async def _mps_trouble(resource: str) -> str | None:
    from gpustow.mps import MpsControl  # noqa: PLC0415 - few nodes need it

    return await MpsControl().trouble(resource)


async def _no_mps_trouble(_resource: str) -> None:
    """A simulated node has the daemon of every resource."""


def _traces(config: Config, system_root: str) -> Hashable:
    from gpustow.plugin.lookout import device_traces  # noqa: PLC0415 - the daemon's own

    return device_traces((Path("/"), Path(config.driver_root_ctr_path or "/"), Path(system_root)))
