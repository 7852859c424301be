"""The plugins that speak for each resource, as the device manager keeps them, and what a loss means.

Versions differ (`Connections`). Only 1.37 knows several instances of one plugin: a second one on the same socket is
refused, and when one of several is lost another takes over without any device turning unhealthy.
"""

from random import Random
from typing import Protocol, assert_never

from gpustow.simulation.kubelet.behaviour import Behaviour, Connections
from gpustow.simulation.kubelet.endpoint import Endpoint, EndpointError
from gpustow.simulation.kubelet.state import DeviceState, Plugin


class Instances(Protocol):
    """Keeps `DeviceState.plugins`."""

    def connected(self, resource: str, plugin: Plugin, socket: str) -> None:
        """A plugin has connected; raises EndpointError if it is refused."""
        ...

    def disconnected(self, resource: str, endpoint: Endpoint, socket: str, now: float) -> bool:
        """A connection has ended; whether the resource is without a plugin now."""
        ...


def instances(state: DeviceState, behaviour: Behaviour, random: Random) -> Instances:
    """The way of a version to keep them."""
    connections = behaviour.connections
    if connections is Connections.BY_IDENTITY:
        return _OnlyTheLast(state, any_endpoint=False)
    if connections is Connections.BY_RESOURCE:
        return _OnlyTheLast(state, any_endpoint=True)
    if connections is Connections.BY_SOCKET:
        return _BySocket(state, random)
    assert_never(connections)


class _OnlyTheLast:
    """Until 1.36: the plugin that connected last. With `any_endpoint` every end of a connection is its end."""

    def __init__(self, state: DeviceState, *, any_endpoint: bool) -> None:
        self._state = state
        self._any_endpoint = any_endpoint

    def connected(self, resource: str, plugin: Plugin, socket: str) -> None:
        del socket
        self._state.plugins[resource] = plugin

    def disconnected(self, resource: str, endpoint: Endpoint, socket: str, now: float) -> bool:
        del socket
        plugin = self._state.plugins.get(resource)
        if plugin is None or not (self._any_endpoint or plugin.endpoint is endpoint):
            return False
        plugin.stopped_at = now
        return True


class _BySocket:
    """From 1.37 on: one plugin for each socket, of which one speaks for the resource."""

    def __init__(self, state: DeviceState, random: Random) -> None:
        self._state = state
        self._random = random
        self._plugins: dict[str, dict[str, Plugin]] = {}

    def connected(self, resource: str, plugin: Plugin, socket: str) -> None:
        by_socket = self._plugins.setdefault(resource, {})
        if socket in by_socket:
            raise EndpointError(f"device plugin already connected: {socket}")
        by_socket[socket] = self._state.plugins[resource] = plugin

    def disconnected(self, resource: str, endpoint: Endpoint, socket: str, now: float) -> bool:
        del endpoint
        by_socket = self._plugins.get(resource, {})
        plugin = by_socket.pop(socket, None)
        if plugin is None:
            return False
        plugin.stopped_at = now
        if by_socket:
            self._state.plugins[resource] = self._random.choice([*by_socket.values()])
        return not by_socket
