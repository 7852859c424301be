"""What is in use on the GPUs of the node, as far as somebody outside a request knows.

A request tells which devices of its own resource are offered. It does not tell what other resources of the same cards
hold (MIG profiles beside each other, GPUs under two names), nor whether a device that is not offered is in use or is
only withheld, for example for its NUMA node. Whoever knows says so here; what is not known here is inferred: other
resources hold nothing, and healthy devices that are not offered are in use.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Use beyond the request: `others` is the share of each GPU (by NVML index) that other resources hold.

    `in_use` are the ids of the request's own resource known to be in use; None where that is not known. An id that is
    offered is free even if it stands there: kubelet knows better than whoever looked earlier.
    """

    others: Mapping[int, Fraction] = field(default_factory=dict)
    in_use: AbstractSet[str] | None = None
