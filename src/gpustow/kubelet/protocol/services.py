"""The services of the protocols: method paths, typed handlers to serve them, typed calls to use them.

grpcio generates untyped code for services; here each method is one value, `Method`, that knows its path and its
messages. A server is built from an object that has the service's methods (`registration_handler(service)`), a client
is an object that has them as calls (`RegistrationCalls(channel).register(request, timeout=15)`).

An answer may be the message or its bytes, so that what is sent often can be serialised once.

Limits: only unary calls and server streams, which is all that kubelet uses.
"""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar
from urllib.parse import quote

import grpc
from google.protobuf.message import Message

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as device_plugin
from gpustow.kubelet.protocol import podresources_v1_pb2 as pod_resources

API_VERSION = "v1beta1"
"""The only version of the device plugin API that kubelet supports."""

HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"

RECEIVE_LIMIT = 16 << 20
"""How many bytes a message may have that we receive; grpc's own limit is 4 MiB, less than some kubelets send."""

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
"""What a handler is given beside the request: to abort with a code, to see whether the caller is still there."""

Call: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[Request, Response]"
Stream: TypeAlias = "grpc.aio.UnaryStreamMultiCallable[Request, Response]"


def encode(message: Message | bytes) -> bytes:
    """The bytes of a message; bytes are taken for a message that is serialised already."""
    return message if isinstance(message, bytes) else message.SerializeToString()


@dataclass(frozen=True, slots=True)
class Method(Generic[Request, Response]):
    """One method of a service: `service` is the full name with its package."""

    service: str
    name: str
    request: type[Request]
    response: type[Response]

    @property
    def path(self) -> str:
        """The path on the wire."""
        return f"/{self.service}/{self.name}"

    def call(self, channel: grpc.aio.Channel) -> "Call[Request, Response]":
        """The method as a call on a channel."""
        return channel.unary_unary(self.path, encode, self.response.FromString)

    def stream(self, channel: grpc.aio.Channel) -> "Stream[Request, Response]":
        """The method as a call on a channel that gives a stream of responses."""
        return channel.unary_stream(self.path, encode, self.response.FromString)

    def serve(self, handler: Callable[[Request, Context], Any]) -> "grpc.RpcMethodHandler[Any, Any]":
        """A coroutine function as the handler of the method."""
        return grpc.unary_unary_rpc_method_handler(handler, self.request.FromString, encode)

    def serve_stream(self, handler: Callable[[Request, Context], Any]) -> "grpc.RpcMethodHandler[Any, Any]":
        """An async generator function as the handler of the method."""
        return grpc.unary_stream_rpc_method_handler(handler, self.request.FromString, encode)


REGISTRATION = "v1beta1.Registration"
REGISTER = Method(REGISTRATION, "Register", device_plugin.RegisterRequest, device_plugin.Empty)

DEVICE_PLUGIN = "v1beta1.DevicePlugin"
GET_DEVICE_PLUGIN_OPTIONS = Method(
    DEVICE_PLUGIN, "GetDevicePluginOptions", device_plugin.Empty, device_plugin.DevicePluginOptions
)
LIST_AND_WATCH = Method(DEVICE_PLUGIN, "ListAndWatch", device_plugin.Empty, device_plugin.ListAndWatchResponse)
GET_PREFERRED_ALLOCATION = Method(
    DEVICE_PLUGIN,
    "GetPreferredAllocation",
    device_plugin.PreferredAllocationRequest,
    device_plugin.PreferredAllocationResponse,
)
ALLOCATE = Method(DEVICE_PLUGIN, "Allocate", device_plugin.AllocateRequest, device_plugin.AllocateResponse)
PRE_START_CONTAINER = Method(
    DEVICE_PLUGIN,
    "PreStartContainer",
    device_plugin.PreStartContainerRequest,
    device_plugin.PreStartContainerResponse,
)

POD_RESOURCES_LISTER = "v1.PodResourcesLister"
LIST = Method(
    POD_RESOURCES_LISTER, "List", pod_resources.ListPodResourcesRequest, pod_resources.ListPodResourcesResponse
)
GET_ALLOCATABLE_RESOURCES = Method(
    POD_RESOURCES_LISTER,
    "GetAllocatableResources",
    pod_resources.AllocatableResourcesRequest,
    pod_resources.AllocatableResourcesResponse,
)
GET = Method(POD_RESOURCES_LISTER, "Get", pod_resources.GetPodResourcesRequest, pod_resources.GetPodResourcesResponse)

METHODS: tuple[Method[Any, Any], ...] = (
    REGISTER,
    GET_DEVICE_PLUGIN_OPTIONS,
    LIST_AND_WATCH,
    GET_PREFERRED_ALLOCATION,
    ALLOCATE,
    PRE_START_CONTAINER,
    LIST,
    GET_ALLOCATABLE_RESOURCES,
    GET,
)
"""All of them."""


class RegistrationService(Protocol):
    """What kubelet serves to plugins."""

    async def register(self, request: device_plugin.RegisterRequest, context: Context) -> device_plugin.Empty:
        """Takes a plugin's registration."""
        ...


class DevicePluginService(Protocol):
    """What a plugin serves to kubelet."""

    async def get_device_plugin_options(
        self, request: device_plugin.Empty, context: Context
    ) -> device_plugin.DevicePluginOptions | bytes:
        """Which optional calls the plugin wants."""
        ...

    def list_and_watch(
        self, request: device_plugin.Empty, context: Context
    ) -> AsyncIterator[device_plugin.ListAndWatchResponse | bytes]:
        """The complete list at once, and again when it changes."""
        ...

    async def get_preferred_allocation(
        self, request: device_plugin.PreferredAllocationRequest, context: Context
    ) -> device_plugin.PreferredAllocationResponse | bytes:
        """Which of the available devices to take."""
        ...

    async def allocate(
        self, request: device_plugin.AllocateRequest, context: Context
    ) -> device_plugin.AllocateResponse | bytes:
        """What to put into a container that gets these devices."""
        ...

    async def pre_start_container(
        self, request: device_plugin.PreStartContainerRequest, context: Context
    ) -> device_plugin.PreStartContainerResponse | bytes:
        """Readies the devices before a container starts."""
        ...


class PodResourcesService(Protocol):
    """What kubelet serves to those who ask which pod holds what."""

    async def list(
        self, request: pod_resources.ListPodResourcesRequest, context: Context
    ) -> pod_resources.ListPodResourcesResponse:
        """The resources of all pods."""
        ...

    async def get_allocatable_resources(
        self, request: pod_resources.AllocatableResourcesRequest, context: Context
    ) -> pod_resources.AllocatableResourcesResponse:
        """What the node has to give."""
        ...

    async def get(
        self, request: pod_resources.GetPodResourcesRequest, context: Context
    ) -> pod_resources.GetPodResourcesResponse:
        """The resources of one pod."""
        ...


def _handler(service: str, methods: Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]) -> grpc.GenericRpcHandler:
    return grpc.method_handlers_generic_handler(service, dict(methods))


def registration_handler(service: RegistrationService) -> grpc.GenericRpcHandler:
    """The Registration service, for `grpc.aio.server(handlers=[...])`."""
    return _handler(REGISTRATION, {REGISTER.name: REGISTER.serve(service.register)})


def device_plugin_handler(service: DevicePluginService) -> grpc.GenericRpcHandler:
    """The DevicePlugin service, for `grpc.aio.server(handlers=[...])`."""
    return _handler(
        DEVICE_PLUGIN,
        {
            GET_DEVICE_PLUGIN_OPTIONS.name: GET_DEVICE_PLUGIN_OPTIONS.serve(service.get_device_plugin_options),
            LIST_AND_WATCH.name: LIST_AND_WATCH.serve_stream(service.list_and_watch),
            GET_PREFERRED_ALLOCATION.name: GET_PREFERRED_ALLOCATION.serve(service.get_preferred_allocation),
            ALLOCATE.name: ALLOCATE.serve(service.allocate),
            PRE_START_CONTAINER.name: PRE_START_CONTAINER.serve(service.pre_start_container),
        },
    )


def pod_resources_handler(service: PodResourcesService) -> grpc.GenericRpcHandler:
    """The PodResourcesLister service, for `grpc.aio.server(handlers=[...])`."""
    return _handler(
        POD_RESOURCES_LISTER,
        {
            LIST.name: LIST.serve(service.list),
            GET_ALLOCATABLE_RESOURCES.name: GET_ALLOCATABLE_RESOURCES.serve(service.get_allocatable_resources),
            GET.name: GET.serve(service.get),
        },
    )


class RegistrationCalls:
    """The Registration service as calls on a channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.register = REGISTER.call(channel)


class DevicePluginCalls:
    """The DevicePlugin service as calls on a channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.get_device_plugin_options = GET_DEVICE_PLUGIN_OPTIONS.call(channel)
        self.list_and_watch = LIST_AND_WATCH.stream(channel)
        self.get_preferred_allocation = GET_PREFERRED_ALLOCATION.call(channel)
        self.allocate = ALLOCATE.call(channel)
        self.pre_start_container = PRE_START_CONTAINER.call(channel)


class PodResourcesCalls:
    """The PodResourcesLister service as calls on a channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.list = LIST.call(channel)
        self.get_allocatable_resources = GET_ALLOCATABLE_RESOURCES.call(channel)
        self.get = GET.call(channel)


def unix_address(socket: Path) -> str:
    """A unix socket as grpc wants it, to serve or to dial: a URI, so that `%` and spaces must be encoded."""
    return f"unix:{quote(os.fsencode(socket))}"


def unix_channel(socket: Path) -> grpc.aio.Channel:
    """A channel to whoever serves on a unix socket; it connects with the first call. Close it when done.

    The authority is set because strict servers refuse the percent-encoded path that grpcio sends (grpc/grpc#38142).
    The channel shares no connection state with others, so that a new one always dials anew.
    """
    options = (
        ("grpc.default_authority", "localhost"),
        ("grpc.max_receive_message_length", RECEIVE_LIMIT),
        ("grpc.use_local_subchannel_pool", 1),
    )
    return grpc.aio.insecure_channel(unix_address(socket), options=options)
