"""The PodResources service: which pod holds which devices, with kubelet's habits.

* One entry a device and NUMA node: an id comes again where a device is near two nodes. A device with an empty topology
  has no entry at all in GetAllocatableResources.
* List shows active pods (older kubelets: all), one that is being admitted included, but no ordinary init containers. It
  makes the device manager find out which pods have gone, so that their devices are free afterwards.
* Get tells of active pods (older kubelets: of all). Errors that are not gRPC's own have code UNKNOWN.
* 100 requests a second, 10 at once; what exceeds that is refused.
"""

from collections.abc import Iterable

import grpc

from gpustow.kubelet.protocol import podresources_v1_pb2 as wire
from gpustow.kubelet.protocol.services import Context
from gpustow.simulation.kubelet.behaviour import Behaviour
from gpustow.simulation.kubelet.devicemanager import DeviceManager
from gpustow.simulation.kubelet.holdings import NO_NODE
from gpustow.simulation.kubelet.pod import Pod
from gpustow.simulation.kubelet.podbook import PodBook
from gpustow.simulation.kubelet.ratelimit import TokenBucket


class PodResourcesServer:
    """Serves PodResources for the pods of a book."""

    def __init__(self, manager: DeviceManager, book: PodBook, limiter: TokenBucket, behaviour: Behaviour) -> None:
        self._manager = manager
        self._book = book
        self._limiter = limiter
        self._behaviour = behaviour

    async def list(self, request: wire.ListPodResourcesRequest, context: Context) -> wire.ListPodResourcesResponse:
        """All pods; collects what pods that have gone still hold."""
        del request
        await self._limit(context)
        pods = self._book.active() if self._behaviour.lists_active_pods_only else self._book.pods()
        self._manager.collect()
        return wire.ListPodResourcesResponse(pod_resources=[self._of_pod(pod) for pod in pods])

    async def get_allocatable_resources(
        self, request: wire.AllocatableResourcesRequest, context: Context
    ) -> wire.AllocatableResourcesResponse:
        """The healthy devices of all resources."""
        del request
        await self._limit(context)
        if not self._behaviour.serves_allocatable:
            await context.abort(grpc.StatusCode.UNKNOWN, "PodResources API GetAllocatableResources disabled")
        table = self._manager.state.table
        entries = [
            entry
            for resource, devices in sorted(table.listed.items())
            for device in devices.values()
            if device.id in table.healthy.get(resource, ())
            for entry in _entries(resource, device.id, device.numa_nodes)
        ]
        return wire.AllocatableResourcesResponse(devices=entries)

    async def get(self, request: wire.GetPodResourcesRequest, context: Context) -> wire.GetPodResourcesResponse:
        """One pod."""
        await self._limit(context)
        if not self._behaviour.serves_get:
            await context.abort(grpc.StatusCode.UNKNOWN, "PodResources API Get method disabled")
        asked = (request.pod_namespace, request.pod_name)
        pods = self._book.active() if self._behaviour.gets_active_pods_only else self._book.pods()
        found = next((pod for pod in pods if (pod.namespace, pod.name) == asked), None)
        if found is None:
            text = f"pod {request.pod_name} in namespace {request.pod_namespace} not found"
            await context.abort(grpc.StatusCode.UNKNOWN, text)
        return wire.GetPodResourcesResponse(pod_resources=self._of_pod(found))

    async def _limit(self, context: Context) -> None:
        if not self._limiter.take():
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")

    def _of_pod(self, pod: Pod) -> wire.PodResources:
        shown = [name for name in (c.name for c in pod.in_order()) if not pod.is_init(name) or pod.is_sidecar(name)]
        containers = [
            wire.ContainerResources(name=name, devices=[*self._of_container(pod.uid, name)]) for name in shown
        ]
        return wire.PodResources(name=pod.name, namespace=pod.namespace, containers=containers)

    def _of_container(self, pod_uid: str, container: str) -> Iterable[wire.ContainerDevices]:
        for resource, held in self._manager.state.holdings.of_container(pod_uid, container).items():
            for node, ids in held.by_node.items():
                for device in ids:
                    yield from _entries(resource, device, None if node == NO_NODE else (node,))


def _entries(resource: str, device: str, nodes: tuple[int, ...] | None) -> Iterable[wire.ContainerDevices]:
    """One entry a node; one without topology for a device that has none."""
    if nodes is None:
        yield wire.ContainerDevices(resource_name=resource, device_ids=[device])
    for node in nodes or ():
        topology = wire.TopologyInfo(nodes=[wire.NUMANode(ID=node)])
        yield wire.ContainerDevices(resource_name=resource, device_ids=[device], topology=topology)
