"""The plugin of one resource: how it gets to kubelet, notices that kubelet lost it, and gets there again.

    INIT -> BOUND -> REGISTERED -> STREAMING -> DRAINING -> INIT ...

Each round has a server of its own with a new socket: serve, dial ourselves, register, wait for kubelet's stream of the
list. What ends a round are facts that are looked at every `timing.poll` seconds, never events alone:

* our socket is gone or another one (kubelet deletes all sockets when it starts);
* kubelet's socket is another one;
* kubelet ended its stream, which it never opens again, or did not open one in time;
* another instance served the resource, too, and has ended (`rivals`);
* the server or the registration failed, or something crashed that must not.

A round is ended completely before the next begins. If kubelet is another one by then, or is gone, the next round starts
as soon as kubelet's socket is there. If it is the same, it gets time to notice first, more each time: kubelet 1.36
and older would take the end of the old stream for the end of the new one.

A resource that is shared by MPS begins no round before its MPS control daemon answers.

kubelet's socket is noted after Register and not before: should kubelet be replaced in between, then either our socket
went with it or no stream is there, and both end the round.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from gpustow.errors import KubeletDirectoryError, PluginServerError, RegistrationError, RegistrationRefused
from gpustow.kubelet.registration import Registration, register
from gpustow.kubelet.server import PluginServer
from gpustow.kubelet.socketfile import SocketFacts, directory_is_dead, unique_socket
from gpustow.plugin.observer import PluginObserver, PluginState
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.offer import KubeletPlace, ServedResource
from gpustow.plugin.rivals import Rivals
from gpustow.plugin.service import OPTIONS, ResourceService
from gpustow.plugin.timing import Backoff, CrashBudget, Timing
from gpustow.resources.device import Sharing

log = logging.getLogger(__name__)

_EMPTY_LIST = b""
_BAD_STATES = frozenset({PluginState.INIT, PluginState.REFUSED, PluginState.FAILED})


MpsTrouble = Callable[[str], Awaitable[str | None]]
"""Tells why the clients of a resource, by its name, would find no MPS control daemon; None if they would."""


async def no_mps_trouble(_resource: str) -> None:
    """What is told on a node whose MPS control daemons always answer, such as a simulated one."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all plugins of a daemon share. `clock` gives seconds that only go up."""

    timing: Timing
    random: Random
    clock: Callable[[], float]
    observer: PluginObserver
    usage: NodeUsage
    mps_trouble: MpsTrouble = no_mps_trouble


class ResourcePlugin:
    """Serves one resource to the kubelet at `place`; `run` it in a task, and cancel the task to stop.

    `rest` is how many seconds the same kubelet must be left alone first, because the resource was retired a moment ago.
    """

    def __init__(
        self, served: ServedResource, place: KubeletPlace, surroundings: Surroundings, *, rest: float = 0.0
    ) -> None:
        self.name = served.resource.name
        self.state = PluginState.INIT
        self.reason = "it has just been started"
        self._served = served
        self._place = place
        self._rest = rest
        self._timing = surroundings.timing
        self._random = surroundings.random
        self._clock = surroundings.clock
        self._observer = surroundings.observer
        self._usage = surroundings.usage
        self._mps_trouble = surroundings.mps_trouble
        self._backoff = Backoff(self._timing.retry_first, self._timing.retry_most, surroundings.random)
        self._service: ResourceService | None = None
        self._kubelet: SocketFacts | None = None
        self._stream_changed = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether the resource is in use: kubelet has the list, or nobody is to be registered with and we serve."""
        return self.state is (PluginState.BOUND if self._place.socket is None else PluginState.STREAMING)

    @property
    def complaint(self) -> str:
        """Why the resource is not in use; empty if it is."""
        return "" if self.ready else f"{self.name} is {self.state}: {self.reason}"

    @property
    def streams(self) -> int:
        """How many streams of the list kubelet has open."""
        return 0 if self._service is None else self._service.feed.streams

    def replace(self, served: ServedResource) -> None:
        """From now on serves `served`, without a new registration. Kubelet is told if the list of devices differs."""
        self._served = served
        if self._service is not None:
            self._service.replace(served)

    def retire(self) -> None:
        """Tells kubelet that the resource has no devices any more. To be followed by the end of `run`.

        Kubelet then sets the capacity to 0 at once; without this it keeps it for five minutes.
        """
        if self._service is not None:
            self._service.feed.publish(_EMPTY_LIST)
            self._service.feed.close()

    async def run(self) -> None:
        """Serves until cancelled.

        Raises RegistrationRefused if kubelet will never take the resource, KubeletDirectoryError if the directory was
        deleted under us and only a new mount helps, and what it crashed with if it has crashed too often.
        """
        crashes = CrashBudget(self._clock())
        await self._let_kubelet_notice()
        while True:
            try:
                await self._wait_for_mps()
                await self._wait_for_kubelet()
                reason = await self._round()
            except RegistrationRefused as error:
                self._move(PluginState.REFUSED, str(error))
                raise
            except KubeletDirectoryError:
                raise
            except (PluginServerError, RegistrationError) as error:
                reason = str(error)
            except Exception as error:
                reason = f"it crashed: {error!r}"
                log.exception("%s crashed", self.name)
                if not crashes.spend(self._clock()):
                    self._move(PluginState.FAILED, f"it has crashed too often, the last time with {error!r}")
                    raise
            self._move(PluginState.INIT, reason)
            if self._look() == self._kubelet:
                await self._pause(self._backoff.next())
            if self._look() != self._kubelet:
                self._backoff.reset()

    def _look(self) -> SocketFacts | None:
        return None if self._place.socket is None else SocketFacts.of(self._place.socket)

    def _move(self, state: PluginState, reason: str) -> None:
        self.state, self.reason = state, reason
        level = logging.WARNING if state in _BAD_STATES else logging.INFO
        log.log(level, "%s: %s: %s", self.name, state.words, reason)
        self._observer.moved(self.name, state, reason)

    async def _let_kubelet_notice(self) -> None:
        if self._place.socket is not None and self._rest > 0:
            self._move(PluginState.INIT, "it waits for kubelet to notice that it was retired")
            self._kubelet = self._look()
            await self._pause(self._rest)

    async def _wait_for_mps(self) -> None:
        """Waits until clients of MPS would find their daemon; else their containers would start without CUDA."""
        while self._served.resource.sharing is Sharing.MPS and (trouble := await self._mps_trouble(self.name)):
            reason = f"it waits for its MPS control daemon: {trouble}"
            if reason != self.reason:
                self._move(PluginState.INIT, reason)
            await asyncio.sleep(self._timing.mps_again)

    async def _wait_for_kubelet(self) -> None:
        if self._place.socket is None:
            self._check_directory()
            return
        self._kubelet = self._look()
        if self._kubelet is None:
            self._move(PluginState.INIT, f"it waits for kubelet to create {self._place.socket}")
        while self._kubelet is None:
            self._check_directory()
            await asyncio.sleep(self._timing.poll)
            self._kubelet = self._look()

    def _check_directory(self) -> None:
        if directory_is_dead(self._place.directory):
            raise KubeletDirectoryError(str(self._place.directory), "was deleted; a restart gets the new one")

    async def _pause(self, seconds: float) -> None:
        """Waits so long, or until kubelet's socket is another one."""
        end = self._clock() + seconds
        while (left := end - self._clock()) > 0 and self._look() == self._kubelet:  # noqa: ASYNC110 - a file sets no event
            await asyncio.sleep(min(left, self._timing.poll))

    async def _round(self) -> str:
        """One server, from bind to stop; returns why it ended."""
        service = ResourceService(self._served, self._observer, self._stream_changed.set, self._usage, self._random)
        server = PluginServer(service, unique_socket(self._place.directory, self.name, self._random))
        # Known before it serves, so that what is replaced meanwhile is not missed.
        self._service = service
        try:
            await server.start()
            self._move(PluginState.BOUND, f"it serves {len(self._served.resource.devices)} devices on {server.path}")
            await self._register(server)
            return await self._watch(server, service)
        finally:
            self._service = None
            service.feed.close()
            try:
                self._move(PluginState.DRAINING, "it ends its streams and removes its socket")
            finally:
                await server.stop()

    async def _register(self, server: PluginServer) -> None:
        if self._place.socket is None:
            return
        if not server.intact():
            raise PluginServerError(str(server.path), "the socket was deleted before the registration")
        registration = Registration(self.name, server.path.name, OPTIONS)
        await self._unless_deleted(server, register(self._place.socket, registration, seconds=self._timing.register))
        self._kubelet = self._look()
        self._usage.registered(self._kubelet)
        self._move(PluginState.REGISTERED, f"kubelet took the registration of {server.path.name}")

    async def _unless_deleted(self, server: PluginServer, registering: Coroutine[Any, Any, None]) -> None:
        """Registers, unless our socket is deleted meanwhile: kubelet, just started, would dial it in vain for 10 s."""
        task = asyncio.create_task(registering)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=self._timing.poll)
                if not task.done() and not server.intact():
                    raise PluginServerError(str(server.path), "the socket was deleted during the registration")
            task.result()
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _watch(self, server: PluginServer, service: ResourceService) -> str:
        """Returns when the round is over, with the reason."""
        start = self._clock()
        rivals = Rivals(server.path, self.name, self._clock)
        while True:
            self._stream_changed.clear()
            if not server.intact():
                return f"its socket {server.path.name} was deleted"
            if self._place.socket is not None:
                if reason := self._lost(service, self._clock() - start):
                    return reason
                alone_for = rivals.alone_for()
                if alone_for is not None and alone_for >= self._timing.alone_after:
                    return "another instance served the resource and has ended: kubelet may have dropped it"
                if service.feed.streams and self.state is PluginState.REGISTERED:
                    self._move(PluginState.STREAMING, "kubelet has the list of devices")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timing.poll):
                    await self._stream_changed.wait()

    def _lost(self, service: ResourceService, age: float) -> str | None:
        """Why kubelet must be registered with again, `age` seconds after it took us; None if all is well."""
        found = self._look()
        if found is not None and found.same_file(self._kubelet) and service.feed.streams:
            # Only its mode or label changed: were it kubelet's next socket, the stream would have ended.
            self._kubelet = found
        if found is None:
            return "kubelet's socket is gone: kubelet stopped"
        if found != self._kubelet:
            return "kubelet's socket is another one: kubelet was restarted"
        if service.feed.streams:
            if age >= self._timing.stable_after:
                self._backoff.reset()
            return None
        if service.feed.opened:
            return "kubelet ended its stream"
        if age >= self._timing.stream_deadline:
            return f"kubelet opened no stream in {self._timing.stream_deadline:g} s"
        return None
