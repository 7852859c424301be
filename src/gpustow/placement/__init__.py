"""Which devices a request gets: pure functions over the value types of `resources` and `hardware`, without any I/O.

`place` is the whole of it. An `Inventory` holds what depends on the devices and links alone, a `Request` is what
kubelet asks, an `Occupancy` what else is known to be in use, a `Policy` how to choose, and a `Placement` the answer.
"""

from gpustow.placement.engine import Placement, place
from gpustow.placement.inventory import Inventory
from gpustow.placement.occupancy import Occupancy
from gpustow.placement.policy import Policy
from gpustow.placement.request import Request

__all__ = ["Inventory", "Occupancy", "Placement", "Policy", "Request", "place"]
