"""The running plugins, one a resource: which there are, and that none takes another down.

A resource that stays keeps its plugin, with its server and its registration, and gets its devices and settings in
place. One that ends tells kubelet first that nothing is left of it. One that comes back within a moment waits, because
kubelet 1.36 and older would take the end of the old stream for that of the new one.

A plugin that kubelet refuses for its name, or that has crashed too often, ends alone, until the next reload. Only if no
other plugin is left does the crash end the daemon: the pod's restart is then the best that can happen. A kubelet that
refuses our API version, or a directory that was deleted under us, ends the daemon at once, since that is true for all.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping

from gpustow.errors import ApiVersionRefused, KubeletDirectoryError, RegistrationRefused
from gpustow.plugin.observer import PluginState
from gpustow.plugin.offer import KubeletPlace, ServedResource
from gpustow.plugin.resource import ResourcePlugin, Surroundings

log = logging.getLogger(__name__)


class Fleet:
    """Plugins by the name of their resource. `group` is where they run."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._plugins: dict[str, tuple[ResourcePlugin, asyncio.Task[None]]] = {}
        self._retired_at: dict[tuple[KubeletPlace, str], float] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The resources that have a plugin."""
        return tuple(self._plugins)

    @property
    def states(self) -> Mapping[str, PluginState]:
        """Where each plugin is."""
        return {name: plugin.state for name, (plugin, _) in self._plugins.items()}

    @property
    def plugins(self) -> Mapping[str, ResourcePlugin]:
        """The plugins themselves."""
        return {name: plugin for name, (plugin, _) in self._plugins.items()}

    @property
    def complaints(self) -> Mapping[str, str]:
        """Why the resource of each plugin is not in use; empty if it is."""
        return {name: plugin.complaint for name, (plugin, _) in self._plugins.items()}

    def update(self, served: Iterable[ServedResource]) -> None:
        """Gives the plugins that run what they are to serve from now on; kubelet hears of it if the list differs."""
        for each in served:
            running = self._plugins.get(each.resource.name)
            if running is not None:
                running[0].replace(each)

    def serve(self, served: Iterable[ServedResource], place: KubeletPlace, group: asyncio.TaskGroup) -> None:
        """Starts a plugin at `place` for each resource that has none, and updates the others."""
        for each in served:
            name = each.resource.name
            if name in self._plugins:
                self._plugins[name][0].replace(each)
                continue
            plugin = ResourcePlugin(each, place, self._surroundings, rest=self.rest(place, name))
            task = group.create_task(self._run(plugin), name=f"plugin {name}")
            self._plugins[name] = (plugin, task)

    async def end(self, names: Iterable[str], place: KubeletPlace) -> None:
        """Retires the plugins of these resources, which are at `place`, and waits until their servers are gone."""
        ending = [self._plugins.pop(name) for name in names]
        for plugin, task in ending:
            plugin.retire()
            task.cancel()
        if ending:
            await asyncio.wait([task for _, task in ending])
        now = self._surroundings.clock()
        self._retired_at.update({(place, plugin.name): now for plugin, _ in ending})

    def forget_ended(self) -> None:
        """Lets those that have ended alone be tried again, the next time that they are to be served."""
        self._plugins = {name: running for name, running in self._plugins.items() if not running[1].done()}

    def cancel(self) -> None:
        """Ends all plugins, without telling kubelet that their resources are gone."""
        for _, task in self._plugins.values():
            task.cancel()

    def clear(self) -> None:
        """Forgets the plugins, which have ended."""
        self._plugins.clear()

    def rest(self, place: KubeletPlace, name: str) -> float:
        """How many seconds a name that was retired must wait before the same kubelet hears of it again."""
        retired_at = self._retired_at.pop((place, name), None)
        if retired_at is None:
            return 0.0
        return max(0.0, retired_at + self._surroundings.timing.retry_first - self._surroundings.clock())

    async def _run(self, plugin: ResourcePlugin) -> None:
        """Runs a plugin; what concerns it alone ends it alone."""
        try:
            await plugin.run()
        except (ApiVersionRefused, KubeletDirectoryError):
            raise
        except RegistrationRefused as error:
            log.error("%s", error)  # noqa: TRY400 - it is what kubelet says, and our stack adds nothing
        except Exception:
            if not self._others_live(plugin):
                raise
            log.error("%s is not served any more: %s", plugin.name, plugin.reason)  # noqa: TRY400 - each crash was logged

    def _others_live(self, plugin: ResourcePlugin) -> bool:
        return any(not task.done() for other, task in self._plugins.values() if other is not plugin)
