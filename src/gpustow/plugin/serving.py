"""What is served, and to which kubelet: the devices, the plugins that run for them, and what is in use.

The roster says what is to be served, the fleet serves it, kubelet's place is where. `apply` brings the three together
whenever one of them has changed; a change of health alone does not wait for it.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from gpustow.config import Config
from gpustow.errors import KubeletDirectoryError, PodResourcesError
from gpustow.kubelet.podresources import HeldDevice, PodResources, pod_resources_socket
from gpustow.kubelet.socketfile import check_directory, remove_stale_sockets
from gpustow.plugin.fleet import Fleet
from gpustow.plugin.offer import KubeletPlace
from gpustow.plugin.resource import Surroundings
from gpustow.plugin.roster import Roster

log = logging.getLogger(__name__)

_NOBODY = (
    "--kubelet-socket is empty, so nobody is registered with, and the sockets lie in this directory by default. Make "
    "it, writable. Or give --kubelet-socket a path in another directory: the sockets lie there, as soon as a kubelet "
    "has its socket at that path."
)


class Serving:
    """Serves what `roster` says. `default_directory` is where the sockets lie if there is no kubelet."""

    def __init__(self, surroundings: Surroundings, default_directory: Path) -> None:
        self._clock = surroundings.clock
        self._default_directory = default_directory
        self.usage = surroundings.usage
        self.roster = Roster(self.usage, self._clock)
        self.fleet = Fleet(surroundings)
        self.place = KubeletPlace(default_directory, None)

    def checked_place(self, config: Config) -> KubeletPlace:
        """Where `config` says that kubelet is. Raises KubeletDirectoryError if no sockets can be made there."""
        place = KubeletPlace.of(config, self._default_directory)
        try:
            check_directory(place.directory)
        except KubeletDirectoryError as error:
            if place.socket is None:
                raise KubeletDirectoryError(error.directory, error.reason, advice=_NOBODY) from error
            raise
        return place

    def go_to(self, place: KubeletPlace) -> None:
        """Serves there from now on; removes what a killed instance has left there."""
        self.place = place
        for path in remove_stale_sockets(place.directory):
            log.info("removed %s, which nobody serves any more", path)

    async def apply(self, place: KubeletPlace, group: asyncio.TaskGroup) -> None:
        """Has the plugins serve at `place` what the roster says; new ones run in `group`."""
        moved = place != self.place
        if moved:
            self.roster.forget()
        self.usage.serve(served.resource for served in self.roster.served.values())
        await self.fleet.end([name for name in self.fleet.names if moved or name not in self.roster.served], self.place)
        if moved:
            self.go_to(place)
        self.fleet.serve(self.roster.served.values(), place, group)

    def mark(self, sick: Callable[[str], str | None]) -> None:
        """Goes over to what is known of health, and tells kubelet at once; see `Roster.mark`."""
        self.roster.mark(sick)
        self.usage.serve(served.resource for served in self.roster.served.values())
        self.fleet.update(self.roster.served.values())

    async def list_held(self) -> tuple[HeldDevice, ...]:
        """Which container holds which device, from the kubelet that is registered with. Raises PodResourcesError."""
        if self.place.socket is None:
            raise PodResourcesError("nowhere", "there is no kubelet to register with")
        return await PodResources(pod_resources_socket(self.place.socket)).held()

    def clear(self) -> None:
        """Forgets what was served, once all plugins have ended."""
        self.fleet.clear()
        self.roster = Roster(self.usage, self._clock)
