"""The Registration service: what kubelet checks when a plugin registers, and what it answers.

Kubelet answers only after it has connected back to the plugin and asked for its options, so a plugin must serve before
it registers. All refusals arrive as gRPC code UNKNOWN with a text, since kubelet returns plain errors.
"""

from pathlib import Path

import grpc

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.kubelet.protocol.services import API_VERSION, Context
from gpustow.simulation.kubelet.clients import ClientTable
from gpustow.simulation.kubelet.endpoint import EndpointError, PluginOptions
from gpustow.simulation.kubelet.journal import Journal, Registered
from gpustow.simulation.kubelet.resourcename import is_extended_resource_name


class RegistrationServer:
    """Serves Registration for the plugins of a directory; every call that ends goes into the journal."""

    def __init__(self, directory: Path, clients: ClientTable, journal: Journal) -> None:
        self._directory = directory
        self._clients = clients
        self._journal = journal

    async def register(self, request: wire.RegisterRequest, context: Context) -> wire.Empty:
        """Checks the request and connects to the plugin, which until 1.24 goes on after the answer."""
        options = PluginOptions(request.options.pre_start_required, request.options.get_preferred_allocation_available)
        refusal = self._refusal(request)
        if refusal is None:
            try:
                await self._clients.register(request.resource_name, self._socket(request.endpoint), options)
            except EndpointError as error:
                refusal = str(error)
        self._journal.registrations.append(
            Registered(request.resource_name, request.endpoint, request.version, options, refusal)
        )
        if refusal is not None:
            await context.abort(grpc.StatusCode.UNKNOWN, refusal)
        return wire.Empty()

    def _refusal(self, request: wire.RegisterRequest) -> str | None:
        if request.version != API_VERSION:
            return (
                f'requested API version "{request.version}" is not supported by kubelet. '
                f'Supported version is ["{API_VERSION}"]'
            )
        if not is_extended_resource_name(request.resource_name):
            return f'the ResourceName "{request.resource_name}" is invalid'
        return None

    def _socket(self, endpoint: str) -> Path:
        """Below the directory, also for an absolute path; `..` is not refused."""
        return self._directory / endpoint.lstrip("/")
