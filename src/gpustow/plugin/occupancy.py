"""What is in use on the node, over all resources of this daemon: read from kubelet in quiet moments, else remembered.

A request says which devices of its own resource are free. What other resources hold of the same cards (MIG profiles
beside each other) it does not say, nor whether a device is in use or only withheld for its NUMA node. Kubelet's
PodResources service knows; but a List makes kubelet let go of the devices of dead pods, and doing that inside an
admission can hand a device out twice. So the list is read only when no admission is under way: some time after the last
Allocate, at the latest half a minute after the first, and every half minute, for devices that are given back.

Between two lists, and where there is none, the calls themselves keep the picture: what is allocated is in use, what is
offered is free, and without any list the healthy devices that are not offered are in use.

Whether a device that has left the node may be forgotten is asked here as well; see `may_be_held`.

An admission counts as under way from GetPreferredAllocation to the end of Allocate, or until `admission` seconds have
passed, since not every preference is followed by an Allocate. One that begins while a List runs ends the List.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from gpustow.config.resourcename import PREFIX
from gpustow.kubelet.podresources import HeldDevice
from gpustow.kubelet.socketfile import SocketFacts
from gpustow.placement import Occupancy
from gpustow.plugin.timing import Timing
from gpustow.resources.device import REPLICA_SEPARATOR, Resource

log = logging.getLogger(__name__)

ListHeld = Callable[[], Coroutine[Any, Any, tuple[HeldDevice, ...]]]
"""Asks kubelet which container holds which device."""


class NodeUsage:
    """The devices in use; told by the handlers what happens, asked by them what is known.

    `clock` gives seconds that only go up.
    """

    def __init__(self, timing: Timing, clock: Callable[[], float]) -> None:
        self._timing = timing
        self._clock = clock
        self._resources: tuple[Resource, ...] = ()
        self._held: dict[str, set[str]] = {}
        self._holders: dict[tuple[str, str], list[HeldDevice]] = {}
        self._is_listed = False
        self._listed_at: float | None = None
        self._kubelet: SocketFacts | None = None
        self._kubelet_since = clock()
        self._looked_at = clock()
        self._asked_at: dict[str, float] = {}
        self._changed_at: float | None = None
        self._unread_since: float | None = None
        self._allocated: dict[str, set[str]] = {}
        self._listing: asyncio.Task[tuple[HeldDevice, ...]] | None = None
        self._told = ""

    def serve(self, resources: Iterable[Resource]) -> None:
        """These are the resources from now on."""
        self._resources = tuple(resources)

    def asked(self, resource: Resource, available: Sequence[str], *, numa_nodes: int) -> Occupancy:
        """An admission begins: what is in use beside what kubelet offers for `resource`, on so many NUMA nodes."""
        self._asked_at[resource.name] = self._clock()
        if self._listing is not None:
            self._listing.cancel()
        occupancy = Occupancy.seen(resource, self._resources, self._held)
        if len(self._resources) > 1 or not self._is_listed:
            in_use = self._held.get(resource.name, set()) if self._is_listed else _healthy(resource)
            self._held[resource.name] = in_use.difference(available)
        # Kubelet withholds free devices only to choose between NUMA nodes.
        return occupancy if self._is_listed and numa_nodes > 1 else replace(occupancy, in_use=None)

    def allocated(self, resource: Resource, ids: Sequence[str]) -> None:
        """An admission ends with these devices."""
        self._asked_at.pop(resource.name, None)
        self.changed()
        for held in (self._held, self._allocated):
            held.setdefault(resource.name, set()).update(ids)

    def changed(self) -> None:
        """Something has happened that the list is to be read for, soon."""
        self._changed_at = self._clock()
        if self._unread_since is None:
            self._unread_since = self._changed_at

    def registered(self, kubelet: SocketFacts | None) -> None:
        """A plugin has registered with the kubelet that has this socket."""
        if kubelet != self._kubelet:
            self._kubelet = kubelet
            self._kubelet_since = self._clock()

    @property
    def is_listed(self) -> bool:
        """Whether kubelet's list says what is in use; else the calls do."""
        return self._is_listed

    @property
    def held(self) -> Mapping[str, AbstractSet[str]]:
        """The ids in use by the name of their resource, as far as is known."""
        return self._held

    @property
    def holders(self) -> Mapping[tuple[str, str], Sequence[HeldDevice]]:
        """The containers that hold a device, by its resource and id, as the list says; none without a list."""
        return self._holders

    def may_be_held(self, resource: str, device_id: str, *, since: float) -> bool:
        """Whether a container may hold a device that kubelet was told at `since` not to give away any more.

        Only a list says that none does: the last one, if it was read well and long enough after that. A kubelet that
        has just started does not know all its pods yet, and is not believed either.
        """
        return not self._is_believed(since) or device_id in self._held.get(resource, ())

    def held_uuids(self, since: float) -> frozenset[str] | None:
        """The UUIDs of all devices with a name of ours that containers hold, of replicas those of their devices.

        Also those that an earlier process gave them, and those of resources that are not served any more. None if there
        is no list to be believed about what was answered until `since`.
        """
        if not self._is_believed(since):
            return None
        held = (id_ for name, ids in self._held.items() if name.startswith(PREFIX) for id_ in ids)
        return frozenset(id_.partition(REPLICA_SEPARATOR)[0] for id_ in held)

    def _is_believed(self, since: float) -> bool:
        believed_from = max(since + self._timing.usage_settles, self._kubelet_since + self._timing.kubelet_settles)
        return self._listed_at is not None and self._listed_at >= believed_from

    async def watch(self, list_held: ListHeld, on_list: Callable[[], None] = lambda: None) -> None:
        """Reads the list whenever that is due and all is quiet, until cancelled; each time calls `on_list`."""
        while True:
            await asyncio.sleep(self._timing.poll)
            if self._is_due():
                await self.read(list_held)
                on_list()

    def _is_due(self) -> bool:
        """Whether the list is to be read now: something changed or time has passed, and no admission is under way."""
        now, timing = self._clock(), self._timing
        if any(now - asked < timing.admission for asked in self._asked_at.values()):
            return False
        if self._changed_at is not None and self._unread_since is not None:
            is_settled = now - self._changed_at >= timing.usage_settles
            return is_settled or now - self._unread_since >= timing.usage_every
        return now - self._looked_at >= timing.usage_every

    async def read(self, list_held: ListHeld) -> None:
        """Reads the list now, unless an admission begins meanwhile. Fails in no way."""
        began = self._clock()
        self._allocated = {}
        listing = self._listing = asyncio.create_task(list_held(), name="list pod resources")
        try:
            await asyncio.wait([listing])
        finally:
            self._listing = None
            listing.cancel()
        if listing.cancelled():
            return
        self._looked_at = self._clock()
        is_unread = self._changed_at is not None and self._changed_at > began
        self._changed_at = self._unread_since = self._changed_at if is_unread else None
        if error := listing.exception():
            self._is_listed = False
            self._listed_at = None
            self._holders = {}
            self._tell(f"what is in use is taken from the calls of kubelet alone: {error}")
            return
        self._take(listing.result())
        self._listed_at = began

    def _take(self, devices: Iterable[HeldDevice]) -> None:
        """Goes over to the list, and to what was allocated while it was made."""
        held: dict[str, set[str]] = {}
        holders: dict[tuple[str, str], list[HeldDevice]] = {}
        for device in devices:
            held.setdefault(device.resource, set()).add(device.device_id)
            holders.setdefault((device.resource, device.device_id), []).append(device)
        for name, ids in self._allocated.items():
            held.setdefault(name, set()).update(ids)
        self._held = held
        self._holders = holders
        self._is_listed = True
        self._tell("what is in use is read from kubelet's PodResources service")

    def _tell(self, sentence: str) -> None:
        """Logs what is new."""
        if sentence != self._told:
            log.info("%s", sentence)
        self._told = sentence


def _healthy(resource: Resource) -> set[str]:
    return {device.id for device in resource.devices if device.healthy}
