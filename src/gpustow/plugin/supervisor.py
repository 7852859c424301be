"""The life of the daemon: read the configuration and the node, run one plugin a resource, reload, stop.

What is new is built and checked beside what runs: a reload that fails in any way leaves the old running, and the daemon
not ready until a reload works, since what it does is not what it was told to. A reload that works touches only what it
changes: a resource that stays keeps its server and its registration, gets its new devices and settings in place, and
kubelet hears of it only if the list of devices differs. One that goes and comes back within a moment waits, because
kubelet 1.36 and older would take the end of the old stream for that of the new one. Reloads that are asked for while
one is under way become one more.

Without devices, or with a driver that cannot be read, the daemon ends if the operator asked for that (failOnInitError);
else it stays, not ready, and looks again from time to time.

A resource that kubelet refuses for its name does not disturb the others. A kubelet that refuses our API version ends
the daemon, as does everything unforeseen: the pod's restart is then the best that can happen.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random, SystemRandom

from gpustow.config import Config, LoadedConfig
from gpustow.errors import (
    ApiVersionRefused,
    GpustowError,
    HardwareError,
    NoDevicesError,
    PodResourcesError,
    RegistrationRefused,
)
from gpustow.hardware.node import NodeReader
from gpustow.kubelet.podresources import HeldDevice, PodResources, pod_resources_socket
from gpustow.kubelet.socketfile import DEFAULT_DIRECTORY, check_directory, remove_stale_sockets
from gpustow.plugin.blocking import in_thread
from gpustow.plugin.hostreading import HostReader, simulated_host
from gpustow.plugin.observer import GuardedObserver, PluginObserver, PluginState, SilentObserver
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.offer import KubeletPlace, Offer
from gpustow.plugin.resource import ResourcePlugin, Surroundings
from gpustow.plugin.startlog import config_lines, resource_lines
from gpustow.plugin.timing import Timing

log = logging.getLogger(__name__)


class Supervisor:
    """The daemon. `run` it in a task; `reload` and `stop` may be called at any time from the event loop's thread.

    `load_config` reads the configuration anew each time, `make_reader` gives the reader that it asks for, and
    `read_host` finds what the node has beside its GPUs (where it is not given, the node is a simulated one); all may
    block and are called in a thread. `default_directory` is where the sockets lie if there is no kubelet to register
    with.
    """

    def __init__(
        self,
        load_config: Callable[[], LoadedConfig],
        make_reader: Callable[[Config], NodeReader],
        *,
        read_host: HostReader = simulated_host,
        default_directory: Path = DEFAULT_DIRECTORY,
        timing: Timing | None = None,
        random: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        observer: PluginObserver | None = None,
    ) -> None:
        self._load_config = load_config
        self._make_reader = make_reader
        self._read_host = read_host
        self._default_directory = default_directory
        self._timing = timing or Timing()
        self._usage = NodeUsage(self._timing, clock)
        self._surroundings = Surroundings(
            self._timing,
            random or SystemRandom(),
            clock,
            GuardedObserver(observer if observer is not None else SilentObserver()),
            self._usage,
        )
        self._place = KubeletPlace(default_directory, None)
        self._plugins: dict[str, tuple[ResourcePlugin, asyncio.Task[None]]] = {}
        self._retired_at: dict[tuple[KubeletPlace, str], float] = {}
        self._trouble: str | None = "it has just been started"
        self._refused: str | None = None
        self._reload_asked = asyncio.Event()
        self._stop_asked = asyncio.Event()

    def reload(self) -> None:
        """Reads configuration and node again, soon."""
        self._reload_asked.set()

    def stop(self) -> None:
        """Ends `run`: streams and servers are ended, our sockets removed."""
        self._stop_asked.set()

    @property
    def states(self) -> Mapping[str, PluginState]:
        """Where the plugin of each resource is."""
        return {name: plugin.state for name, (plugin, _) in self._plugins.items()}

    @property
    def not_ready(self) -> str | None:
        """Why the node's devices are not in use as they should be; None if they are."""
        waiting = [plugin for plugin, _ in self._plugins.values() if not plugin.ready]
        reasons = [
            self._trouble,
            self._refused,
            *(f"{plugin.name} is {plugin.state}: {plugin.reason}" for plugin in waiting),
        ]
        return "; ".join(filter(None, reasons)) or None

    async def run(self) -> None:
        """Serves until `stop`, then returns.

        Raises at the start ConfigError or KubeletDirectoryError, and with failOnInitError HardwareError or
        NoDevicesError; later ApiVersionRefused, or KubeletDirectoryError if the directory was deleted under us.
        """
        try:
            async with asyncio.TaskGroup() as group:
                life = group.create_task(self._live(group), name="supervisor")
                watch = group.create_task(self._usage.watch(self._list_held), name="what is in use")
                await self._stop_asked.wait()
                log.info("stopping")
                for task in (life, watch, *(task for _, task in self._plugins.values())):
                    task.cancel()
        except BaseExceptionGroup as errors:
            for other in errors.exceptions[1:]:
                log.exception("another failure in the same moment", exc_info=other)
            raise errors.exceptions[0] from None
        finally:
            self._plugins.clear()
            self._refused = None
            self._trouble = "it has ended"

    async def _live(self, group: asyncio.TaskGroup) -> None:
        loaded = await self._load()
        config = loaded.config
        _tell(loaded)
        self._go_to(self._checked_place(config))
        await self._look(config, group)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._plugins else self._timing.look_again):
                    await self._reload_asked.wait()
            if self._reload_asked.is_set():
                self._reload_asked.clear()
                config = await self._reload(config, group)
            else:
                await self._look(config, group)

    async def _load(self) -> LoadedConfig:
        return await in_thread(self._load_config, name="read configuration")

    def _checked_place(self, config: Config) -> KubeletPlace:
        place = KubeletPlace.of(config, self._default_directory)
        check_directory(place.directory)
        return place

    def _go_to(self, place: KubeletPlace) -> None:
        self._place = place
        for path in remove_stale_sockets(place.directory):
            log.info("removed %s, which nobody serves any more", path)

    async def _offer(self, config: Config) -> Offer:
        def build() -> Offer:
            node = self._make_reader(config).read()
            return Offer.of(node, config, self._read_host(config, node.platform))

        return await in_thread(build, name="read node")

    async def _look(self, config: Config, group: asyncio.TaskGroup) -> None:
        """Reads the node for the first time, or again because there was nothing on it."""
        try:
            offer = await self._offer(config)
        except (HardwareError, NoDevicesError) as error:
            if config.fail_on_init_error:
                raise
            if self._trouble != str(error):
                log.warning("%s\n  Looking again every %g s.", error, self._timing.look_again)
            self._trouble = str(error)
        else:
            await self._serve(offer, self._place, group)

    async def _reload(self, running: Config, group: asyncio.TaskGroup) -> Config:
        """Goes over to a new configuration and reading, or stays with the old; returns the one that holds."""
        log.info("reloading")
        try:
            loaded = await self._load()
            config = loaded.config
            place = self._checked_place(config)
            offer = await self._offer(config) if self._plugins else None
        except GpustowError as error:
            self._refused = f"the reload is refused, and what ran before goes on: {error}"
            log.error("%s", self._refused)  # noqa: TRY400 - says it all
            return running
        except Exception as error:
            self._refused = f"the reload failed, and what ran before goes on: {error!r}"
            log.exception("%s", self._refused)
            return running
        self._refused = None
        _tell(loaded)
        if offer is not None:
            await self._serve(offer, place, group)
        else:
            self._go_to(place)
            await self._look(config, group)
        return config

    async def read_usage(self) -> None:
        """Reads from kubelet what is in use, now; the daemon does so by itself in quiet moments."""
        await self._usage.read(self._list_held)

    async def _list_held(self) -> tuple[HeldDevice, ...]:
        """Which container holds which device, from the kubelet that we register with."""
        if self._place.socket is None:
            raise PodResourcesError("nowhere", "there is no kubelet to register with")
        return await PodResources(pod_resources_socket(self._place.socket)).held()

    async def _serve(self, offer: Offer, place: KubeletPlace, group: asyncio.TaskGroup) -> None:
        for line in resource_lines(served.resource for served in offer.served):
            log.info("%s", line)
        for note in offer.notes:
            log.warning("%s", note)
        self._usage.serve(served.resource for served in offer.served)
        wanted = {served.resource.name for served in offer.served}
        moved = place != self._place
        await self._end([name for name in self._plugins if moved or name not in wanted])
        if moved:
            self._go_to(place)
        for served in offer.served:
            running = self._plugins.get(served.resource.name)
            if running is not None and not running[1].done():
                running[0].replace(served)
                continue
            rest = self._rest(place, served.resource.name)
            plugin = ResourcePlugin(served, place, self._surroundings, rest=rest)
            task = group.create_task(_run(plugin), name=f"plugin {plugin.name}")
            self._plugins[plugin.name] = (plugin, task)
        self._trouble = None

    async def _end(self, names: list[str]) -> None:
        """Retires the plugins of these resources and waits until their servers are gone."""
        ending = [self._plugins.pop(name) for name in names]
        for plugin, task in ending:
            plugin.retire()
            task.cancel()
        if ending:
            await asyncio.wait([task for _, task in ending])
        now = self._surroundings.clock()
        self._retired_at.update({(self._place, plugin.name): now for plugin, _ in ending})

    def _rest(self, place: KubeletPlace, name: str) -> float:
        """How many seconds a name that was retired must wait before the same kubelet hears of it again."""
        retired_at = self._retired_at.pop((place, name), None)
        if retired_at is None:
            return 0.0
        return max(0.0, retired_at + self._timing.retry_first - self._surroundings.clock())


def _tell(loaded: LoadedConfig) -> None:
    """Logs the configuration that is in force from now on."""
    for line in config_lines(loaded):
        log.info("%s", line)
    for warning in loaded.warnings:
        log.warning("%s", warning)


async def _run(plugin: ResourcePlugin) -> None:
    """Runs a plugin; one that kubelet refuses for its name ends alone."""
    try:
        await plugin.run()
    except ApiVersionRefused:
        raise
    except RegistrationRefused as error:
        log.error("%s", error)  # noqa: TRY400 - it is what kubelet says, and our stack adds nothing
