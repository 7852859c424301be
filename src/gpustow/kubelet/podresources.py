"""Which container holds which device, as kubelet says it.

Kubelet's answer has one entry a device and NUMA node, so that a device near two nodes comes twice; here it comes once.
Kubelet before 1.34 lists pods that have ended too.

Asking has a side effect: kubelet lets go of the devices of dead pods. So ask in quiet moments only, never between
GetPreferredAllocation and the end of its Allocate: a device could then be handed out twice. Kubelet answers 100
requests a second at most, and offers no watch.
"""

from dataclasses import dataclass
from pathlib import Path

import grpc

from gpustow.errors import PodResourcesError
from gpustow.kubelet.protocol.podresources_v1_pb2 import ListPodResourcesRequest, ListPodResourcesResponse
from gpustow.kubelet.protocol.services import PodResourcesCalls, unix_channel

LIST_SECONDS = 10.0
"""How long kubelet may take for the list."""


def pod_resources_socket(registration: Path) -> Path:
    """Where kubelet's PodResources service is, from its registration socket: in the directory beside that one's."""
    return registration.parent.parent / "pod-resources" / "kubelet.sock"


@dataclass(frozen=True, slots=True, order=True)
class HeldDevice:
    """One device in the hands of one container."""

    resource: str
    device_id: str
    namespace: str
    pod: str
    container: str


class PodResources:
    """Kubelet's PodResources service on `socket` (on a node `/var/lib/kubelet/pod-resources/kubelet.sock`)."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def held(self, *, seconds: float = LIST_SECONDS) -> tuple[HeldDevice, ...]:
        """All devices of all resources that containers hold, sorted, each once for each container.

        Raises PodResourcesError if there is no answer within `seconds`.
        """
        # A channel for each call: between two lists half a minute passes, and kubelet may be another one by then.
        async with unix_channel(self._socket) as channel:
            try:
                response = await PodResourcesCalls(channel).list(ListPodResourcesRequest(), timeout=seconds)
            except grpc.aio.AioRpcError as error:
                raise PodResourcesError(str(self._socket), _in_words(error, self._socket, seconds)) from error
        return held_devices(response)


def _in_words(error: grpc.aio.AioRpcError, socket: Path, seconds: float) -> str:
    """Why there is no list. What gRPC says of a socket that cannot be dialled is long and names it twice."""
    if not socket.exists():
        return "the socket is not there"
    match error.code():
        case grpc.StatusCode.UNAVAILABLE:
            return "nobody answers there"
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"no answer within {seconds:g} s"
        case code:
            return error.details() or code.name


def held_devices(response: ListPodResourcesResponse) -> tuple[HeldDevice, ...]:
    """The devices in kubelet's answer, sorted, each once for each container."""
    return tuple(
        sorted(
            {
                HeldDevice(entry.resource_name, device_id, pod.namespace, pod.name, container.name)
                for pod in response.pod_resources
                for container in pod.containers
                for entry in container.devices
                for device_id in entry.device_ids
            }
        )
    )
