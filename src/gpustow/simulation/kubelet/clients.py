"""Kubelet's table of connected plugins, and the tasks that watch their lists.

A registration is never checked against the one before it: the new plugin replaces the old one while the old stream
may live on. What happens when the old stream ends is where versions differ.

* `ClientTable`, kubelet 1.36 and older, knows plugins by resource alone. The end of the old stream looks up the
  resource, finds the new plugin, and disconnects that: allocatable falls to 0 and stays there (kubernetes#127803).
  And if connecting to the new plugin fails, the entry is gone, so that nobody ever notices the end of the old one.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Protocol

from gpustow.simulation.kubelet.devices import PluginDevice
from gpustow.simulation.kubelet.endpoint import Endpoint, PluginOptions
from gpustow.simulation.kubelet.pluginclient import PluginClient


class PluginEvents(Protocol):
    """Who is told about plugins: the device manager."""

    def connected(self, resource: str, endpoint: Endpoint, options: PluginOptions) -> None:
        """A plugin has connected."""
        ...

    def listed(self, resource: str, devices: Iterable[PluginDevice]) -> None:
        """A plugin has sent its list."""
        ...

    def disconnected(self, resource: str) -> None:
        """A plugin was disconnected."""
        ...


class ClientTable:
    """The plugins by resource; `dial` makes the client for a resource and socket."""

    def __init__(self, events: PluginEvents, dial: Callable[[str, Path], PluginClient]) -> None:
        self._events = events
        self._dial = dial
        self._clients: dict[Hashable, PluginClient] = {}
        self._watches: set[asyncio.Task[None]] = set()

    async def connect(self, resource: str, socket: Path) -> None:
        """Connects to a plugin and starts to watch its list; EndpointError if it cannot be connected."""
        client = self._dial(resource, socket)
        self._clients[resource] = client
        try:
            await client.dial()
            options = await client.options()
        except BaseException:
            self._clients.pop(resource, None)
            await client.close()
            raise
        self._events.connected(resource, client, options)
        watch = asyncio.create_task(self._watch(client), name=f"watch {resource}")
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    async def _watch(self, client: PluginClient) -> None:
        async for devices in client.lists():
            self._events.listed(client.resource, devices)
        found = self._clients.pop(client.resource, None)
        if found is not None:
            await found.close()
            self._events.disconnected(client.resource)

    async def close(self) -> None:
        """Ends all connections; nobody is told."""
        clients, self._clients = self._clients, {}
        for watch in tuple(self._watches):
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        for client in clients.values():
            await client.close()
