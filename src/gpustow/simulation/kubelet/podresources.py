"""The PodResources service: which pod holds which devices."""

from collections.abc import Callable, Iterable

import grpc

from gpustow.kubelet.protocol import podresources_v1_pb2 as wire
from gpustow.kubelet.protocol.services import Context
from gpustow.simulation.kubelet.devicemanager import DeviceManager
from gpustow.simulation.kubelet.holdings import NO_NODE, Held
from gpustow.simulation.kubelet.pod import Pod


class PodResourcesServer:
    """Serves PodResources for the pods that `pods` gives.

    Kubelet writes one entry a device and NUMA node, so an id comes again where a device is near two nodes.
    """

    def __init__(self, manager: DeviceManager, pods: Callable[[], Iterable[Pod]]) -> None:
        self._manager = manager
        self._pods = pods

    async def list(self, request: wire.ListPodResourcesRequest, context: Context) -> wire.ListPodResourcesResponse:
        """All active pods; lets the device manager find out which pods have gone."""
        del request, context
        self._manager.collect()
        return wire.ListPodResourcesResponse(pod_resources=[self._of_pod(pod) for pod in self._pods()])

    async def get_allocatable_resources(
        self, request: wire.AllocatableResourcesRequest, context: Context
    ) -> wire.AllocatableResourcesResponse:
        """The healthy devices of all resources."""
        del request, context
        table = self._manager.state.table
        entries = [
            entry
            for resource in sorted(table.healthy)
            for device in sorted(table.healthy[resource])
            for entry in _entries(resource, device, table.numa_nodes(resource, device))
        ]
        return wire.AllocatableResourcesResponse(devices=entries)

    async def get(self, request: wire.GetPodResourcesRequest, context: Context) -> wire.GetPodResourcesResponse:
        """One pod; an error of code UNKNOWN if there is none of that name."""
        asked = (request.pod_namespace, request.pod_name)
        found = next((pod for pod in self._pods() if (pod.namespace, pod.name) == asked), None)
        if found is None:
            text = f"pod {request.pod_name} in namespace {request.pod_namespace} not found"
            await context.abort(grpc.StatusCode.UNKNOWN, text)
        return wire.GetPodResourcesResponse(pod_resources=self._of_pod(found))

    def _of_pod(self, pod: Pod) -> wire.PodResources:
        shown = [container for container in pod.in_order() if not pod.is_init(container.name) or container.restartable]
        holdings = self._manager.state.holdings
        return wire.PodResources(
            name=pod.name,
            namespace=pod.namespace,
            containers=[
                wire.ContainerResources(
                    name=container.name,
                    devices=[
                        entry
                        for resource, held in holdings.of_container(pod.uid, container.name).items()
                        for entry in _held_entries(resource, held)
                    ],
                )
                for container in shown
            ],
        )


def _held_entries(resource: str, held: Held) -> Iterable[wire.ContainerDevices]:
    for node, ids in held.by_node.items():
        for device in ids:
            yield from _entries(resource, device, () if node == NO_NODE else (node,))


def _entries(resource: str, device: str, nodes: Iterable[int]) -> Iterable[wire.ContainerDevices]:
    """One entry a node; one without topology for a device that has none."""
    near = tuple(nodes)
    if not near:
        yield wire.ContainerDevices(resource_name=resource, device_ids=[device])
    for node in near:
        topology = wire.TopologyInfo(nodes=[wire.NUMANode(ID=node)])
        yield wire.ContainerDevices(resource_name=resource, device_ids=[device], topology=topology)
