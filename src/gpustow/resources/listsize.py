"""Whether kubelet can take the list of a resource's devices: it ends a stream with a message above 4 MiB.

Kubelet then takes the plugin for dead and all its devices with it (kubernetes#127049), so what cannot fit is refused
before anything is served. What counts is the largest that the list can come to be, which it is when every device is
unhealthy. The size is that of the ListAndWatchResponse of device plugin API v1beta1 in protocol buffers' encoding.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache

from gpustow.errors import ConfigError, Problem
from gpustow.resources.device import REPLICA_SEPARATOR, Device, Resource, numa_nodes_told

LIMIT = 4 << 20
"""The most bytes of a message that kubelet takes: the default of gRPC for Go, which it leaves as it is."""

WARN_ABOVE = 3_670_016
"""3.5 MiB: from here on a few more devices can be too many."""

_UNHEALTHY = len("Unhealthy")


def largest_list(devices: Sequence[Device]) -> int:
    """The bytes of the list of `devices` when all of them are unhealthy."""
    return sum(
        _entry(len(device.id.encode()), node) for device, node in zip(devices, numa_nodes_told(devices), strict=True)
    )


def check_list(resource: Resource) -> tuple[str, ...]:
    """A warning if the list of `resource` is nearly too large. Raises ConfigError if kubelet could not take it."""
    size = largest_list(resource.devices)
    if size <= WARN_ABOVE:
        return ()
    text = f"{_counted(resource.devices)} make a list of up to {size} bytes"
    highest = _most_replicas(resource.devices)
    hint = f"; the highest number of replicas that fits is {highest}" if highest else ""
    if size > LIMIT:
        raise ConfigError(
            "for this node",
            [Problem(resource.name, f"{text}, more than kubelet's limit of {LIMIT} bytes for a message{hint}")],
            advice="Share each device into fewer replicas.",
        )
    return (f"{resource.name}: {text}, close to kubelet's limit of {LIMIT} bytes for a message{hint}",)


def _counted(devices: Sequence[Device]) -> str:
    replicas = Counter(device.uuid for device in devices)
    counts = set(replicas.values())
    if len(counts) == 1 and devices[0].replica is not None:
        return f"{len(replicas)} devices x {counts.pop()} replicas = {len(devices)} entries"
    return f"{len(devices)} devices"


def _most_replicas(devices: Sequence[Device]) -> int:
    """How many replicas of each device fit; 0 if none do, or if there are no replicas to begin with."""
    firsts = [device for device in devices if device.replica == 0]
    bare = [
        (len(device.uuid.encode()) + len(REPLICA_SEPARATOR), node)
        for device, node in zip(firsts, numa_nodes_told(firsts), strict=True)
    ]
    room, most, digits = LIMIT, 0, 1
    while bare:
        one_more_each = sum(_entry(length + digits, node) for length, node in bare)
        in_this_length = 10**digits - most
        fitting = room // one_more_each
        if fitting < in_this_length:
            return most + fitting
        room -= in_this_length * one_more_each
        most += in_this_length
        digits += 1
    return 0


@cache
def _entry(id_length: int, node: int | None) -> int:
    """The bytes of one device in the list: its id, its health, and the NUMA node if there is one."""
    topology = 0 if node is None else _field(_field(0 if node == 0 else 1 + _varint(node)))
    return _field(_field(id_length) + _field(_UNHEALTHY) + topology)


def _field(length: int) -> int:
    """The bytes of a field with `length` bytes of content: tag and length before it."""
    return 1 + _varint(length) + length


def _varint(number: int) -> int:
    """The bytes of a number: seven bits in each."""
    return max(1, -(-number.bit_length() // 7))
