"""The embedded kubelet: real sockets and kubelet's habits behind them, inside this process.

This is the node with its API server: pods are created, end and are removed here, and live on when kubelet is restarted,
killed, or the node reboots. Admission is serial, as in kubelet; a plugin that does not answer holds up every pod.

Where the true kubelet would crash, `KubeletPanicError` is raised and this one is down, as if killed: `restart` brings
it back.
"""

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from gpustow.errors import AdmissionError, UsageError
from gpustow.simulation.kubelet.admission import HintProvider
from gpustow.simulation.kubelet.answer import ContainerAnswer
from gpustow.simulation.kubelet.behaviour import DEFAULT_BEHAVIOUR, Behaviour
from gpustow.simulation.kubelet.devicemanager import DeviceManager
from gpustow.simulation.kubelet.journal import Journal, Registered
from gpustow.simulation.kubelet.news import News
from gpustow.simulation.kubelet.nodestatus import NodeObject, NodeStatus
from gpustow.simulation.kubelet.pluginclient import DIAL_TIMEOUT
from gpustow.simulation.kubelet.pod import AdmittedPod, Pod
from gpustow.simulation.kubelet.podbook import Phase, PodBook, PodStatus, Readmission, refused
from gpustow.simulation.kubelet.run import Cluster, Run, Setup
from gpustow.simulation.kubelet.sockets import Sockets
from gpustow.simulation.kubelet.topology.settings import TopologySettings


class EmbeddedKubelet:
    """A node with a kubelet for device plugins to register with, as an async context manager.

    `directory` stands for /var/lib/kubelet: below it are `device-plugins/kubelet.sock`, where plugins register, and
    `pod-resources/kubelet.sock`. `random` makes every choice that is arbitrary in kubelet. `clock` counts seconds for
    everything that waits for minutes or counts by the second; connections have limits in real time. `behaviour` says
    which version is imitated, `topology` how its Topology Manager is set up. `hint_providers` stand for the CPU and
    memory managers. `node_resources` are extended resources that an administrator has set on the Node.
    """

    def __init__(
        self,
        directory: Path,
        *,
        random: Random,
        clock: Callable[[], float] = time.monotonic,
        behaviour: Behaviour = DEFAULT_BEHAVIOUR,
        topology: TopologySettings | None = None,
        hint_providers: Sequence[HintProvider] = (),
        node_resources: Mapping[str, int] | None = None,
        dial_timeout: float = DIAL_TIMEOUT,
    ) -> None:
        self._sockets = Sockets(directory)
        self._random = random
        self._setup = Setup(
            sockets=self._sockets,
            random=random,
            clock=clock,
            behaviour=behaviour,
            topology=topology or TopologySettings(),
            hint_providers=tuple(hint_providers),
            dial_timeout=dial_timeout,
        )
        self._cluster = Cluster(PodBook(), NodeObject(clock, node_resources or {}), Journal())
        self._run: Run | None = None
        self._running: dict[str, tuple[str, ...]] = {}
        self._restarting: asyncio.Event | None = None
        self._news = News()

    @property
    def plugin_directory(self) -> Path:
        """Where plugins put their sockets."""
        return self._sockets.plugin_directory

    @property
    def registration_socket(self) -> Path:
        """Where plugins register."""
        return self._sockets.registration

    @property
    def pod_resources_socket(self) -> Path:
        """Where PodResources is served."""
        return self._sockets.pod_resources

    @property
    def journal(self) -> Journal:
        """What kubelet has done."""
        return self._cluster.journal

    @property
    def registrations(self) -> deque[Registered]:
        """The calls of Register that have ended, oldest first; short for `journal.registrations`."""
        return self._cluster.journal.registrations

    @property
    def manager(self) -> DeviceManager:
        """The device manager of the last run, to look inside; it is no part of the documented surface."""
        return self._last().manager

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> tuple[Readmission, ...]:
        """Starts kubelet and takes the pods that are there through admission again.

        Raises KubeletDirectoryError if the directory cannot be used, UsageError if kubelet runs already.
        """
        await self._start()
        return await self.readmit()

    async def _start(self) -> None:
        if self._run is not None and self._run.alive:
            raise UsageError("the embedded kubelet runs already")
        await self._stop(killed=False)  # a crash may still be on its way down
        run = Run(self._setup, self._cluster, self._news.tell)
        await run.start((uid, name) for uid, names in self._running.items() for name in names)
        self._run = run

    async def stop(self, *, killed: bool = False) -> None:
        """Stops kubelet; containers go on. `killed` leaves sockets behind that nobody answers on.

        An admission under way ends with UsageError; a restart under way comes to its end first.
        """
        await self._restarted()
        await self._stop(killed=killed)

    async def _stop(self, *, killed: bool) -> None:
        if self._run is not None:
            await self._run.stop(killed=killed)

    async def _restarted(self) -> None:
        while self._restarting is not None:
            await self._restarting.wait()

    async def restart(
        self, *, killed: bool = False, reboot: bool = False, readmit: bool = True
    ) -> tuple[Readmission, ...]:
        """Stops kubelet and starts it again; plugins have to register anew.

        With `reboot` no container runs any more. The pods are taken through admission again at once, so before any
        plugin is back; with `readmit=False` that waits for a call of `readmit`. An admission under way starts anew.
        """
        await self._restarted()
        self._restarting = asyncio.Event()
        try:
            await self._stop(killed=killed)
            if reboot:
                self._running.clear()
            await self._start()
        finally:
            self._restarting.set()
            self._restarting = None
        return await self.readmit() if readmit else ()

    async def readmit(self) -> tuple[Readmission, ...]:
        """Takes all pods through admission in the order of their creation; then kubelet's sources are ready.

        A pod that is refused has failed. Kubelet 1.31 and older does this to pods that have ended, too.
        """
        run = await self._up()
        book = self._cluster.book
        pods = book.pods() if self._setup.behaviour.readmits_finished_pods else book.active()
        pods = [pod for pod in pods if book.record(pod.namespace, pod.name).status.phase is not Phase.PENDING]
        async with run.admitting:
            results = [await self._readmit(run, pod) for pod in pods if book.has(pod)]
            run.manager.sources_ready = True
        return tuple(results)

    async def _readmit(self, run: Run, pod: Pod) -> Readmission:
        book = self._cluster.book
        try:
            await run.admit(pod)
        except AdmissionError as refusal:
            if book.has(pod):
                self._end(pod)
                book.end(pod, refused(refusal))
            return Readmission(pod, refusal)
        if pod.uid in book.active_uids():
            self._running[pod.uid] = pod.lasting()
            self.write_status(pod.namespace, pod.name)
        return Readmission(pod)

    def _alive(self) -> Run:
        if self._run is None or not self._run.alive:
            raise UsageError("the embedded kubelet does not run", advice="Use it as `async with`, or call start first.")
        return self._run

    async def _up(self) -> Run:
        """The run that lives, after a restart that is under way; UsageError if there is none."""
        await self._restarted()
        return self._alive()

    def _last(self) -> Run:
        if self._run is None:
            raise UsageError(
                "the embedded kubelet has never run", advice="Use it as `async with`, or call start first."
            )
        return self._run

    def capacity(self) -> Mapping[str, int]:
        """The devices of each resource, unhealthy ones included, as the device manager has them now."""
        return self.manager.quantities().capacity

    def allocatable(self) -> Mapping[str, int]:
        """The healthy devices of each resource, taken or not, as the device manager has them now."""
        return self.manager.quantities().allocatable

    def node_status(self) -> NodeStatus:
        """The same as the API server and so the scheduler has it: up to 10 seconds old."""
        return self._last().node_status()

    async def wait_for(self, resource: str, at_least: int = 1, *, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - the caller's patience, as in asyncio.wait
        """Waits until so many devices of a resource are allocatable, taken or not.

        Raises TimeoutError after `timeout` seconds; its text says what there was, and how the last registration went.
        """
        try:
            await self.wait_until(lambda: self.allocatable().get(resource, 0) >= at_least, timeout=timeout)
        except TimeoutError as error:
            raise TimeoutError(
                f"waited {timeout:g} s for {at_least} devices of {resource}; allocatable: {self.allocatable()}; "
                f"its last registration {self.journal.fate_of_last_registration(resource)}"
            ) from error

    async def wait_until(self, condition: Callable[[], bool], *, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - as in wait_for
        """Waits for a condition, looked at whenever a plugin has connected, listed or been lost, and every 50 ms.

        Raises TimeoutError after `timeout` seconds.
        """
        await self._news.wait_until(condition, timeout)

    async def admit(self, pod: Pod) -> AdmittedPod:
        """Creates a pod and admits it; its containers then run.

        Raises AdmissionError if it is refused, UsageError if a pod of that name is there or kubelet is down, and
        KubeletPanicError where kubelet crashes. A pod whose admission a restart interrupts is admitted after it; one
        whose admission the caller gives up, as with asyncio.timeout, is gone with all that it had reserved.
        """
        if not pod.uid:
            pod = replace(pod, uid=str(uuid.UUID(int=self._random.getrandbits(128), version=4)))
        book = self._cluster.book
        try:
            await self._admit_by_some_run(pod)
        except AdmissionError as refusal:
            self._last().forget(pod)
            book.end(pod, refused(refusal))
            raise
        book.run(pod)
        self._running[pod.uid] = pod.lasting()
        self.write_status(pod.namespace, pod.name)
        return self.pod(pod.namespace, pod.name)

    async def _admit_by_some_run(self, pod: Pod) -> None:
        """Creates the pod and admits it; goes on until a run has come to a result that it lived to tell."""
        run = await self._up()
        async with run.admitting:
            self._cluster.book.create(pod)
            with self._removed_on_failure(pod):
                is_told = await run.lives_to_admit(pod)
        with self._removed_on_failure(pod):
            while not is_told:
                run = await self._up()
                async with run.admitting:
                    is_told = await run.lives_to_admit(pod)

    @contextmanager
    def _removed_on_failure(self, pod: Pod) -> Iterator[None]:
        try:
            yield
        except AdmissionError:
            raise
        except BaseException:
            self._cluster.book.remove(pod.namespace, pod.name)
            self._last().give_up(pod)
            raise

    def pod(self, namespace: str, name: str) -> AdmittedPod:
        """What a pod's containers have been given; KeyError if there is no such pod."""
        return self._last().view(self._cluster.book.record(namespace, name).pod)

    async def start_container(self, namespace: str, name: str, container: str) -> ContainerAnswer:
        """Starts a container, again if it ran: PreStartContainer is called, and the stored answers are handed out.

        Raises KeyError if there is no such pod or container, AllocationError or EndpointError if it cannot start.
        """
        pod = self._cluster.book.record(namespace, name).pod
        found = {candidate.name: candidate for candidate in pod.in_order()}[container]
        edits = await (await self._up()).start_container(pod, found)
        self.write_status(namespace, name)
        return edits

    def finish(self, namespace: str, name: str) -> None:
        """The pod's containers have ended well; the Pod object stays, with the device health that was written last.

        Raises KeyError if there is no such pod, UsageError while it is being admitted or if it has ended already.
        """
        pod = self._decided(namespace, name)
        if self.pod_status(namespace, name).phase.ended:
            raise UsageError(f"pod {pod.key} has ended already")
        self._end(pod)
        self._cluster.book.end(pod, replace(self.pod_status(namespace, name), phase=Phase.SUCCEEDED))

    def remove(self, namespace: str, name: str) -> None:
        """The pod is deleted; its devices are free for the next admission.

        Raises KeyError if there is no such pod, UsageError while it is being admitted.
        """
        self._decided(namespace, name)
        self._end(self._cluster.book.remove(namespace, name))

    def _decided(self, namespace: str, name: str) -> Pod:
        record = self._cluster.book.record(namespace, name)
        if record.status.phase is Phase.PENDING:
            raise UsageError(f"pod {record.pod.key} is being admitted; wait for that")
        return record.pod

    def _end(self, pod: Pod) -> None:
        self._running.pop(pod.uid, None)
        self._last().forget(pod)

    def pod_status(self, namespace: str, name: str) -> PodStatus:
        """A pod's status as kubelet wrote it last; KeyError if there is no such pod."""
        return self._cluster.book.record(namespace, name).status

    def write_status(self, namespace: str, name: str) -> None:
        """Kubelet writes a pod's status, as it does for many reasons; the health of its devices is looked up anew."""
        self._last().write_status(self._cluster.book.record(namespace, name))
