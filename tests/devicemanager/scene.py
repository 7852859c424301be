"""A node on which kubelet and the daemon run, for one test."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from gpustow.hardware.node import Node
from gpustow.simulation.kubelet import AdmittedPod, Container, Pod, TopologySettings
from tests.devicemanager.backend import Backend, Kubelet
from tests.devicemanager.plugin import GPU, Plugin, node_of


@dataclass
class Scene:
    """Kubelet, the daemon, and pods that are named by their number."""

    kubelet: Kubelet
    plugin: Plugin
    _numbers: "count[int]" = field(default_factory=count)

    async def admit(self, size: int = 1, resource: str = GPU) -> AdmittedPod:
        """Admits a pod of one container that wants so many devices."""
        return await self.kubelet.admit(self.pod({resource: size}))

    def pod(self, limits: dict[str, int], *init: Container) -> Pod:
        """A pod of one container `main`, after some init containers."""
        return Pod(f"pod-{next(self._numbers)}", containers=(Container("main", limits),), init_containers=init)

    def remove(self, pod: AdmittedPod) -> None:
        """Deletes a pod."""
        self.kubelet.remove(pod.pod.namespace, pod.pod.name)

    def held(self, pod: AdmittedPod, resource: str = GPU) -> tuple[str, ...]:
        """What the pod holds by now."""
        return self.kubelet.pod(pod.pod.namespace, pod.pod.name).device_ids(resource)


@asynccontextmanager
async def scene(
    backend: Backend,
    directory: Path,
    node: Node | str,
    *,
    topology: TopologySettings | None = None,
    policy: str = "distributed",
    seed: int = 1,
    clock: Callable[[], float] = time.monotonic,
    flags: Mapping[str, str] | None = None,
    **more_flags: str,
) -> AsyncIterator[Scene]:
    """Kubelet with the daemon registered; the daemon's flags have `_` for `-`, and come in a mapping or one by one."""
    kubelet = backend.kubelet(directory, topology=topology, seed=seed, clock=clock)
    plugin = Plugin(
        kubelet, node_of(node) if isinstance(node, str) else node, policy=policy, **{**(flags or {}), **more_flags}
    )
    async with kubelet, plugin.running():
        yield Scene(kubelet, plugin)
