"""The real device manager and the embedded kubelet side by side: the same happens to both, and both must agree.

What happens is drawn at random: pods of several containers come and go, devices fall sick and recover, kubelet and the
daemon are restarted, the node reboots, time passes. After each event everything that a plugin, a pod or the scheduler
can see is compared, and each question that the daemon was asked.

Where kubelet's choice is arbitrary the two may differ and no longer be compared afterwards; so a container never takes
a part of what an init container has left, and has one resource.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any, TypeVar

import grpc

from gpustow.errors import AdmissionError, PodResourcesError
from gpustow.kubelet.podresources import PodResources
from gpustow.kubelet.protocol import podresources_v1_pb2 as wire
from gpustow.kubelet.protocol.services import PodResourcesCalls, unix_channel
from gpustow.simulation.kubelet import AdmittedContainer, Container, Pod, PodStatus
from tests.devicemanager.scene import Scene
from tests.kubelet.fakekubelet import until

Answer = TypeVar("Answer")


@dataclass
class Clock:
    """Seconds, moved on by hand; the same for both."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Twins:
    """Two nodes that live the same life; `events` is what has happened so far."""

    real: Scene
    embedded: Scene
    random: Random
    clock: Clock
    events: list[str] = field(default_factory=list)
    pods: list[str] = field(default_factory=list)
    sick: tuple[str, ...] = ()
    admitted: int = 0
    refused: int = 0
    questions: int = 0

    @property
    def both(self) -> tuple[Scene, Scene]:
        return self.real, self.embedded

    async def live(self, events: int) -> None:
        """So many events, one after the other, and a comparison after each."""
        deeds: Sequence[tuple[Callable[[], Awaitable[None]], int]] = (
            (self.admit, 12),
            (self.remove, 5),
            (self.finish, 2),
            (self.change_health, 3),
            (self.restart_kubelet, 1),
            (self.restart_kubelet_without_daemon, 1),
            (self.reboot, 1),
            (self.restart_daemon, 1),
        )
        names, weights = zip(*deeds, strict=True)
        for deed in self.random.choices(names, weights, k=events):
            self.clock.now += self.random.choice((0.2, 1.0, 6.0))
            await deed()
            await self.compare()

    async def admit(self) -> None:
        """Another pod."""
        pod = self._pod(len(self.events))
        self.events.append(f"admit {pod.name}: {_sizes(pod)}")
        results = [await _outcome(scene, pod) for scene in self.both]
        self._agree("results", *results)
        if results[0][0]:
            self.pods.append(pod.name)
            self.admitted += 1
        else:
            self.refused += 1

    def _pod(self, number: int) -> Pod:
        resource = self.random.choice(sorted(self.real.plugin.resources))
        most = max(2, len(self.real.plugin.resources[resource].devices) // 3)
        left = 0
        init = []
        for index in range(self.random.choice((0, 0, 0, 1, 2))):
            size = self.random.choice((0, self.random.randint(max(1, left), max(left, most))))
            restartable = self.random.random() < 0.4
            init.append(Container(f"init-{index}", {resource: size}, restartable=restartable))
            left = left if not size else 0 if restartable else size
        app = []
        for index in range(self.random.choice((1, 1, 1, 2))):
            app.append(Container(f"app-{index}", {resource: self.random.randint(max(1, left), max(left, most))}))
            left = 0
        return Pod(f"pod-{number}", containers=tuple(app), init_containers=tuple(init), uid=f"uid-{number}")

    async def remove(self) -> None:
        """A pod is deleted."""
        await self._end("remove", lambda scene, name: scene.kubelet.remove("default", name))

    async def finish(self) -> None:
        """The containers of a pod end."""
        await self._end("finish", lambda scene, name: scene.kubelet.finish("default", name))

    async def _end(self, word: str, end: Callable[[Scene, str], None]) -> None:
        if self.pods:
            name = self.pods.pop(self.random.randrange(len(self.pods)))
            self.events.append(f"{word} {name}")
            for scene in self.both:
                end(scene, name)

    async def change_health(self) -> None:
        """What is behind some devices of one resource is sick from now on, or all are well."""
        resource = self.random.choice(sorted(self.real.plugin.resources))
        ids = self.real.plugin.ids(resource)
        self.sick = tuple(self.random.sample(ids, self.random.choice((0, 0, 1, len(ids) // 4))))
        self.events.append(f"of {resource} sick: {' '.join(self.sick) or 'none'}")
        for scene in self.both:
            await scene.plugin.set_sick(self.sick, resource)

    async def restart_kubelet(self) -> None:
        """Kubelet is restarted, and looks at its pods when the daemon is back."""
        killed = self.random.random() < 0.5
        self.events.append(f"restart of kubelet, {'killed' if killed else 'stopped'}")
        await self._readmit(lambda scene: scene.kubelet.restart(killed=killed, readmit=False))

    async def reboot(self) -> None:
        """The node reboots, and kubelet looks at its pods when the daemon is back."""
        self.events.append("reboot")
        await self._readmit(lambda scene: scene.kubelet.restart(reboot=True, readmit=False))

    async def _readmit(self, restart: Callable[[Scene], Awaitable[object]]) -> None:
        results = []
        for scene in self.both:
            await restart(scene)
            await scene.plugin.settled()
            results.append(_readmissions(await scene.kubelet.readmit()))
        self._after_readmission(results)

    async def restart_kubelet_without_daemon(self) -> None:
        """Kubelet is restarted, or the node, and looks at its pods while the daemon is gone."""
        reboot = self.random.random() < 0.3
        self.events.append(f"{'reboot' if reboot else 'restart of kubelet'} while the daemon is gone")
        results = []
        for scene in self.both:
            await scene.plugin.stop()
            results.append(_readmissions(await scene.kubelet.restart(reboot=reboot)))
        self._after_readmission(results)
        await self.compare()
        for scene in self.both:
            await scene.plugin.start()

    def _after_readmission(self, results: list[dict[str, Any]]) -> None:
        self._agree("results", *results)
        self.pods = [name for name in self.pods if results[0][name] is None]

    async def restart_daemon(self) -> None:
        """The daemon ends; pods come in vain; it starts again with all devices well."""
        self.events.append("restart of the daemon")
        for scene in self.both:
            await scene.plugin.stop()
            await until(lambda scene=scene: not any(scene.kubelet.allocatable().values()))  # type: ignore[misc]  # a default binds the loop's value
        await self.admit()
        await self.compare()
        for scene in self.both:
            await scene.plugin.start()

    async def compare(self) -> None:
        """Everything that can be seen is the same, and kubelet has taken our choice each time it asked."""
        self._agree("capacity", *(scene.kubelet.capacity() for scene in self.both))
        self._agree("allocatable", *(scene.kubelet.allocatable() for scene in self.both))
        self._agree("node_status", *(scene.kubelet.node_status() for scene in self.both))
        for scene in self.both:
            _check_that_our_choices_were_taken(scene)
        witnesses = [scene.plugin.witness for scene in self.both]
        self._agree("questions", *(witness.questions for witness in witnesses))
        self._agree("calls of Allocate", *(witness.allocations for witness in witnesses))
        self.questions += len(witnesses[0].questions)
        for witness in witnesses:
            witness.questions.clear()
            witness.allocations.clear()
        await self._compare_pods()

    async def _compare_pods(self) -> None:
        for name in self.pods:
            held = [_held(scene, name) for scene in self.both]
            self._agree(f"devices of {name}", *held)

            await self._compare_statuses(name)
        self.clock.now += 0.2
        listed = [await _unless_limited(PodResources(scene.kubelet.pod_resources_socket).held) for scene in self.both]
        self._agree("PodResources List", *listed)
        allocatable = [await _unless_limited(partial(_allocatable_resources, scene)) for scene in self.both]
        self._agree("GetAllocatableResources", *allocatable)

    async def _compare_statuses(self, name: str) -> None:
        """Kubelet writes them a little later than it knows."""

        def statuses() -> list[PodStatus]:
            return [scene.kubelet.pod_status("default", name) for scene in self.both]

        with suppress(AssertionError):
            await until(lambda: statuses()[0] == statuses()[1], seconds=5)
        self._agree(f"statuses of {name}", *statuses())

    def _agree(self, what: str, real: object, embedded: object) -> None:
        story = "\n  ".join(self.events)
        assert real == embedded, f"{what} differ:\nreal      {real}\nembedded  {embedded}\nafter\n  {story}"


def _sizes(pod: Pod) -> str:
    return ", ".join(
        f"{container.name}{' (sidecar)' if container.restartable else ''} {dict(container.limits)}"
        for container in pod.in_order()
    )


async def _outcome(scene: Scene, pod: Pod) -> tuple[bool, str, object]:
    try:
        admitted = await scene.kubelet.admit(pod)
    except AdmissionError as error:
        return False, error.reason, error.status_message
    return True, "", [_shown(container) for container in (*admitted.init_containers, *admitted.containers)]


def _shown(container: AdmittedContainer) -> object:
    """What the container was given; kubelet names the devices of an Allocate in any order, and so do we."""
    envs = {key: sorted(value.split(",")) for key, value in container.envs.items()}
    return container.name, container.device_ids, replace(container.edits, envs={}), envs


def _held(scene: Scene, name: str) -> object:
    pod = scene.kubelet.pod("default", name)
    return [(container.name, container.device_ids) for container in (*pod.init_containers, *pod.containers)]


def _readmissions(results: Sequence[Any]) -> dict[str, Any]:
    return {
        entry.pod.name: None if entry.refusal is None else (entry.refusal.reason, entry.refusal.status_message)
        for entry in results
    }


def _check_that_our_choices_were_taken(scene: Scene) -> None:
    left = [*scene.plugin.witness.allocations]
    for question in scene.plugin.witness.questions:
        assert len(question.answer) == question.size
        assert (question.resource, question.answer) in left, f"kubelet has not taken the answer to {question}"
        left.remove((question.resource, question.answer))


async def _unless_limited(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """What PodResources answers; it is asked again while kubelet's rate limit rejects the question."""
    async with asyncio.timeout(10):
        while True:
            try:
                return await ask()
            except (PodResourcesError, grpc.aio.AioRpcError) as error:
                if "rejected by rate limit" not in str(error):
                    raise
                await asyncio.sleep(0.05)


async def _allocatable_resources(scene: Scene) -> list[tuple[str, str, tuple[int, ...]]]:
    async with unix_channel(scene.kubelet.pod_resources_socket) as channel:
        answer = await PodResourcesCalls(channel).get_allocatable_resources(wire.AllocatableResourcesRequest())
    return sorted(
        (entry.resource_name, device, tuple(node.ID for node in entry.topology.nodes))
        for entry in answer.devices
        for device in entry.device_ids
    )
