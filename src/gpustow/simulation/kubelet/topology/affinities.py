"""The hints that the Topology Manager has stored for containers, for the device manager to look up.

A container without an entry has the empty hint: no mask, not preferred.
"""

from gpustow.simulation.kubelet.topology.hints import Hint


class Affinities:
    """The stored hints by pod uid and container name."""

    def __init__(self) -> None:
        self._hints: dict[str, dict[str, Hint]] = {}

    def store(self, pod_uid: str, container: str, hint: Hint) -> None:
        """Keeps the hint of a container; it replaces the one before."""
        self._hints.setdefault(pod_uid, {})[container] = hint

    def of(self, pod_uid: str, container: str) -> Hint:
        """The hint of a container."""
        return self._hints.get(pod_uid, {}).get(container, Hint())

    def forget(self, pod_uid: str) -> None:
        """The pod is gone."""
        self._hints.pop(pod_uid, None)
