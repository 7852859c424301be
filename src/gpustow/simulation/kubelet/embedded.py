"""The embedded kubelet: real sockets, and kubelet's habits behind them, inside this process."""

import asyncio
import socket
import stat
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

import grpc

from gpustow.errors import AdmissionError, KubeletDirectoryError
from gpustow.kubelet.protocol.services import pod_resources_handler, registration_handler
from gpustow.simulation.kubelet.allocation import AllocationError
from gpustow.simulation.kubelet.clients import ClientTable
from gpustow.simulation.kubelet.devicemanager import DeviceManager
from gpustow.simulation.kubelet.endpoint import EndpointError
from gpustow.simulation.kubelet.pluginclient import PluginClient
from gpustow.simulation.kubelet.pod import AdmittedContainer, AdmittedPod, Container, Pod
from gpustow.simulation.kubelet.podresources import PodResourcesServer
from gpustow.simulation.kubelet.registration import Registered, RegistrationServer

SOCKET = "kubelet.sock"
LONGEST_SOCKET_PATH = 107


class EmbeddedKubelet:
    """A kubelet for device plugins to register with, as an async context manager.

    `directory` stands for /var/lib/kubelet: below it are `device-plugins/kubelet.sock`, where plugins register, and
    `pod-resources/kubelet.sock`. `random` makes every choice that is arbitrary in kubelet; `clock` counts seconds.
    """

    def __init__(self, directory: Path, *, random: Random, clock: Callable[[], float] = time.monotonic) -> None:
        self.plugin_directory = directory / "device-plugins"
        self.registration_socket = self.plugin_directory / SOCKET
        self.pod_resources_socket = directory / "pod-resources" / SOCKET
        self.registrations: list[Registered] = []
        self._random = random
        self._clock = clock
        self._pods: dict[tuple[str, str], Pod] = {}
        self._admitting = asyncio.Lock()
        self._news = asyncio.Event()
        self._servers: list[grpc.aio.Server] = []
        self._start_anew()

    def _start_anew(self) -> None:
        self.manager = DeviceManager(
            random=self._random,
            clock=self._clock,
            active_pods=lambda: [pod.uid for pod in self._pods.values()],
            save=lambda _: self._news.set(),
        )
        self._clients = ClientTable(self.manager, PluginClient)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Wipes the sockets in the plugin directory and listens, as kubelet does at its start.

        Raises KubeletDirectoryError if the directory cannot be used.
        """
        for path in (self.registration_socket, self.pod_resources_socket):
            if len(str(path).encode()) > LONGEST_SOCKET_PATH:
                reason = f"is too long: a unix socket's path has at most {LONGEST_SOCKET_PATH} bytes"
                raise KubeletDirectoryError(str(path.parent), reason)
            path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        for path in self.plugin_directory.iterdir():
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()
        registration = RegistrationServer(self.plugin_directory, self._clients, self.registrations.append)
        pod_resources = PodResourcesServer(self.manager, self._pods.values)
        self._servers = [
            await _serve(registration_handler(registration), self.registration_socket),
            await _serve(pod_resources_handler(pod_resources), self.pod_resources_socket),
        ]

    async def stop(self, *, killed: bool = False) -> None:
        """Stops kubelet; `killed` leaves a kubelet.sock behind that nobody answers on."""
        for server in self._servers:
            await server.stop(None)
        self._servers = []
        await self._clients.close()
        if killed:
            _leave_dead_socket(self.registration_socket)

    async def restart(self, *, killed: bool = False) -> None:
        """Stops kubelet and starts it again; plugins have to register anew."""
        await self.stop(killed=killed)
        holdings = self.manager.state.holdings
        known = tuple(self.manager.state.table.healthy)
        self._start_anew()
        self.manager.restore(holdings, known)
        await self.start()

    def capacity(self) -> Mapping[str, int]:
        """The devices of each resource, unhealthy ones included."""
        return self.manager.quantities().capacity

    def allocatable(self) -> Mapping[str, int]:
        """The healthy devices of each resource, taken or not."""
        return self.manager.quantities().allocatable

    async def wait_for(self, resource: str, at_least: int = 1, *, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - the caller's patience, as in asyncio.wait
        """Waits until so many devices of a resource are allocatable; TimeoutError after `timeout` seconds."""
        async with asyncio.timeout(timeout):
            while self.allocatable().get(resource, 0) < at_least:
                self._news.clear()
                await self._news.wait()

    async def admit(self, pod: Pod) -> AdmittedPod:
        """Admits a pod: gives each container its devices; AdmissionError if it is refused."""
        if not pod.uid:
            pod = replace(pod, uid=str(uuid.UUID(int=self._random.getrandbits(128), version=4)))
        async with self._admitting:
            try:
                for container in pod.in_order():
                    await self.manager.allocate(pod, container)
            except (AllocationError, EndpointError) as error:
                text = f"Allocate failed due to {error}, which is unexpected"
                raise AdmissionError(pod.key, "UnexpectedAdmissionError", text) from error
            self._pods[pod.namespace, pod.name] = pod
        return AdmittedPod(
            pod,
            tuple(self._given(pod, container) for container in pod.containers),
            tuple(self._given(pod, container) for container in pod.init_containers),
        )

    def _given(self, pod: Pod, container: Container) -> AdmittedContainer:
        edits, _ = self.manager.edits(pod.uid, container.name)
        held = self.manager.state.holdings.of_container(pod.uid, container.name)
        device_ids = {resource: tuple(sorted(held[resource].ids)) for resource in sorted(held)}
        return AdmittedContainer(container.name, device_ids, edits)

    def remove(self, namespace: str, name: str) -> None:
        """The pod is gone; its devices are free for the next admission. KeyError if there is no such pod."""
        del self._pods[namespace, name]


async def _serve(handler: grpc.GenericRpcHandler, path: Path) -> grpc.aio.Server:
    server = grpc.aio.server(handlers=[handler])
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    return server


def _leave_dead_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
