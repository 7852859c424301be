"""What a plugin answers kubelet: the five calls of one resource.

Every call may come at any time and beside any other. The two that decide read one frozen `ServedResource`, do no I/O
and wait for nothing; what they tell `usage` is what kubelet told them. An Allocate for several containers is granted
as a whole or not at all, and is told only then. The observer must not raise (`GuardedObserver`).

Kubelet fails the pod on any error of GetPreferredAllocation, and does not need its answer: so whatever goes wrong
there, the answer is empty and kubelet chooses. Allocate has no such way out: it fails if a device is unknown, with
the code UNKNOWN as v0.20.0 does, since kubelet puts code and text into the pod's status.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from random import Random, SystemRandom
from uuid import UUID

import grpc

from gpustow.errors import AllocationRefused, InfeasibleRequest
from gpustow.injection import container_edits
from gpustow.kubelet.devicefeed import DeviceFeed
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.kubelet.protocol.services import Context
from gpustow.placement import Occupancy, Placement, Request, place
from gpustow.placement.rules import violation
from gpustow.plugin.containerresponse import container_response
from gpustow.plugin.observer import PluginObserver
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.offer import ServedResource
from gpustow.resources.device import Resource

log = logging.getLogger(__name__)

OPTIONS = protocol.DevicePluginOptions(pre_start_required=False, get_preferred_allocation_available=True)
"""What kubelet is told twice: with the registration, and when it asks. The values are those of v0.20.0."""

ANSWER_SECONDS = 0.02
"""How long a search for a placement may take; kubelet waits, without limit. A backstop: steps end a search before."""

_IDS_IN_LOG = 8


class ResourceService:
    """Answers for `served`, over one server. `on_stream` is called when a stream of the list opens or ends.

    `random` is where the ids of answers come from.
    """

    def __init__(
        self,
        served: ServedResource,
        observer: PluginObserver,
        on_stream: Callable[[], None],
        usage: NodeUsage,
        random: Random | None = None,
    ) -> None:
        self.feed = DeviceFeed(served.device_list, on_stream)
        self._served = served
        self._observer = observer
        self._usage = usage
        self._random = random or SystemRandom()

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
                self._observer.list_sent(self._served.resource.name, len(message))

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
            occupancy = self._in_use(request.available)
            placement = place(
                request,
                served.inventory,
                served.policy,
                occupancy,
                lambda: time.perf_counter() - start > ANSWER_SECONDS,
            )
        except InfeasibleRequest as error:
            log.warning("%s: no preference, kubelet chooses: %s", name, error)
            self._observer.preference_failed(name, error)
            return ()
        except Exception as error:  # an error here would fail the pod
            log.exception("%s: no preference, kubelet chooses", name)
            self._observer.preference_failed(name, error)
            return ()
        seconds = time.perf_counter() - start
        self._observer.preferred(name, placement, seconds)
        if self._observer.explains or log.isEnabledFor(logging.INFO):
            # After the answer: kubelet is not to wait for the reasons.
            asyncio.get_running_loop().call_soon(self._explain, name, placement, len(request.available), seconds)
        return placement.device_ids

    def _explain(self, name: str, placement: Placement, offered: int, seconds: float) -> None:
        """Works the reasons out, tells them, and logs one line with them."""
        try:
            explanation = placement.explanation()
            sentence = explanation.sentence
            self._observer.explained(name, placement, explanation, seconds)
        except Exception:  # a reason is worth less than the daemon
            log.exception("%s: the reason of a decision could not be worked out", name)
            sentence = ""
        log.info("%s: prefers %s of %d offered: %s", name, _listed(placement.device_ids), offered, sentence)

    def _in_use(self, available: Sequence[str]) -> Occupancy:
        """What is in use beside what kubelet offers."""
        numa_nodes = len(self._served.inventory.numa_groups)
        return self._usage.asked(self._served.resource, available, numa_nodes=numa_nodes)

    async def allocate(self, request: protocol.AllocateRequest, context: Context) -> protocol.AllocateResponse:
        """What to put into the containers, one answer a request; fails as a whole."""
        served = self._served
        name = served.resource.name
        containers = [tuple(container.devices_ids) for container in request.container_requests]
        try:
            responses = [container_answer(served, ids, response_id(self._random)) for ids in containers]
        except AllocationRefused as error:
            log.warning("%s", error)
            self._observer.allocation_failed(name, error)
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except Exception as error:
            log.exception("%s: Allocate failed", name)
            self._observer.allocation_failed(name, error)
            await context.abort(grpc.StatusCode.INTERNAL, f"Allocate of {name} failed: {error}")
        for ids in containers:
            self._usage.allocated(served.resource, ids)
            log.info("%s: allocates %s", name, _listed(ids))
            self._observer.allocated(name, ids)
        return protocol.AllocateResponse(container_responses=responses)

    async def pre_start_container(
        self, _request: protocol.PreStartContainerRequest, _context: Context
    ) -> protocol.PreStartContainerResponse:
        """Nothing is to be done before a container starts; the options say so."""
        return protocol.PreStartContainerResponse()


def response_id(random: Random) -> str:
    """A random UUID, which no other answer has."""
    return str(UUID(int=random.getrandbits(128), version=4))


def container_answer(
    served: ServedResource, ids: Sequence[str], response_id: str
) -> protocol.ContainerAllocateResponse:
    """What a container gets with these devices. Raises AllocationRefused."""
    edits = container_edits(_answerable(served, ids), ids, served.config, served.host, response_id)
    _check_rule(served, ids)
    return container_response(edits)


def _answerable(served: ServedResource, ids: Sequence[str]) -> Resource:
    """The resource, with those of the devices healthy that are only withdrawn: kubelet chose them a moment ago."""
    if served.withdrawn.isdisjoint(ids):
        return served.resource
    return replace(
        served.resource,
        devices=tuple(
            replace(device, healthy=True) if device.id in served.withdrawn else device
            for device in served.resource.devices
        ),
    )


def _check_rule(served: ServedResource, ids: Sequence[str]) -> None:
    """Raises AllocationRefused if the devices break the hard rule of the resource."""
    rule = served.policy.rule
    if rule is None:
        return
    broken = violation(rule, [served.resource.by_id[id_] for id_ in ids])
    if broken is not None:
        raise AllocationRefused(served.resource.name, broken)


def _listed(ids: Sequence[str]) -> str:
    more = len(ids) - _IDS_IN_LOG
    listed = ", ".join(ids[:_IDS_IN_LOG])
    return f"{listed} and {more} more" if more > 0 else listed or "nothing"
