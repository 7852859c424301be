"""What the scenarios share: kubelet in one of its versions, our server on its own, requests, and parts of answers."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from gpustow.config import Config
from gpustow.hardware.node import Node
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.kubelet.protocol.services import DevicePluginCalls, unix_channel
from gpustow.kubelet.server import PluginServer
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.offer import Offer, ServedResource
from gpustow.plugin.service import ResourceService
from gpustow.plugin.timing import Timing
from gpustow.simulation.kubelet import Behaviour, EmbeddedKubelet
from tests.plugin.daemon import Daemon
from tests.plugin.samples import SHORT, Recorder, config

VERSIONS = ("1.24", "1.36", "1.37")
"""One kubelet of each way to know plugins apart: by connection, by resource, by socket."""


def embedded(directory: Path, version: str = "1.36") -> EmbeddedKubelet:
    """A kubelet that does not run yet; its directory for plugins is there."""
    kubelet = EmbeddedKubelet(directory, random=Random(1), behaviour=Behaviour.of(version))
    kubelet.plugin_directory.mkdir(exist_ok=True)
    return kubelet


def reseeded(daemon: Daemon, seed: int) -> Daemon:
    """The daemon with chances of its own: two in one test would else choose the same socket."""
    daemon.supervisor._serving.fleet._surroundings.random.seed(seed)
    return daemon


async def some_polls() -> None:
    """Long enough for the daemon to look at everything several times."""
    await asyncio.sleep(10 * SHORT.poll)


def offered(node: Node, settings: Config | None = None) -> ServedResource:
    """The first resource that a node has."""
    return Offer.of(node, settings or config()).served[0]


@asynccontextmanager
async def serving(
    directory: Path, resource: ServedResource, recorder: Recorder | None = None
) -> AsyncIterator[tuple[ResourceService, DevicePluginCalls]]:
    """The server of one resource on a socket, without kubelet; the calls come over that socket."""
    usage = NodeUsage(Timing(), lambda: 0.0)
    service = ResourceService(resource, recorder or Recorder(), lambda: None, usage, Random(1))
    server = PluginServer(service, directory / "s")
    await server.start()
    async with unix_channel(directory / "s") as channel:
        yield service, DevicePluginCalls(channel)
        service.feed.close()
    await server.stop()


def preference(available: Iterable[str], must: Iterable[str], size: int) -> protocol.PreferredAllocationRequest:
    asked = protocol.ContainerPreferredAllocationRequest(
        available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
    )
    return protocol.PreferredAllocationRequest(container_requests=[asked])


def allocation(*containers: Sequence[str]) -> protocol.AllocateRequest:
    return protocol.AllocateRequest(
        container_requests=[protocol.ContainerAllocateRequest(devices_ids=ids) for ids in containers]
    )


def health(devices: Iterable[protocol.Device]) -> dict[str, str]:
    return {device.ID: device.health for device in devices}


def told(device: protocol.Device) -> tuple[str, tuple[int, ...]]:
    """What a device is for kubelet beside its health: its id and its NUMA nodes."""
    return device.ID, tuple(node.ID for node in device.topology.nodes)
