"""What a test needs of a kubelet, so that one test body runs on the embedded one and on the real device manager.

The methods mean what they mean in `gpustow.simulation.kubelet.EmbeddedKubelet`.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Protocol, Self

from gpustow.simulation.kubelet import (
    AdmittedPod,
    Behaviour,
    ContainerAnswer,
    EmbeddedKubelet,
    NodeStatus,
    Pod,
    PodStatus,
    Readmission,
    TopologySettings,
)
from tests.devicemanager.devicemanager import DeviceManagerKubelet
from tests.devicemanager.program import PROGRAMS


class Kubelet(Protocol):
    """A kubelet as an async context manager."""

    @property
    def plugin_directory(self) -> Path: ...

    @property
    def registration_socket(self) -> Path: ...

    @property
    def pod_resources_socket(self) -> Path: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def start(self) -> tuple[Readmission, ...]: ...

    async def stop(self, *, killed: bool = False) -> None: ...

    async def restart(
        self, *, killed: bool = False, reboot: bool = False, readmit: bool = True
    ) -> tuple[Readmission, ...]: ...

    async def readmit(self) -> tuple[Readmission, ...]: ...

    def capacity(self) -> Mapping[str, int]: ...

    def allocatable(self) -> Mapping[str, int]: ...

    def node_status(self) -> NodeStatus: ...

    async def wait_for(self, resource: str, at_least: int = 1, *, timeout: float = 10.0) -> None: ...  # noqa: ASYNC109 - the caller's patience, as in asyncio.wait

    async def wait_until(self, condition: Callable[[], bool], *, timeout: float = 10.0) -> None: ...  # noqa: ASYNC109 - the caller's patience, as in asyncio.wait

    async def admit(self, pod: Pod) -> AdmittedPod: ...

    def pod(self, namespace: str, name: str) -> AdmittedPod: ...

    async def start_container(self, namespace: str, name: str, container: str) -> ContainerAnswer: ...

    def finish(self, namespace: str, name: str) -> None: ...

    def remove(self, namespace: str, name: str) -> None: ...

    def pod_status(self, namespace: str, name: str) -> PodStatus: ...

    def write_status(self, namespace: str, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of kubelet: the real device manager of a version of Kubernetes, or the embedded kubelet."""

    version: str = "1.36"
    embedded: bool = False

    def __str__(self) -> str:
        return f"embedded {self.version}" if self.embedded else f"device manager {self.version}"

    @property
    def title(self) -> str:
        """As a column of a table."""
        if self.embedded:
            return f"embedded kubelet (as {self.version})"
        return f"device manager {PROGRAMS[self.version].release}"

    @property
    def twin(self) -> "Backend":
        """The embedded kubelet as it imitates this version."""
        return Backend(self.version, embedded=True)

    def since(self, version: str) -> bool:
        """Whether it is of that version of Kubernetes or newer."""
        return [*map(int, self.version.split("."))] >= [*map(int, version.split("."))]

    def kubelet(
        self,
        directory: Path,
        *,
        seed: int = 1,
        topology: TopologySettings | None = None,
        clock: Callable[[], float] = time.monotonic,
        node_resources: Mapping[str, int] | None = None,
    ) -> Kubelet:
        """A kubelet on a directory that stands for /var/lib/kubelet; ProgramUnavailableError if there is none."""
        random = Random(seed)
        if self.embedded:
            return EmbeddedKubelet(
                directory,
                random=random,
                clock=clock,
                behaviour=Behaviour.of(self.version),
                topology=topology,
                node_resources=node_resources,
            )
        return DeviceManagerKubelet(
            PROGRAMS[self.version].build(),
            directory,
            random=random,
            clock=clock,
            topology=topology,
            node_resources=node_resources,
        )
