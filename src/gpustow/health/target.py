"""What can be unfit: a GPU with all that is on it, one MIG device, or the monitor itself, and with it every device."""

from dataclasses import dataclass
from enum import Enum


class Scope(Enum):
    """What a target is."""

    GPU = "GPU"
    MIG_DEVICE = "MIG device"
    MONITOR = "health monitor"


@dataclass(frozen=True, slots=True)
class Target:
    """What can be unfit, by its UUID and by that of the GPU that it is or is on; the monitor has neither."""

    uuid: str
    gpu_uuid: str
    scope: Scope = Scope.GPU

    def __str__(self) -> str:
        return f"{self.scope.value} {self.uuid}" if self.uuid else f"the {self.scope.value}"


MONITOR = Target("", "", Scope.MONITOR)
