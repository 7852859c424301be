"""What kubelet asks: so many devices out of those offered, some of them already decided.

Only the form of a request is judged here. Whether the devices exist, and which are fit, is the inventory's knowledge.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpustow.errors import InfeasibleRequest


@dataclass(frozen=True, slots=True)
class Request:
    """One container's request, as kubelet's GetPreferredAllocation carries it.

    `available` are the ids offered, in whatever order; `must_include` are those that the answer has to hold (devices
    that the pod has already); `size` is how many devices the answer has, must-include counted.
    """

    available: Sequence[str]
    must_include: Sequence[str]
    size: int

    def check_form(self) -> None:
        """Refuse what no set of devices can satisfy; raises InfeasibleRequest."""
        if self.size < 0:
            raise InfeasibleRequest(f"{self.size} devices are asked for; the size cannot be negative")
        required = set(self.must_include)
        if len(required) > self.size:
            raise InfeasibleRequest(f"{len(required)} devices must be included in an answer of {self.size}")
        if required:
            missing = required.difference(self.available)
            if missing:
                raise InfeasibleRequest(f"must-include devices are not offered: {', '.join(sorted(missing))}")
