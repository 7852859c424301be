"""The pods of a walk: how they are admitted, what must be true of what they get, and when a refusal is a failure.

An admission that kubelet's allocatable suffices for must succeed, unless kubelet or the daemon came or went, or devices
fell ill or vanished, while it was under way or just before. A reload is no excuse.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpustow.errors import AdmissionError, UsageError
from gpustow.simulation.kubelet import AdmittedContainer, AdmittedPod, Container, EmbeddedKubelet, Pod
from tests.lifecycle.expectation import Expectation, Ids

Wants = Mapping[str, int]

LONGEST = 60.0
"""Seconds after which an admission is one that never ends."""


class Violation(Exception):  # noqa: N818 - what was violated, not an error of the test
    """Something that must never be."""


class NotYet(Violation):
    """Something that must not be once all is quiet."""


@dataclass
class Pods:
    """Those that are there, by name; `turmoil_at` is when kubelet or the daemon came or went last."""

    kubelet: EmbeddedKubelet
    expectation: Expectation
    clock: Callable[[], float]
    is_quiet: Callable[[], bool]
    running: dict[str, AdmittedPod] = field(default_factory=dict)
    coming: dict[str, Wants] = field(default_factory=dict)
    shaken_until: float = 0.0
    admitted: int = 0
    refused: int = 0
    _number: int = 0

    def held(self) -> Ids:
        """What the pods hold."""
        held: dict[str, set[str]] = {}
        for pod in self.running.values():
            for container in pod.containers:
                for resource, ids in container.device_ids.items():
                    held.setdefault(resource, set()).update(ids)
        return {resource: frozenset(ids) for resource, ids in held.items()}

    def free(self) -> dict[str, int]:
        """How many devices of each resource the scheduler may count on."""
        used: Counter[str] = Counter()
        for pod in self.running.values():
            for container in pod.pod.containers:
                used.update(container.limits)
        for wants in self.coming.values():
            used.update(wants)
        status = self.kubelet.node_status().allocatable
        now = self.kubelet.allocatable()
        return {name: min(now[name], status.get(name, 0)) - used[name] for name in now}

    async def admit(self, wants: Wants, parts: int) -> str:
        """A pod with so many containers of these wants each; what came of it. Raises Violation."""
        self._number += 1
        name = f"pod-{self._number}"
        pod = Pod(name, containers=tuple(Container(f"c{part}", wants) for part in range(parts)))
        total = {resource: size * parts for resource, size in wants.items()}
        began, sufficed = self.clock(), self._suffices(total)
        offered = self.expectation.offered() if self.is_quiet() else None
        self.expectation.disturbed()
        self.coming[name] = total
        try:
            async with asyncio.timeout(LONGEST):
                admitted = await self.kubelet.admit(pod)
        except AdmissionError as error:
            del self.coming[name]
            self.refused += 1
            no_fit = error.reason == "TopologyAffinityError"
            if sufficed and self._suffices(total) and self.shaken_until < began and not no_fit:
                raise Violation(f"{name} was refused although there is enough: {error}") from error
            return f"{name} is refused: {error}"
        except UsageError as error:
            del self.coming[name]
            return f"{name} is given up: {error}"
        except TimeoutError:
            raise Violation(f"the admission of {name} has not ended within {LONGEST:g} s") from None
        del self.coming[name]
        self.admitted += 1
        self._check(admitted, wants, began)
        if offered is not None:
            self._check_offered(admitted, offered, began)
        self.running[name] = admitted
        given = "; ".join(f"{resource}: {', '.join(admitted.device_ids(resource))}" for resource in wants)
        return f"{name} gets {given}"

    def may_fail(self, seconds: float) -> None:
        """Those that are under way, and those that begin within so many seconds."""
        self.shaken_until = max(self.shaken_until, self.clock() + seconds)

    def _suffices(self, wants: Wants) -> bool:
        try:
            free = self.free()
        except UsageError:
            return False
        return all(0 < size <= free.get(resource, 0) for resource, size in wants.items())

    def _check(self, pod: AdmittedPod, wants: Wants, began: float) -> None:
        mine: dict[str, set[str]] = {}
        for container in pod.containers:
            for resource, size in wants.items():
                ids = container.device_ids.get(resource, ())
                if len(ids) != size:
                    raise Violation(f"{pod.pod.name} wants {size} of {resource} and gets {ids}")
                if mine.setdefault(resource, set()).intersection(ids):
                    raise Violation(f"two containers of {pod.pod.name} have the same of {ids}")
                mine[resource].update(ids)
            _check_environment(pod, container)
        held = self.held()
        for resource, own in mine.items():
            if twice := own & held.get(resource, frozenset()):
                raise Violation(f"{pod.pod.name} gets {sorted(twice)} of {resource}, which another pod has")
            for id_ in own:
                self._check_fit(pod, resource, id_, began)

    def _check_fit(self, pod: AdmittedPod, resource: str, id_: str, began: float) -> None:
        uuid = id_.partition("::")[0]
        card = self.expectation.owner(uuid)
        if self.expectation.health.surely_unfit_since(uuid, card) < began:
            raise Violation(f"{pod.pod.name} gets {id_} of {resource}, which has long been unfit")

    def _check_offered(self, pod: AdmittedPod, offered: Mapping[str, Mapping[str, str]], began: float) -> None:
        """Raises Violation if the pod has a device that was not offered when all was quiet, nor later."""
        now, last_at = self.expectation.offered(), self.expectation.last_at
        for container in pod.containers:
            for resource, ids in container.device_ids.items():
                here = {*offered.get(resource, {}), *now.get(resource, {})}
                if gone := [id_ for id_ in ids if id_ not in here and last_at.get((resource, id_), 0.0) < began]:
                    raise Violation(f"{pod.pod.name} gets {gone} of {resource}, which were gone before")

    def release(self, name: str) -> None:
        """The pod is deleted."""
        pod = self.running.pop(name)
        for container in pod.containers:
            for resource, ids in container.device_ids.items():
                self.expectation.released(resource, ids)
        self.kubelet.remove(pod.pod.namespace, name)

    def check_holdings(self) -> None:
        """By kubelet's own books: no device is with two pods. Raises Violation."""
        owners: dict[tuple[str, str], str] = {}
        alive = {pod.pod.uid: name for name, pod in self.running.items()}
        for entry in self.kubelet.manager.state.holdings.entries():
            name = alive.get(entry.pod_uid)
            for id_ in entry.held.ids if name is not None else ():
                other = owners.setdefault((entry.resource, id_), entry.pod_uid)
                if other != entry.pod_uid:
                    raise Violation(f"{id_} of {entry.resource} is with {name} and with {alive[other]}")


def _check_environment(pod: AdmittedPod, container: AdmittedContainer) -> None:
    """Raises Violation if the container sees others than it has. Two resources share one variable, and one wins."""
    if len(container.device_ids) == 1:
        [own] = container.device_ids.values()
        seen = set(container.envs["NVIDIA_VISIBLE_DEVICES"].split(","))
        if seen != {id_.partition("::")[0] for id_ in own}:
            raise Violation(f"a container of {pod.pod.name} holds {own} and sees {sorted(seen)}")
