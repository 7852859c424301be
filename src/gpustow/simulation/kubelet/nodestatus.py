"""What the API server knows of the node's extended resources.

Kubelet writes it every 10 seconds, so the scheduler acts on numbers that are older than the device manager's. A
resource that kubelet has forgotten stays in it with 0; kubelet never takes one out. At a start without a checkpoint
kubelet takes the node for a new one and sets all extended resources to 0, also those that an administrator has set.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpustow.simulation.kubelet.devicemanager import Quantities

PERIOD = 10.0
"""Seconds between two writes."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """Capacity and allocatable of the node's extended resources."""

    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]


class NodeObject:
    """The node in the API server; it outlives kubelet. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float], initial: Mapping[str, int]) -> None:
        self._clock = clock
        self._capacity = dict(initial)
        self._allocatable = dict(initial)
        self._written: float | None = None

    def kubelet_started(self, *, new_node: bool) -> None:
        """Kubelet has started, and finds no checkpoint on a new node."""
        self._written = None
        if new_node:
            self._capacity = dict.fromkeys(self._capacity, 0)
            self._allocatable = dict.fromkeys(self._allocatable, 0)

    def status(self, quantities: Callable[[], Quantities]) -> NodeStatus:
        """The status, written anew first if its time has come."""
        now = self._clock()
        if self._written is None or now - self._written >= PERIOD:
            self._written = now
            self._write(quantities())
        return NodeStatus(dict(self._capacity), dict(self._allocatable))

    def _write(self, quantities: Quantities) -> None:
        self._capacity.update(quantities.capacity)
        self._capacity.update(dict.fromkeys(quantities.deleted, 0))
        self._allocatable = {**self._capacity, **quantities.allocatable}
