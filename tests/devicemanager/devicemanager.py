"""Kubelet's own device manager behind the surface of the embedded kubelet.

The Go program is one run of kubelet; this is the node around it. Like the embedded kubelet it keeps what a run does
not: the pods and the Node object of the API server, and which containers the runtime runs.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from gpustow.errors import AdmissionError, UsageError
from gpustow.simulation.kubelet import (
    AdmittedContainer,
    AdmittedPod,
    AllocationError,
    Container,
    ContainerAnswer,
    DeviceNode,
    Mount,
    NodeStatus,
    Phase,
    Pod,
    PodStatus,
    Readmission,
    ResourceStatus,
    TopologySettings,
)
from tests.devicemanager.conversation import Conversation, EndedError, RefusedError
from tests.devicemanager.program import IN_OWN_NAMESPACE

_GLANCE = 0.003


@dataclass(slots=True)
class _Record:
    pod: Pod
    status: PodStatus = field(default_factory=PodStatus)
    edits: dict[str, ContainerAnswer] = field(default_factory=dict)


class DeviceManagerKubelet:
    """A node on which the Go program `program` is kubelet; arguments as for EmbeddedKubelet."""

    def __init__(
        self,
        program: Path,
        directory: Path,
        *,
        random: Random,
        clock: Callable[[], float] = time.monotonic,
        topology: TopologySettings | None = None,
        node_resources: Mapping[str, int] | None = None,
    ) -> None:
        self._program = program
        self._directory = directory
        self._random = random
        self._clock = clock
        self._topology = topology or TopologySettings()
        self._node = NodeStatus(dict(node_resources or {}), dict(node_resources or {}))
        self._records: dict[tuple[str, str], _Record] = {}
        self._running: dict[str, tuple[str, ...]] = {}
        self._conversation: Conversation | None = None
        self._last = NodeStatus({}, {})
        self._restarting: asyncio.Event | None = None
        self.last_admission = 0.0
        """Seconds that kubelet's admission handlers took for the pod that came last, admitted or not."""

    @property
    def plugin_directory(self) -> Path:
        return self._directory / "device-plugins"

    @property
    def registration_socket(self) -> Path:
        return self.plugin_directory / "kubelet.sock"

    @property
    def pod_resources_socket(self) -> Path:
        return self._directory / "pod-resources" / "kubelet.sock"

    @property
    def log(self) -> Path:
        """What the program has logged."""
        return self._directory / "kubelet.log"

    @property
    def process(self) -> int:
        """The id of the program's process."""
        assert self._conversation is not None
        return self._conversation.process

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> tuple[Readmission, ...]:
        await self._start()
        return await self.readmit()

    async def _start(self) -> None:
        if self._conversation is not None:
            raise UsageError("the device manager runs already")
        command = [*IN_OWN_NAMESPACE, str(self._directory), str(self._program), "-v=2"]
        conversation = Conversation(command, self.log)
        try:
            await asyncio.wrap_future(conversation.ask("start", **self._settings()))
        except BaseException:
            conversation.close(kill=True)
            raise
        self._conversation = conversation

    def _settings(self) -> dict[str, object]:
        topology = self._topology
        return {
            "topology": {
                "policy": topology.policy,
                "scope": topology.scope,
                "options": dict(topology.options),
                "numa_nodes": topology.numa_nodes,
                "distances": [topology.distances[node] for node in topology.numa_nodes if node in topology.distances],
            },
            "pods": [
                {"pod": _as_json(record.pod), "ended": record.status.phase.ended}
                for record in self._records.values()
                if record.status.phase is not Phase.PENDING
            ],
            "running": [
                {"pod_uid": uid, "container": container} for uid, names in self._running.items() for container in names
            ],
            "node": {"capacity": dict(self._node.capacity), "allocatable": dict(self._node.allocatable)},
        }

    async def stop(self, *, killed: bool = False) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is None:
            return
        try:
            self._node = _quantities(conversation.ask_now("node", now=self._clock()))
            self._last = _quantities(conversation.ask_now("quantities"))
            if not killed:
                await asyncio.wrap_future(conversation.ask("stop"))
        except EndedError:
            if not killed:
                raise
        finally:
            await asyncio.to_thread(conversation.close, kill=True)

    async def restart(
        self, *, killed: bool = False, reboot: bool = False, readmit: bool = True
    ) -> tuple[Readmission, ...]:
        self._restarting = asyncio.Event()
        try:
            await self.stop(killed=killed)
            if reboot:
                self._running.clear()
            await self._start()
        finally:
            self._restarting.set()
            self._restarting = None
        return await self.readmit() if readmit else ()

    async def readmit(self) -> tuple[Readmission, ...]:
        records = [record for record in self._records.values() if record.status.phase is Phase.RUNNING]
        self._random.shuffle(records)
        results = []
        for record in records:
            try:
                await self._admit(record)
            except AdmissionError as refusal:
                results.append(Readmission(record.pod, refusal))
            else:
                results.append(Readmission(record.pod))
        self._now("sources_ready")
        return tuple(results)

    def _now(self, do: str, **values: object) -> Any:
        if self._conversation is None:
            raise UsageError("the device manager does not run")
        return self._conversation.ask_now(do, **values)

    async def _soon(self, do: str, **values: object) -> Any:
        while self._restarting is not None:
            await self._restarting.wait()
        if self._conversation is None:
            raise UsageError("the device manager does not run")
        return await asyncio.wrap_future(self._conversation.ask(do, **values))

    def _device_quantities(self) -> NodeStatus:
        if self._conversation is not None:
            self._last = _quantities(self._now("quantities"))
        return self._last

    def capacity(self) -> Mapping[str, int]:
        return self._device_quantities().capacity

    def allocatable(self) -> Mapping[str, int]:
        return self._device_quantities().allocatable

    def node_status(self) -> NodeStatus:
        return _quantities(self._now("node", now=self._clock()))

    async def wait_for(self, resource: str, at_least: int = 1, *, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - the caller's patience, as in asyncio.wait
        try:
            await self._soon("wait_for", resource=resource, at_least=at_least, seconds=timeout)
        except RefusedError as error:
            raise TimeoutError(str(error)) from error

    async def wait_until(self, condition: Callable[[], bool], *, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - as in wait_for
        async with asyncio.timeout(timeout):
            while not condition():  # noqa: ASYNC110 - the program tells nothing unasked
                await asyncio.sleep(_GLANCE)

    async def admit(self, pod: Pod) -> AdmittedPod:
        if not pod.uid:
            pod = replace(pod, uid=str(uuid.UUID(int=self._random.getrandbits(128), version=4)))
        known = self._records.get((pod.namespace, pod.name))
        if known is not None and not known.status.phase.ended:
            raise UsageError(f"pod {pod.key} is there already")
        if known is not None:
            self.remove(pod.namespace, pod.name)
        record = self._records[pod.namespace, pod.name] = _Record(pod)
        while True:
            try:
                await self._admit(record)
            except EndedError:
                if self._restarting is None:
                    raise
            else:
                break
        for container in pod.in_order():
            try:
                await self.start_container(pod.namespace, pod.name, container.name)
            except AllocationError:  # kubelet would try that start again
                record.edits.pop(container.name, None)
        return self.pod(pod.namespace, pod.name)

    async def _admit(self, record: _Record) -> None:
        pod = record.pod
        verdict = await self._soon("admit", pod=_as_json(pod), now=self._clock())
        self.last_admission = verdict["seconds"]
        if not verdict["admitted"]:
            refusal = AdmissionError(pod.key, verdict["reason"], verdict["message"])
            record.status = PodStatus(Phase.FAILED, refusal.reason, f"Pod was rejected: {refusal.status_message}")
            self._running.pop(pod.uid, None)
            raise refusal
        record.status = PodStatus(Phase.RUNNING)
        self._running[pod.uid] = _long_running(pod)

    def pod(self, namespace: str, name: str) -> AdmittedPod:
        record = self._records[namespace, name]
        held = self._now("device_ids", uid=record.pod.uid)

        def given(container: Container) -> AdmittedContainer:
            ids = {resource: tuple(sorted(names)) for resource, names in sorted(held[container.name].items())}
            return AdmittedContainer(container.name, ids, record.edits.get(container.name, ContainerAnswer()))

        return AdmittedPod(
            record.pod, tuple(map(given, record.pod.containers)), tuple(map(given, record.pod.init_containers))
        )

    async def start_container(self, namespace: str, name: str, container: str) -> ContainerAnswer:
        record = self._records[namespace, name]
        try:
            options = await self._soon("start_container", pod_uid=record.pod.uid, container=container)
        except RefusedError as error:
            raise AllocationError(str(error)) from error
        record.edits[container] = _edits(options)
        return record.edits[container]

    def finish(self, namespace: str, name: str) -> None:
        record = self._records[namespace, name]
        self._running.pop(record.pod.uid, None)
        record.status = PodStatus(Phase.SUCCEEDED)
        if self._conversation is not None:
            self._now("end", uid=record.pod.uid, deleted=False)

    def remove(self, namespace: str, name: str) -> None:
        record = self._records.pop((namespace, name))
        self._running.pop(record.pod.uid, None)
        if self._conversation is not None:
            self._now("end", uid=record.pod.uid, deleted=True)

    def pod_status(self, namespace: str, name: str) -> PodStatus:
        record = self._records[namespace, name]
        written = self._now("device_health", uid=record.pod.uid) or {}
        health = {
            container: tuple(ResourceStatus(resource, ids) for resource, ids in sorted(resources.items()))
            for container, resources in written.items()
            if resources
        }
        return replace(record.status, allocated_resources=health)

    def write_status(self, namespace: str, name: str) -> None:
        self._now("write_status", uid=self._records[namespace, name].pod.uid)


def _as_json(pod: Pod) -> dict[str, object]:
    def listed(containers: tuple[Container, ...]) -> list[dict[str, object]]:
        return [
            {"name": container.name, "limits": dict(container.limits), "restartable": container.restartable}
            for container in containers
        ]

    return {
        "uid": pod.uid,
        "name": pod.name,
        "namespace": pod.namespace,
        "init_containers": listed(pod.init_containers),
        "containers": listed(pod.containers),
    }


def _long_running(pod: Pod) -> tuple[str, ...]:
    return tuple(c.name for c in (*(i for i in pod.init_containers if i.restartable), *pod.containers))


def _quantities(answer: Any) -> NodeStatus:
    return NodeStatus(answer["capacity"], answer["allocatable"])


def _edits(options: Any) -> ContainerAnswer:
    return ContainerAnswer(
        envs=options["envs"],
        mounts=tuple(Mount(m["container_path"], m["host_path"], m["read_only"]) for m in options["mounts"] or ()),
        devices=tuple(
            DeviceNode(d["container_path"], d["host_path"], d["permissions"]) for d in options["devices"] or ()
        ),
        annotations=options["annotations"],
        cdi_devices=tuple(options["cdi_devices"] or ()),
    )
