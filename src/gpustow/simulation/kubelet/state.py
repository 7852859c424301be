"""The device manager's tables, shared by all that read and change them.

`in_use` is a view of the holdings plus what is reserved for an allocation that is under way. It is rebuilt from the
holdings alone whenever pods are forgotten or an Allocate fails, and then such a reservation is lost; kubelet does the
same (kubernetes#137534).
"""

from dataclasses import dataclass, field

from gpustow.errors import GpustowError
from gpustow.simulation.kubelet.devices import DeviceTable
from gpustow.simulation.kubelet.endpoint import Endpoint, PluginOptions, StoppedEndpoint
from gpustow.simulation.kubelet.holdings import Holdings


class AllocationError(GpustowError):
    """A container cannot get its devices, or not be started with them; the text is kubelet's."""


@dataclass(slots=True)
class Plugin:
    """A plugin's place in the manager's table; `options` is None until it has connected since kubelet's start.

    `stopped_at` is when it was lost, in seconds of the manager's clock.
    """

    endpoint: Endpoint
    options: PluginOptions | None = None
    stopped_at: float | None = None

    def reachable(self, resource: str) -> Endpoint:
        """Where calls go: nowhere once the plugin is lost."""
        return self.endpoint if self.stopped_at is None else StoppedEndpoint(resource)


@dataclass(slots=True)
class DeviceState:
    """Everything that the device manager knows."""

    table: DeviceTable = field(default_factory=DeviceTable)
    holdings: Holdings = field(default_factory=Holdings)
    plugins: dict[str, Plugin] = field(default_factory=dict)
    in_use: dict[str, set[str]] = field(default_factory=dict)

    def rebuild_in_use(self) -> None:
        """Forgets every reservation that no container's holdings stand behind."""
        self.in_use = self.holdings.allocated()

    def reserve(self, resource: str, device: str) -> None:
        """Marks a device as taken."""
        self.in_use.setdefault(resource, set()).add(device)

    def free(self, resource: str) -> set[str]:
        """The healthy devices of a resource that nobody has."""
        return self.table.healthy.get(resource, set()) - self.in_use.get(resource, set())

    def knows(self, resource: str) -> bool:
        """Whether the resource is a device plugin's: registered, or held by somebody."""
        return resource in self.table.healthy or resource in self.in_use

    def plugin(self, resource: str) -> Plugin:
        """The plugin of a resource, lost or not; AllocationError if it was forgotten."""
        if resource not in self.plugins:
            raise AllocationError(f"endpoint not found in cache for a registered resource: {resource}")
        return self.plugins[resource]
