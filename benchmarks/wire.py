"""The wire as kubelet sees it: calls over the daemon's socket, from a client that sends bytes made before.

The client takes no part in the times beside grpc's own: requests are serialised before the clock starts, and answers
are not parsed. The null call says what the wire itself costs.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import grpc

from benchmarks.daemon import Daemon, running_daemon
from benchmarks.measurement import Measurement, measure
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.kubelet.protocol import services
from gpustow.kubelet.protocol.services import Method

SIZES = (1, 8, 64, 256)
REPLICAS = 100
POLICIES = ("packed", "distributed")


async def measure_wire(repeat: int) -> list[Measurement]:
    """The rows: the null call, GetPreferredAllocation, Allocate, and the first list of a new stream."""
    rows: list[Measurement] = []
    for policy in POLICIES:
        async with running_daemon(REPLICAS, policy) as daemon:
            with grpc.insecure_channel(f"unix:{daemon.socket}") as channel:
                client = Client(channel)
                ids = client.ids()
                rows += _preferences(client, policy, ids, repeat)
                if policy == POLICIES[-1]:
                    rows += _others(client, daemon, ids, repeat)
    return rows


def _as_is(message: bytes) -> bytes:
    return message


class Client:
    """Calls with bytes that give bytes."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def unary(self, method: Method[Any, Any], request: bytes) -> bytes:
        """One call."""
        return self._channel.unary_unary(method.path, _as_is, _as_is)(request, timeout=30)

    def first_list(self) -> bytes:
        """The list that a new stream begins with."""
        stream = self._channel.unary_stream(services.LIST_AND_WATCH.path, _as_is, _as_is)(b"", timeout=30)
        first = next(iter(stream))
        stream.cancel()
        return first

    def ids(self) -> list[str]:
        """The ids of that list."""
        return [device.ID for device in protocol.ListAndWatchResponse.FromString(self.first_list()).devices]


def _preferences(client: Client, policy: str, ids: list[str], repeat: int) -> Iterator[Measurement]:
    for size in SIZES:
        yield measure(
            f"grpc/GetPreferredAllocation/{policy}/{len(ids)}/{size}",
            partial(client.unary, services.GET_PREFERRED_ALLOCATION, preference(ids, size)),
            repeat=repeat,
        )


def preference(ids: list[str], size: int) -> bytes:
    """A GetPreferredAllocation for so many of these devices."""
    container = protocol.ContainerPreferredAllocationRequest(available_deviceIDs=ids, allocation_size=size)
    return protocol.PreferredAllocationRequest(container_requests=[container]).SerializeToString()


def _others(client: Client, daemon: Daemon, ids: list[str], repeat: int) -> Iterator[Measurement]:
    yield measure("grpc/null", lambda: client.unary(services.GET_DEVICE_PLUGIN_OPTIONS, b""), repeat=repeat, warm_up=20)
    container = protocol.ContainerAllocateRequest(devices_ids=ids[:1])
    request = protocol.AllocateRequest(container_requests=[container]).SerializeToString()
    yield measure("grpc/Allocate/1", lambda: client.unary(services.ALLOCATE, request), repeat=repeat)
    yield measure(f"grpc/ListAndWatch/first/{daemon.devices}", client.first_list, repeat=repeat)
