"""What a plugin answers kubelet: the five calls of one resource.

Every call may come at any time and beside any other. The two that decide are pure: they read one frozen
`ServedResource`, do no I/O and leave nothing behind, so that the same question has the same answer however often it is
asked.

Kubelet fails the pod on any error of GetPreferredAllocation, and does not need its answer: so whatever goes wrong
there, the answer is empty and kubelet chooses. Allocate has no such way out: it fails if a device is unknown, with
the code UNKNOWN as v0.20.0 does, since kubelet puts code and text into the pod's status.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing

import grpc

from gpustow.errors import AllocationRefused, InfeasibleRequest
from gpustow.injection import container_edits
from gpustow.kubelet.devicefeed import DeviceFeed
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.kubelet.protocol.services import Context
from gpustow.placement import Request, place
from gpustow.plugin.containerresponse import container_response
from gpustow.plugin.observer import PluginObserver
from gpustow.plugin.offer import ServedResource

log = logging.getLogger(__name__)

OPTIONS = protocol.DevicePluginOptions(pre_start_required=False, get_preferred_allocation_available=True)
"""What kubelet is told twice: with the registration, and when it asks. The values are those of v0.20.0."""

_IDS_IN_LOG = 8


class ResourceService:
    """Answers for `served`, over one server. `on_stream` is called when a stream of the list opens or ends."""

    def __init__(self, served: ServedResource, observer: PluginObserver, on_stream: Callable[[], None]) -> None:
        self.feed = DeviceFeed(served.device_list, on_stream)
        self._served = served
        self._observer = observer

    def replace(self, served: ServedResource) -> None:
        """From now on answers for `served`; streams are told if the list differs."""
        self._served = served
        self.feed.publish(served.device_list)

    async def get_device_plugin_options(
        self, _request: protocol.Empty, _context: Context
    ) -> protocol.DevicePluginOptions:
        """The options."""
        return OPTIONS

    async def list_and_watch(self, _request: protocol.Empty, _context: Context) -> AsyncIterator[bytes]:
        """The list at once, and when it changes."""
        async with aclosing(self.feed.stream()) as stream:
            async for message in stream:
                yield message

    async def get_preferred_allocation(
        self, request: protocol.PreferredAllocationRequest, _context: Context
    ) -> protocol.PreferredAllocationResponse:
        """The devices to take, one answer a request; empty where there is none to give."""
        return protocol.PreferredAllocationResponse(
            container_responses=[
                protocol.ContainerPreferredAllocationResponse(deviceIDs=self._preferred(container))
                for container in request.container_requests
            ]
        )

    def _preferred(self, asked: protocol.ContainerPreferredAllocationRequest) -> Sequence[str]:
        served = self._served
        name = served.resource.name
        start = time.perf_counter()
        try:
            request = Request(
                tuple(asked.available_deviceIDs), tuple(asked.must_include_deviceIDs), asked.allocation_size
            )
            placement = place(request, served.inventory, served.policy)
        except InfeasibleRequest as error:
            log.warning("%s: no preference, kubelet chooses: %s", name, error)
            self._observer.preference_failed(name, error)
            return ()
        except Exception as error:  # an error here would fail the pod
            log.exception("%s: no preference, kubelet chooses", name)
            self._observer.preference_failed(name, error)
            return ()
        seconds = time.perf_counter() - start
        offered = len(request.available)
        log.info("%s: prefers %s of %d offered", name, _listed(placement.device_ids), offered)
        self._observer.preferred(name, placement, seconds)
        return placement.device_ids

    async def allocate(self, request: protocol.AllocateRequest, context: Context) -> protocol.AllocateResponse:
        """What to put into the containers, one answer a request; fails as a whole."""
        served = self._served
        name = served.resource.name
        responses = []
        try:
            for container in request.container_requests:
                ids = tuple(container.devices_ids)
                responses.append(container_response(container_edits(served.resource, ids, served.config)))
                log.info("%s: allocates %s", name, _listed(ids))
                self._observer.allocated(name, ids)
        except AllocationRefused as error:
            log.warning("%s", error)
            self._observer.allocation_failed(name, error)
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except Exception as error:
            log.exception("%s: Allocate failed", name)
            self._observer.allocation_failed(name, error)
            await context.abort(grpc.StatusCode.INTERNAL, f"Allocate of {name} failed: {error}")
        return protocol.AllocateResponse(container_responses=responses)

    async def pre_start_container(
        self, _request: protocol.PreStartContainerRequest, _context: Context
    ) -> protocol.PreStartContainerResponse:
        """Nothing is to be done before a container starts; the options say so."""
        return protocol.PreStartContainerResponse()


def _listed(ids: Sequence[str]) -> str:
    more = len(ids) - _IDS_IN_LOG
    listed = ", ".join(ids[:_IDS_IN_LOG])
    return f"{listed} and {more} more" if more > 0 else listed or "nothing"
