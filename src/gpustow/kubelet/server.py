"""The gRPC server of one resource on its own socket.

A server lives from `start` to `stop` and is never used again: the next one gets a new socket. `start` returns when the
server has answered a call over its socket, so that kubelet can dial it from inside Register. grpc does not notice
when its socket file is deleted, and on stop it deletes by path whatever is there; so the socket's facts are kept
here, and the path must be one that nobody else will use.

Limits: the socket is open to its owner and root alone, which kubelet is. For that the process's file mode mask is set
while the socket is bound, since a mode that is set afterwards comes too late; a file that another thread makes in that
moment is narrower than it meant, never wider.
"""

import asyncio
import os
from pathlib import Path

import grpc

from gpustow.errors import PluginServerError
from gpustow.kubelet.bindfailure import bind_failure
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import Empty
from gpustow.kubelet.protocol.services import (
    RECEIVE_LIMIT,
    DevicePluginCalls,
    DevicePluginService,
    device_plugin_handler,
    unix_address,
    unix_channel,
)
from gpustow.kubelet.socketfile import SocketFacts

SELF_DIAL_SECONDS = 5.0
"""How long the server may take to answer its own first call; v0.20.0 gives its dial as long."""

_STOP_GRACE_SECONDS = 0.5
_NARROW = 0o177


class PluginServer:
    """Serves `service` on the unix socket `path`."""

    def __init__(self, service: DevicePluginService, path: Path) -> None:
        self.path = path
        self._facts: SocketFacts | None = None
        options = (("grpc.max_receive_message_length", RECEIVE_LIMIT),)
        self._server = grpc.aio.server(handlers=[device_plugin_handler(service)], options=options)

    async def start(self) -> None:
        """Binds, serves, and dials itself; raises PluginServerError, after which there is nothing to stop."""
        try:
            self._bind()
            await self._server.start()
            self._facts = SocketFacts.of(self.path)
            await self._dial()
        except BaseException:
            await self.stop()
            raise

    def _bind(self) -> None:
        # The mask and not a later mode, so that at no moment anybody else can connect.
        mask = os.umask(_NARROW)
        try:
            self._server.add_insecure_port(unix_address(self.path))
        except RuntimeError as error:
            why = bind_failure(self.path)
            if why is None:
                raise PluginServerError(str(self.path), str(error)) from error
            raise PluginServerError(str(self.path), why.reason, advice=why.advice) from error
        finally:
            os.umask(mask)

    async def _dial(self) -> None:
        async with unix_channel(self.path) as channel:
            try:
                await DevicePluginCalls(channel).get_device_plugin_options(Empty(), timeout=SELF_DIAL_SECONDS)
            except grpc.aio.AioRpcError as error:
                raise PluginServerError(str(self.path), f"it does not answer ({error.details()})") from error

    def intact(self) -> bool:
        """Whether the socket file is still the one that was bound."""
        return self._facts is not None and SocketFacts.of(self.path) == self._facts

    async def stop(self) -> None:
        """Stops at once for new calls, soon for those in flight, and removes the socket file.

        Streams must have been told to end before, or they use up the grace. Cancelling this does not cut it short:
        grpc would leave the callers of a server that is stopped by half without an answer.
        """
        stopping = asyncio.create_task(self._server.stop(_STOP_GRACE_SECONDS))
        cancelled: asyncio.CancelledError | None = None
        while not stopping.done():
            try:
                await asyncio.wait([stopping])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        stopping.result()
