"""A plugin as the device manager sees it: three calls, and the errors they end in.

The manager knows no wire. Whoever can answer these calls is a plugin to it: the gRPC client of `pluginclient`, a fake
in a test, or `StoppedEndpoint` for one that is only remembered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpustow.errors import GpustowError
from gpustow.simulation.kubelet.answer import ContainerAnswer


class EndpointError(GpustowError):
    """A call to a plugin failed; the text is the one that kubelet sees."""


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """Which optional calls a plugin wants."""

    pre_start_required: bool = False
    get_preferred_allocation_available: bool = False


class Endpoint(Protocol):
    """The calls to a plugin; each raises EndpointError."""

    async def preferred(self, available: Sequence[str], must_include: Sequence[str], size: int, /) -> Sequence[str]:
        """The ids that the plugin would take; empty if it does not care."""
        ...

    async def allocate(self, device_ids: Sequence[str], /) -> ContainerAnswer | None:
        """What to put into a container that gets the devices; None if the answer has no container in it."""
        ...

    async def pre_start(self, device_ids: Sequence[str], /) -> None:
        """Readies the devices for a container that is about to start."""
        ...


@dataclass(frozen=True, slots=True)
class StoppedEndpoint:
    """A plugin that kubelet remembers and has no connection to: every call fails."""

    resource: str

    def refusal(self) -> EndpointError:
        """The error of every call."""
        return EndpointError(f"endpoint {self.resource} has been stopped")

    async def preferred(self, *_: object) -> Sequence[str]:
        """Fails."""
        raise self.refusal()

    async def allocate(self, *_: object) -> ContainerAnswer | None:
        """Fails."""
        raise self.refusal()

    async def pre_start(self, *_: object) -> None:
        """Fails."""
        raise self.refusal()
