"""What watching health tells about itself, for metrics and events. It never waits for an answer."""

import logging
from collections.abc import Callable
from typing import Protocol

from gpustow.health.condition import Transition
from gpustow.health.nodehealth import Taken

log = logging.getLogger(__name__)


class HealthObserver(Protocol):
    """Is told what happens to devices and to the monitor."""

    def event(self, taken: Taken) -> None:
        """An event has come, ignored or not; `taken.again` if it is a state that was told before."""
        ...

    def transition(self, transition: Transition) -> None:
        """A GPU, a MIG device or the monitor is healthy, unhealthy or recovering now."""
        ...

    def source_failed(self, reason: str) -> None:
        """The source does not work. It is tried again, and the monitor is unhealthy only if that fails, too."""
        ...

    def waited(self) -> None:
        """The source has waited for events and works."""
        ...


class SilentHealthObserver:
    """A HealthObserver that does nothing with what it is told."""

    def event(self, taken: Taken) -> None:
        """See HealthObserver."""

    def transition(self, transition: Transition) -> None:
        """See HealthObserver."""

    def source_failed(self, reason: str) -> None:
        """See HealthObserver."""

    def waited(self) -> None:
        """See HealthObserver."""


class GuardedHealthObserver:
    """A HealthObserver that tells others, and logs instead of raising what they raise."""

    def __init__(self, *observers: HealthObserver) -> None:
        self._observers = list(observers)

    def add(self, observer: HealthObserver) -> None:
        """Tells this one, too, from now on."""
        self._observers.append(observer)

    def event(self, taken: Taken) -> None:
        """See HealthObserver."""
        self._tell(lambda observer: observer.event(taken))

    def transition(self, transition: Transition) -> None:
        """See HealthObserver."""
        self._tell(lambda observer: observer.transition(transition))

    def source_failed(self, reason: str) -> None:
        """See HealthObserver."""
        self._tell(lambda observer: observer.source_failed(reason))

    def waited(self) -> None:
        """See HealthObserver."""
        self._tell(lambda observer: observer.waited())

    def _tell(self, tell: Callable[[HealthObserver], None]) -> None:
        for observer in self._observers:
            try:
                tell(observer)
            except Exception:  # whoever watches must not stop the monitor
                log.exception("an observer of health failed, and the monitor goes on")
