"""Reads a simulated node: a node model instead of a machine.

A first-class reader, for everybody without a GPU: it gives the same values as the NVML reader would on that machine,
and the faults of the model at their time. Where time comes from is passed in: `elapsed` tells the seconds since the
schedule of faults began, `sleep` is how a slow NVML is acted out.
"""

import time
from collections.abc import Callable

from gpustow.hardware.faults import node_at, phase, reading_delay
from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import NodeModel


def _at_start() -> float:
    return 0.0


class SimulatedReader:
    """A NodeReader for a node model. Without `elapsed`, the node stays as it is at the start of the schedule."""

    def __init__(
        self,
        model: NodeModel,
        *,
        elapsed: Callable[[], float] = _at_start,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = model
        self.elapsed = elapsed
        self._sleep = sleep

    def read(self) -> Node:
        """The node as it is now, by the schedule of faults."""
        delay = reading_delay(self.model.faults, self.elapsed())
        if delay:
            self._sleep(delay)
        return node_at(self.model.node, self.model.faults, self.elapsed())

    def phase(self) -> frozenset[int]:
        """Which faults of the schedule there are in what can be read now, by number; a change is one of the node."""
        return phase(self.model.faults, self.elapsed())
