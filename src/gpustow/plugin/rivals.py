"""Other instances that serve the same resource to the same kubelet, as during an update or by mistake.

Kubelet takes the instance that registers last. When that one ends, kubelet 1.36 and older drop the resource, and do not
tell those that registered before: their streams go on, and nobody asks them. So who has had a rival and has been alone
again for a while registers anew. A rival that only changes its socket comes back sooner than that, which keeps two that
live on from answering each other for ever.

One that was there long before us does not count: when it ends, kubelet 1.37 leaves us alone, and older ones end our
stream, which is noticed anyway.
"""

from collections.abc import Callable
from pathlib import Path

from gpustow.kubelet.socketfile import SocketFacts, is_served, sockets_of

_LONG_BEFORE_NS = 60 * 10**9


class Rivals:
    """Those of us, who serve `resource` on the socket `own`. `clock` gives seconds that only go up."""

    def __init__(self, own: Path, resource: str, clock: Callable[[], float]) -> None:
        self._own = own
        self._resource = resource
        self._clock = clock
        facts = SocketFacts.of(own)
        self._since_ns = 0 if facts is None else facts.changed_ns - _LONG_BEFORE_NS
        self._seen = False
        self._alone_since: float | None = None

    def alone_for(self) -> float | None:
        """For how many seconds there has been no rival any more; None if there is one, or never was. To be polled."""
        if any(self._counts(path) for path in sockets_of(self._own.parent, self._resource)):
            self._seen, self._alone_since = True, None
        elif self._seen and self._alone_since is None:
            self._alone_since = self._clock()
        return None if self._alone_since is None else self._clock() - self._alone_since

    def _counts(self, path: Path) -> bool:
        if path == self._own:
            return False
        facts = SocketFacts.of(path)
        return facts is not None and facts.changed_ns >= self._since_ns and is_served(path)
