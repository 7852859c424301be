"""What is in use on the GPUs of the node, as far as somebody outside a request knows.

A request tells which devices of its own resource are offered. It does not tell what other resources of the same cards
hold (MIG profiles beside each other, GPUs under two names), nor whether a device that is not offered is in use or is
only withheld, for example for its NUMA node. Whoever knows says so here; what is not known here is inferred: other
resources hold nothing, and healthy devices that are not offered are in use.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

from gpustow.resources.device import Resource


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Use beyond the request: `others` is the share of each GPU (by NVML index) that other resources hold.

    `in_use` are the ids of the request's own resource known to be in use; None where that is not known. An id that is
    offered is free even if it stands there: kubelet knows better than whoever looked earlier.
    """

    others: Mapping[int, Fraction] = field(default_factory=dict)
    in_use: AbstractSet[str] | None = None

    @classmethod
    def seen(cls, resource: Resource, resources: Iterable[Resource], held: Mapping[str, AbstractSet[str]]) -> Self:
        """For `resource`, when all ids in use are known: `held` has them by the name of their resource.

        Ids that a resource does not have are passed over; sick devices hold nothing.
        """
        others: dict[int, Fraction] = {}
        for other in resources:
            if other.name == resource.name:
                continue
            for id_ in held.get(other.name, ()):
                device = other.by_id.get(id_)
                if device is not None and device.healthy:
                    others[device.gpu_index] = others.get(device.gpu_index, Fraction(0)) + device.share
        return cls(others, held.get(resource.name, frozenset()))
