"""Runs a workload under a policy: the real plugin, an embedded kubelet, real sockets in a temporary directory.

Nothing of the daemon is replaced: the supervisor that serves a real node serves here, and kubelet's side of the wire is
spoken over the same unix sockets. Only the node is a model. The same experiment gives the same outcome each time: what
kubelet chooses at random comes from a seed, and neither the environment of the process nor the time of day has a say.
On a node pods come seconds apart, and the daemon reads what is in use between them; here it does so after each action,
where there are several resources to know about, and at no other time.

Limits: no scheduler. A pod that asks for more than the node has left is refused here, where a cluster would have sent
it to another node or kept it waiting. Only a pod that asks for a resource that nobody registered is kept away from
kubelet, which would admit it without devices: no scheduler binds it to the node, so that it is unschedulable.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import inf
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from gpustow.config import Config, LoadedConfig, load_config
from gpustow.errors import AdmissionError, GpustowError, UsageError
from gpustow.hardware.nodemodel import NodeModel
from gpustow.hardware.simulated import SimulatedReader
from gpustow.kubelet.socketfile import MAX_PATH_BYTES
from gpustow.plugin import Supervisor
from gpustow.plugin.placementpolicy import placement_notes
from gpustow.plugin.timing import Timing
from gpustow.resources import Catalog, build_catalog
from gpustow.resources.device import Resource
from gpustow.simulation.kubelet import AdmittedContainer, AdmittedPod, EmbeddedKubelet, Pod
from gpustow.simulation.outcome import Advertised, ContainerOutcome, Outcome, Phase, PodOutcome, Refusal
from gpustow.simulation.workload import Action, Workload

POLICY_FLAG = "shared-devices-allocation-policy"
"""The flag of the plugin that the policy of a run takes the place of."""

CONFIGURED = "configured"
"""What stands for the policy where the configuration names policies by resource."""

REGISTRATION_SECONDS = 30.0
"""How long the plugin may take until kubelet knows all of its devices."""

LONGEST_DIRECTORY = MAX_PATH_BYTES - len("/device-plugins/gpustow--0123456789.sock")
"""How many bytes the path of the temporary directory may have, so that the plugin's sockets can be bound in it."""

Progress = Callable[[int, int], None]
"""Is told after each action how many are done, and of how many."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is run: a workload on a node, with the plugin configured by `flags`, as on its command line.

    `seed` is that of everything that is arbitrary in kubelet. `parent` is where the temporary directory is made; the
    system's own place where None.
    """

    node_model: NodeModel
    workload: Workload
    flags: Mapping[str, object]
    seed: int = 0
    parent: Path | None = None

    def config(self, policy: str | None = None) -> LoadedConfig:
        """The configuration of a run under `policy`; None leaves the policy to the configuration.

        Raises ConfigError.
        """
        return self._under(policy, self.flags)

    def _under(self, policy: str | None, flags: Mapping[str, object]) -> LoadedConfig:
        if policy is None:
            return load_config(flags, {})
        loaded = load_config({**flags, POLICY_FLAG: policy}, {})
        placement = tuple(replace(entry, policy=None, cap=None) for entry in loaded.config.placement)
        return replace(loaded, config=replace(loaded.config, placement=placement))

    async def run(self, policy: str | None = None, progress: Progress = lambda _done, _total: None) -> Outcome:
        """Runs the workload once, and takes everything down again.

        Raises ConfigError, HardwareError or NoDevicesError, as the plugin does, UsageError if the temporary directory's
        path is too long, and GpustowError if kubelet does not get to know the devices. A pod that is refused is part of
        the outcome.
        """
        loaded = self.config(policy)
        node = SimulatedReader(self.node_model).read()
        catalog = build_catalog(node, loaded.config)
        notes = (*catalog.warnings, *placement_notes(catalog.resources, loaded.config))
        with tempfile.TemporaryDirectory(prefix="gpustow-", dir=self.parent) as directory:
            _check_length(directory)
            async with EmbeddedKubelet(Path(directory), random=Random(self.seed)) as kubelet:  # noqa: S311 - to be repeated
                supervisor = self._supervisor(policy, kubelet)
                running = asyncio.create_task(supervisor.run(), name="supervisor")
                try:
                    story = _Story(kubelet, catalog, supervisor)
                    if not catalog.resources and loaded.config.fail_on_init_error:
                        await asyncio.wait({running})  # there is nothing to serve: its own error is raised below
                    await _unless_ended(running, story.tell(self.workload.actions, progress))
                finally:
                    supervisor.stop()
                    await asyncio.wait({running})
                running.result()
        return Outcome(
            policy=_title(loaded.config),
            node=node,
            resources=catalog.resources,
            advertised=story.advertised,
            pods=tuple(story.pods.values()),
            warnings=(*loaded.warnings, *node.notes, *notes, *self.workload.warnings, *story.warnings),
        )

    def _supervisor(self, policy: str | None, kubelet: EmbeddedKubelet) -> Supervisor:
        flags = {**self.flags, "kubelet-socket": str(kubelet.registration_socket)}
        return Supervisor(
            lambda: self._under(policy, flags),
            lambda _config: SimulatedReader(self.node_model),
            timing=Timing(usage_every=inf, usage_settles=inf),
            random=Random(self.seed),  # noqa: S311 - to be repeated
        )


def _title(config: Config) -> str:
    """What a run is called: its policy, or that the configuration names one for some of the resources."""
    if any(entry.policy is not None for entry in config.placement):
        return CONFIGURED
    return config.shared_devices_allocation_policy


def _check_length(directory: str) -> None:
    if len(os.fsencode(directory)) > LONGEST_DIRECTORY:
        raise UsageError(
            f"the temporary directory {directory} has a path too long for sockets in it",
            advice="Set TMPDIR to a shorter one, such as /tmp.",
        )


async def _unless_ended(running: asyncio.Task[None], work: Coroutine[Any, Any, _Result]) -> _Result:
    """Does the work, unless the daemon ends before that: then its error is raised."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task, running}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        running.result()
        raise GpustowError("the plugin ended before the workload did")
    finally:
        task.cancel()
        await asyncio.wait({task})


class _Story:
    """What happens to the pods, one action after the other."""

    def __init__(self, kubelet: EmbeddedKubelet, catalog: Catalog, supervisor: Supervisor) -> None:
        self._kubelet = kubelet
        self._supervisor = supervisor
        self._catalog = catalog
        self.pods: dict[str, PodOutcome] = {}
        self.advertised: dict[str, Advertised] = {}
        self.warnings: list[str] = []

    async def tell(self, actions: tuple[Action, ...], progress: Progress) -> None:
        for resource in self._catalog.resources:
            await self._wait_for(resource)
        allocatable = self._kubelet.allocatable()
        self.advertised = {
            name: Advertised(count, allocatable.get(name, 0)) for name, count in self._kubelet.capacity().items()
        }
        for done, action in enumerate(actions, start=1):
            await self._act(action)
            if len(self._catalog.resources) > 1:
                await self._supervisor.read_usage()
            progress(done, len(actions))

    async def _wait_for(self, resource: Resource) -> None:
        healthy = sum(device.healthy for device in resource.devices)
        try:
            await self._kubelet.wait_for(resource.name, at_least=healthy, timeout=REGISTRATION_SECONDS)
        except TimeoutError as error:
            known = self._kubelet.allocatable().get(resource.name, 0)
            raise GpustowError(
                f"kubelet knows {known} of the {healthy} healthy devices of {resource.name} after "
                f"{REGISTRATION_SECONDS:g} s: {self._supervisor.not_ready or 'the plugin believes that all is well'}",
                advice="Run it again with --log-level=info to see what plugin and kubelet do.",
            ) from error

    async def _act(self, action: Action) -> None:
        pod = action.pod
        if action.kind == "admit":
            self.pods[pod.key] = await self._admit(pod)
            return
        outcome = self.pods[pod.key]
        if outcome.phase is Phase.RUNNING:
            self._kubelet.remove(pod.namespace, pod.name)
            self.pods[pod.key] = replace(outcome, phase=Phase.RELEASED)

    async def _admit(self, pod: Pod) -> PodOutcome:
        before = self.pods[pod.key].refusals if pod.key in self.pods else ()
        if missing := self._missing(pod):
            self.warnings += [f"pod {pod.key}: {message}" for message in missing]
            refusals = (*before, Refusal("Unschedulable", "; ".join(missing)))
            return PodOutcome(pod.namespace, pod.name, Phase.UNSCHEDULABLE, refusals=refusals)
        try:
            admitted = await self._kubelet.admit(pod)
        except AdmissionError as error:
            refusals = (*before, Refusal(error.reason, error.status_message))
            return PodOutcome(pod.namespace, pod.name, Phase.REFUSED, refusals=refusals)
        return PodOutcome(pod.namespace, pod.name, Phase.RUNNING, _containers(admitted), before)

    def _missing(self, pod: Pod) -> list[str]:
        """What is wrong with each resource that the pod asks for and that the node does not have."""
        asked = {name for container in pod.in_order() for name, amount in container.limits.items() if amount}
        known = sorted(self.advertised)
        return [_no_such_resource(name, known) for name in sorted(asked.difference(known))]


def _no_such_resource(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"there is no resource {name} here; advertised: {', '.join(known) or 'none'}{hint}"


def _containers(admitted: AdmittedPod) -> tuple[ContainerOutcome, ...]:
    def outcome(given: AdmittedContainer) -> ContainerOutcome:
        return ContainerOutcome(
            given.name, dict(given.device_ids), dict(given.envs), dict(given.annotations), given.cdi_devices
        )

    return tuple(outcome(given) for given in (*admitted.init_containers, *admitted.containers))
