"""Which devices a resource is served with when the node or the configuration has changed under it.

A device that was served and is not found any more must not just leave the list. Kubelet remembers which container
holds it, and with a Topology Manager policy kubelet 1.36 crashes when it looks again at a pod whose device it cannot
find; in the pod's status such a device would read healthy. So it stays, unhealthy, as long as a container may hold it,
and nobody new gets it meanwhile. A resource of which nothing is found stays as long as it has such a device.

Limits: what is gone is given up where the list would grow too large for kubelet, because then kubelet would drop the
whole resource.
"""

from collections.abc import Callable
from dataclasses import replace

from gpustow.resources.device import Device, Resource
from gpustow.resources.listsize import LIMIT, largest_list


def successor(old: Resource | None, new: Resource | None, stays: Callable[[Device], bool]) -> Resource | None:
    """What to serve after `old`, now that `new` is found; None of either is that there is no such resource.

    `stays` is asked about each device of `old` that `new` has not: whether a container may hold it. None as the answer
    is the end of the resource. What is new is served as it is found.
    """
    kept = () if old is None else _kept(old, new, stays)
    if not kept:
        return new
    if new is None:
        return None if old is None else replace(old, devices=kept)
    devices = tuple(sorted((*new.devices, *kept), key=_order))
    return new if largest_list(devices) > LIMIT else replace(new, devices=devices)


def _kept(old: Resource, new: Resource | None, stays: Callable[[Device], bool]) -> tuple[Device, ...]:
    """The devices of `old` that are not found and stay, unhealthy."""
    return tuple(
        replace(device, healthy=False)
        for device in old.devices
        if (new is None or device.id not in new.by_id) and stays(device)
    )


def _order(device: Device) -> tuple[int, int, str, int]:
    """Devices by GPU, MIG device, replica."""
    return device.gpu_index, device.edge, device.uuid, -1 if device.replica is None else device.replica
