"""The token bucket in front of PodResources: 100 requests a second, 10 at once."""

from collections.abc import Callable

RATE = 100.0
"""Requests a second."""

BURST = 10
"""Requests at once."""


class TokenBucket:
    """Says of each request whether it may pass; full at first. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float], rate: float = RATE, burst: int = BURST) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled = clock()

    def take(self) -> bool:
        """Takes a token; False if there is none."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
