"""Kubelet's table of connected plugins, and the tasks that watch their lists.

A registration is never checked against the one before it: the new plugin replaces the old one while the old stream may
live on. What happens when the old stream ends is where versions differ (`Connections`).

* 1.24 and older: the end of a plugin that was replaced means nothing.
* 1.25 to 1.36: the table knows plugins by resource alone. The end of the old stream looks up the resource, finds the
  new plugin, and disconnects that: allocatable falls to 0 and stays there (kubernetes#127803). And if connecting to the
  new plugin fails, the entry is gone, so that nobody ever notices the end of the old one.
* 1.37: the table knows them by resource and socket. Instances with different sockets do not disturb each other. One
  that registers on the socket of one that is still connected is refused, and takes the entry of that one with it: the
  end of the old stream is never noticed, and nobody can register on that socket again until kubelet restarts.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable
from pathlib import Path
from typing import Protocol, assert_never

from gpustow.simulation.kubelet.behaviour import Behaviour, Connections
from gpustow.simulation.kubelet.devices import PluginDevice
from gpustow.simulation.kubelet.endpoint import Endpoint, EndpointError, PluginOptions
from gpustow.simulation.kubelet.pluginclient import PluginClient


class PluginEvents(Protocol):
    """Who is told about plugins: the device manager."""

    def connected(self, resource: str, endpoint: Endpoint, options: PluginOptions, socket: str) -> None:
        """A plugin has connected; raises EndpointError if it is refused."""
        ...

    def listed(self, resource: str, devices: Iterable[PluginDevice]) -> None:
        """A plugin has sent its list."""
        ...

    def disconnected(self, resource: str, endpoint: Endpoint, socket: str) -> None:
        """A plugin was disconnected."""
        ...


class ClientTable:
    """The connected plugins; `dial` makes the client for a resource and socket.

    `open` has every connection that is not closed yet, those of replaced plugins included. What ends together ends in
    the order in which it began, so that chance alone decides what is arbitrary.
    """

    def __init__(self, events: PluginEvents, dial: Callable[[str, Path], PluginClient], behaviour: Behaviour) -> None:
        self._events = events
        self._dial = dial
        self._behaviour = behaviour
        self._clients: dict[Hashable, PluginClient] = {}
        self.open: dict[PluginClient, None] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def register(self, resource: str, socket: Path, options: PluginOptions) -> None:
        """Connects to a plugin and starts to watch its list.

        Until 1.24 this goes on in the background with the options of the request; since then the plugin is asked for
        them, and EndpointError is raised if it cannot be connected.
        """
        client = self._dial(resource, socket)
        if self._behaviour.connects_in_register:
            await self._connect(client, None)
        else:
            self._spawn(self._connect_quietly(client, options), f"connect {resource}")

    async def _connect_quietly(self, client: PluginClient, options: PluginOptions) -> None:
        try:
            await self._connect(client, options)
        except EndpointError:
            return

    async def _connect(self, client: PluginClient, options: PluginOptions | None) -> None:
        self._clients[self._key(client)] = client
        self.open[client] = None
        try:
            await client.dial()
            options = options or await client.options()
            self._events.connected(client.resource, client, options, str(client.socket))
        except BaseException:
            self._clients.pop(self._key(client), None)
            await self._close(client)
            raise
        self._spawn(self._watch(client), f"watch {client.resource}")

    def _key(self, client: PluginClient) -> Hashable:
        connections = self._behaviour.connections
        if connections is Connections.BY_RESOURCE:
            return client.resource
        if connections is Connections.BY_SOCKET:
            return client.resource, client.socket
        if connections is Connections.BY_IDENTITY:
            return client
        assert_never(connections)

    async def _watch(self, client: PluginClient) -> None:
        async for devices in client.lists():
            self._events.listed(client.resource, devices)
        found = self._clients.pop(self._key(client), None)
        if found is None:
            return
        self._events.disconnected(client.resource, found, str(found.socket))
        for ended in dict.fromkeys((client, found)):
            await self._close(ended)

    async def _close(self, client: PluginClient) -> None:
        self.open.pop(client, None)
        await client.close()

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def close(self) -> None:
        """Ends all connections; nobody is told."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in tuple(self.open):
            await self._close(client)
        self._clients.clear()
