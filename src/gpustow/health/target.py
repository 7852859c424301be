"""What can be unfit: a GPU with all that is on it, one MIG device, or the monitor itself, and with it every device."""

from dataclasses import dataclass, field
from enum import Enum

from gpustow.hardware.mig import MigDevice
from gpustow.hardware.node import Gpu


class Scope(Enum):
    """What a target is."""

    GPU = "GPU"
    MIG_DEVICE = "MIG device"
    MONITOR = "health monitor"


@dataclass(frozen=True, slots=True)
class Target:
    """What can be unfit, by its UUID and by that of the GPU that it is or is on; the monitor has neither.

    `index` is what people call it, `2` or `0:1`, as it was read last; empty where that is not known.
    """

    uuid: str
    gpu_uuid: str
    scope: Scope = Scope.GPU
    index: str = field(default="", compare=False)

    @classmethod
    def of_gpu(cls, gpu: Gpu) -> "Target":
        """The whole GPU."""
        return cls(gpu.uuid, gpu.uuid, index=str(gpu.index))

    @classmethod
    def of_mig_device(cls, gpu: Gpu, device: MigDevice) -> "Target":
        """One MIG device of a GPU."""
        return cls(device.uuid, gpu.uuid, Scope.MIG_DEVICE, f"{gpu.index}:{device.index}")

    def __str__(self) -> str:
        if not self.uuid:
            return f"the {self.scope.value}"
        return f"{self.scope.value} {self.index} ({self.uuid})" if self.index else self.uuid


MONITOR = Target("", "", Scope.MONITOR)
