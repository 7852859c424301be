"""The admission of a pod by the Topology Manager: hints, merge, verdict, and the allocation for each container.

With scope `container` each container is decided and allocated before the next one is looked at; a later refusal leaves
the Allocate calls of earlier containers made, and their devices reserved until kubelet collects them. With scope `pod`
everything is decided first. With policy `none` nobody is asked for hints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet.endpoint import EndpointError
from gpustow.simulation.kubelet.journal import Journal, TopologyDecided
from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.state import AllocationError
from gpustow.simulation.kubelet.topology.affinities import Affinities
from gpustow.simulation.kubelet.topology.hints import Hints
from gpustow.simulation.kubelet.topology.merge import flatten
from gpustow.simulation.kubelet.topology.policies import decide
from gpustow.simulation.kubelet.topology.settings import Policy, Scope, TopologySettings


class HintProvider(Protocol):
    """Who has a say in NUMA alignment: the device manager, and whatever stands for the CPU and memory managers."""

    def hints(self, pod: Pod, container: Container) -> Hints:
        """The hints for a container, by resource; an empty map for no preference."""
        ...

    def pod_hints(self, pod: Pod) -> Hints:
        """The hints for the pod as a whole."""
        ...

    async def allocate(self, pod: Pod, container: Container) -> None:
        """Allocates for a container whose affinity is decided; raises AllocationError or EndpointError."""
        ...


def unexpected(pod: Pod, error: Exception) -> AdmissionError:
    """The refusal for an error that kubelet has no reason of its own for."""
    return AdmissionError(pod.key, "UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected")


@dataclass(frozen=True, slots=True)
class TopologyManager:
    """Admits pods; the first of the providers allocates first."""

    settings: TopologySettings
    providers: Sequence[HintProvider]
    affinities: Affinities
    journal: Journal

    async def admit(self, pod: Pod) -> None:
        """Decides and allocates for all containers; raises AdmissionError."""
        if Policy(self.settings.policy) is Policy.NONE:
            await self._admit_undecided(pod)
        elif Scope(self.settings.scope) is Scope.POD:
            self._decide(pod, None, [provider.pod_hints(pod) for provider in self.providers])
            await self._admit_undecided(pod)
        else:
            for container in pod.in_order():
                self._decide(pod, container, [provider.hints(pod, container) for provider in self.providers])
                await self._allocate(pod, container)

    async def _admit_undecided(self, pod: Pod) -> None:
        for container in pod.in_order():
            await self._allocate(pod, container)

    def _decide(self, pod: Pod, container: Container | None, hints: Sequence[Hints]) -> None:
        verdict = decide(self.settings, flatten(hints))
        name = None if container is None else container.name
        self.journal.decisions.append(TopologyDecided(pod.uid, name, tuple(hints), verdict.hint, verdict.admit))
        if not verdict.admit:
            text = "Resources cannot be allocated with Topology locality"
            raise AdmissionError(pod.key, "TopologyAffinityError", text)
        for affected in pod.in_order() if container is None else (container,):
            self.affinities.store(pod.uid, affected.name, verdict.hint)

    async def _allocate(self, pod: Pod, container: Container) -> None:
        try:
            for provider in self.providers:
                await provider.allocate(pod, container)
        except (AllocationError, EndpointError) as error:
            raise unexpected(pod, error) from error
