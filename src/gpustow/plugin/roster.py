"""The devices that are served: those that are found, which of them are sick, and those that have left and may be held.

Three things change what is served, each at its own time: a reading of the node or a new configuration (`take`), what is
known of the health of devices (`mark`), and kubelet's word on what is held (`settle`). This keeps them apart and makes
one picture of them, `served`; a resource for which nothing has changed is the same object as before.

A device is healthy if the last reading found it and nothing is known against it. One that has left is unhealthy, as
long as a container may hold it (`continuity`), or as long as the driver lists its GPU and cannot read it: such a GPU is
sick, not gone. Where a reading makes no valid offer, the old one goes on with what was not found marked unhealthy.

One that only the configuration does not offer any more is unhealthy as well, so that nobody new gets it. But kubelet
may have chosen it a moment before, for a pod whose admission is under way, and that pod is answered: nothing is wrong
with the device (`ServedResource.withdrawn`).

Limits: of devices that left before this process started nothing is known.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpustow.hardware.node import Node, Platform
from gpustow.kubelet.devicefeed import device_list
from gpustow.plugin.continuity import successor
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.offer import Offer, ServedResource
from gpustow.resources.device import Device, Resource

log = logging.getLogger(__name__)

GONE = "it is not found any more"
UNREADABLE = "its GPU is lost or cannot be read"

_NAMES_AT_MOST = 8


class Roster:
    """What to serve, by the name of the resource. `usage` knows what is held, `clock` is the same as its."""

    def __init__(self, usage: NodeUsage, clock: Callable[[], float]) -> None:
        self._usage = usage
        self._clock = clock
        self._offered: Mapping[str, ServedResource] = {}
        self._basis: Mapping[str, ServedResource] = {}
        self._left_at: dict[tuple[str, str], float] = {}
        self._sick: Callable[[str], str | None] = _fit
        self._node: Node | None = None
        self._found: frozenset[str] | None = None
        self._cards: dict[str, str] = {}
        self.served: Mapping[str, ServedResource] = {}

    def see(self, node: Node) -> None:
        """Takes note of what the last reading found, whatever is made of it. To be followed by `take` or `settle`."""
        self._node = node
        cards = {
            uuid: gpu.uuid for gpu in node.gpus for uuid in (gpu.uuid, *(device.uuid for device in gpu.mig_devices))
        }
        listed = {device.uuid for served in self.served.values() for device in served.resource.devices}
        self._cards = {uuid: card for uuid, card in self._cards.items() if uuid in listed} | cards
        # On other platforms a device has a name of its own.
        self._found = frozenset(cards) if node.platform is Platform.NVML else None

    def take(self, offer: Offer) -> None:
        """Goes over to what the node and the configuration offer now."""
        self._offered = {served.resource.name: served for served in offer.served}
        self._compute()

    def mark(self, sick: Callable[[str], str | None]) -> None:
        """Goes over to what is known of health: `sick` says by UUID why a GPU or MIG device is unfit, if it is."""
        self._sick = sick
        self._compute()

    def settle(self) -> None:
        """Lets go of what is known not to be held by now."""
        self._compute()

    def forget(self) -> None:
        """Lets go of all that has left: another kubelet is served from now on, which has never heard of it."""
        self.served = {}
        self._left_at.clear()
        self._compute()

    @property
    def leaving(self) -> bool:
        """Whether devices are listed that have left."""
        return bool(self._left_at)

    @property
    def complaints(self) -> tuple[str, ...]:
        """What makes the node not ready: a sentence for each reason for which healthy GPUs are missing.

        A device that left because the operator cut its GPU otherwise, or named it otherwise, is no such reason.
        """
        by_reason: dict[str, dict[str, None]] = {}
        for served in self.served.values():
            for device in served.resource.devices:
                if not device.healthy and (reason := self._complaint(served, device)):
                    by_reason.setdefault(reason, {}).setdefault(device.uuid)
        return tuple(f"unhealthy: {_listed(list(uuids))} ({reason})" for reason, uuids in by_reason.items())

    def missing(self) -> Mapping[str, tuple[str, float | None]]:
        """Why devices are unhealthy against whose health nothing is known, by UUID; and when they left, if they did.

        The time is the clock's.
        """
        return {
            device.uuid: (
                UNREADABLE if self._is_unreadable(device) else GONE,
                self._left_at.get((served.resource.name, device.id)),
            )
            for served in self.served.values()
            for device in served.resource.devices
            if not device.healthy and self._sick(device.uuid) is None
        }

    def _complaint(self, served: ServedResource, device: Device) -> str | None:
        if reason := self._sick(device.uuid):
            return reason
        if self._is_unreadable(device):
            return UNREADABLE
        left = (served.resource.name, device.id) in self._left_at
        return GONE if not left or self._card_is_gone(device) else None

    def _compute(self) -> None:
        """Makes the picture anew."""
        self._note_leaving()
        now: dict[str, ServedResource] = {}
        for name in dict.fromkeys((*self._offered, *self.served)):
            served = self._one(name, self.served.get(name), self._offered.get(name))
            if served is not None:
                now[name] = served
        self._note_left(now)
        self._basis, self.served = self._offered, now

    def _note_leaving(self) -> None:
        """Notes when a device was first not offered any more, and has kubelet asked soon whether it is held."""
        for name, served in self.served.items():
            offered = self._offered.get(name)
            here = set() if offered is None else offered.resource.by_id.keys()
            gone = [id_ for id_ in served.resource.by_id if id_ not in here and (name, id_) not in self._left_at]
            if gone:
                self._left_at.update({(name, id_): self._clock() for id_ in gone})
                self._usage.changed()
                lost = [id_ for id_ in gone if self._is_unreadable(served.resource.by_id[id_])]
                left = [id_ for id_ in gone if id_ not in lost]
                if left:
                    log.info("%s: gone, and unhealthy as long as a container may hold it: %s", name, _listed(left))
                if lost:
                    log.info("%s: unhealthy until its GPU can be read again: %s", name, _listed(lost))

    def _note_left(self, now: Mapping[str, ServedResource]) -> None:
        """Forgets those that are offered again, or are listed no more."""
        for name in {name for name, _ in self._left_at}:
            offered, listed = self._offered.get(name), now.get(name)
            here = set() if offered is None else offered.resource.by_id.keys()
            left = set() if listed is None else listed.resource.by_id.keys() - here
            over = [id_ for resource, id_ in self._left_at if resource == name and id_ not in left]
            for id_ in over:
                del self._left_at[name, id_]
            if ended := [id_ for id_ in over if id_ not in here]:
                log.info("%s: not listed any more: %s", name, _listed(ended))

    def _one(self, name: str, old: ServedResource | None, new: ServedResource | None) -> ServedResource | None:
        """One resource as it is to be served from now on."""
        resource = successor(
            None if old is None else old.resource,
            None if new is None else new.resource,
            lambda device: self._stays(name, device),
        )
        base = new or old
        if resource is None or base is None:
            return None
        sick = {device.id for device in resource.devices if not device.healthy or self._is_sick(device)}
        withdrawn = self._withdrawn(resource, new)
        if new is not None and resource is new.resource and not sick:
            return new
        devices = tuple(
            replace(device, healthy=False) if device.healthy and device.id in sick else device
            for device in resource.devices
        )
        same = old is not None and (devices, withdrawn) == (old.resource.devices, old.withdrawn)
        if same and (base is old or base is self._basis.get(name)):
            return old
        inventory = base.inventory
        if set(inventory.sick) != {number for number, id_ in enumerate(inventory.ids) if id_ in sick}:
            inventory = inventory.with_health(sick)
        return replace(
            base,
            resource=replace(resource, devices=devices),
            inventory=inventory,
            device_list=device_list(devices),
            withdrawn=withdrawn,
        )

    def _withdrawn(self, resource: Resource, new: ServedResource | None) -> frozenset[str]:
        """The devices that are not offered any more although they are there and nothing is known against them."""
        here = set() if new is None else new.resource.by_id.keys()
        return frozenset(
            device.id for device in resource.devices if device.id not in here and not self._is_sick(device)
        )

    def _stays(self, name: str, device: Device) -> bool:
        since = self._left_at[name, device.id]
        return self._is_unreadable(device) or self._usage.may_be_held(name, device.id, since=since)

    def _is_sick(self, device: Device) -> bool:
        return self._sick(device.uuid) is not None or (self._found is not None and device.uuid not in self._found)

    def _card_is_gone(self, device: Device) -> bool:
        return self._found is not None and self._cards.get(device.uuid) not in self._found

    def _is_unreadable(self, device: Device) -> bool:
        return self._card_is_gone(device) and self._node is not None and device.gpu_index in self._node.unreadable


def _fit(_uuid: str) -> None:
    """Nothing is known against any device."""


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_AT_MOST
    listed = ", ".join(names[:_NAMES_AT_MOST])
    return f"{listed} and {more} more" if more > 0 else listed
