"""What the daemon tells about itself while it works, for metrics and status pages. It never waits for an answer.

Telling must not cost a pod or a socket, so the daemon puts whatever observer it is given behind a `GuardedObserver`.
"""

import logging
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

from gpustow.placement import Placement
from gpustow.placement.explain import Explanation

log = logging.getLogger(__name__)


class PluginState(StrEnum):
    """Where the plugin of a resource is on its way to kubelet."""

    INIT = "init"
    """Waits for kubelet's socket."""
    BOUND = "bound"
    """Serves its own socket and has dialled itself."""
    REGISTERED = "registered"
    """Kubelet took the registration."""
    STREAMING = "streaming"
    """Kubelet has the list of devices and is told of changes: the resource is in use."""
    DRAINING = "draining"
    """Ends its streams and its server."""
    REFUSED = "refused"
    """Kubelet will never take this resource; the end."""
    FAILED = "failed"
    """It has crashed too often; the end."""

    @property
    def words(self) -> str:
        """What it means for the resource, for people."""
        return _WORDS[self]


_WORDS = {
    PluginState.INIT: "not in use",
    PluginState.BOUND: "started",
    PluginState.REGISTERED: "registered",
    PluginState.STREAMING: "in use",
    PluginState.DRAINING: "ending",
    PluginState.REFUSED: "refused",
    PluginState.FAILED: "given up",
}


class PluginObserver(Protocol):
    """Is told what the daemon and its plugins do; `resource` is the full name of the resource that it is about.

    `explains` is whether it wants the reasons of decisions, which have to be worked out for it.
    """

    @property
    def explains(self) -> bool:
        """See above."""
        ...

    def moved(self, resource: str, state: PluginState, reason: str) -> None:
        """The plugin is in another state now."""
        ...

    def list_sent(self, resource: str, size: int) -> None:
        """Kubelet was sent the list of devices, of so many bytes."""
        ...

    def preferred(self, resource: str, placement: Placement, seconds: float) -> None:
        """A GetPreferredAllocation was answered with devices, in so many seconds."""
        ...

    def explained(self, resource: str, placement: Placement, explanation: Explanation, seconds: float) -> None:
        """The reasons of a preference, soon after it was told; only if somebody `explains` or logs them."""
        ...

    def preference_failed(self, resource: str, error: Exception) -> None:
        """A GetPreferredAllocation was answered with nothing: InfeasibleRequest, or a fault of ours."""
        ...

    def allocated(self, resource: str, ids: Sequence[str]) -> None:
        """An Allocate was granted to one container."""
        ...

    def allocation_failed(self, resource: str, error: Exception) -> None:
        """An Allocate failed, and with it the pod: AllocationRefused, or a fault of ours."""
        ...

    def reloaded(self, refusal: str | None) -> None:
        """A new configuration is in force; or it is not, for this reason, and the old one goes on."""
        ...

    def surveyed(self, trouble: str | None) -> None:
        """The node was read, and what it has is served; or not, for this reason."""
        ...


class SilentObserver:
    """A PluginObserver that does nothing with what it is told."""

    explains = False

    def moved(self, resource: str, state: PluginState, reason: str) -> None:
        """See PluginObserver."""

    def list_sent(self, resource: str, size: int) -> None:
        """See PluginObserver."""

    def preferred(self, resource: str, placement: Placement, seconds: float) -> None:
        """See PluginObserver."""

    def explained(self, resource: str, placement: Placement, explanation: Explanation, seconds: float) -> None:
        """See PluginObserver."""

    def preference_failed(self, resource: str, error: Exception) -> None:
        """See PluginObserver."""

    def allocated(self, resource: str, ids: Sequence[str]) -> None:
        """See PluginObserver."""

    def allocation_failed(self, resource: str, error: Exception) -> None:
        """See PluginObserver."""

    def reloaded(self, refusal: str | None) -> None:
        """See PluginObserver."""

    def surveyed(self, trouble: str | None) -> None:
        """See PluginObserver."""


class GuardedObserver:
    """A PluginObserver that tells others, and logs instead of raising what they raise."""

    def __init__(self, *observers: PluginObserver) -> None:
        self._observers = list(observers)

    def add(self, observer: PluginObserver) -> None:
        """Tells this one, too, from now on."""
        self._observers.append(observer)

    @property
    def explains(self) -> bool:
        """Whether one of them wants the reasons of decisions."""
        return any(observer.explains for observer in self._observers)

    def moved(self, resource: str, state: PluginState, reason: str) -> None:
        """See PluginObserver."""
        self._tell(lambda observer: observer.moved(resource, state, reason))

    def list_sent(self, resource: str, size: int) -> None:
        """See PluginObserver."""
        self._tell(lambda observer: observer.list_sent(resource, size))

    def preferred(self, resource: str, placement: Placement, seconds: float) -> None:
        """See PluginObserver."""
        self._tell(lambda observer: observer.preferred(resource, placement, seconds))

    def explained(self, resource: str, placement: Placement, explanation: Explanation, seconds: float) -> None:
        """See PluginObserver."""
        self._tell(lambda observer: observer.explained(resource, placement, explanation, seconds))

    def preference_failed(self, resource: str, error: Exception) -> None:
        """See PluginObserver."""
        self._tell(lambda observer: observer.preference_failed(resource, error))

    def allocated(self, resource: str, ids: Sequence[str]) -> None:
        """See PluginObserver."""
        self._tell(lambda observer: observer.allocated(resource, ids))

    def allocation_failed(self, resource: str, error: Exception) -> None:
        """See PluginObserver."""
        self._tell(lambda observer: observer.allocation_failed(resource, error))

    def reloaded(self, refusal: str | None) -> None:
        """See PluginObserver."""
        self._tell(lambda observer: observer.reloaded(refusal))

    def surveyed(self, trouble: str | None) -> None:
        """See PluginObserver."""
        self._tell(lambda observer: observer.surveyed(trouble))

    def _tell(self, tell: Callable[[PluginObserver], None]) -> None:
        for observer in self._observers:
            try:
                tell(observer)
            except Exception:  # whoever watches the daemon must not stop it
                log.exception("an observer failed, and the daemon goes on")
