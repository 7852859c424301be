"""The words that an operator chooses between; the values are those of v0.20.0 and are case-sensitive as there."""

from enum import Enum


class MigStrategy(Enum):
    """What becomes of GPUs in MIG mode: the whole GPU, `nvidia.com/gpu` for each instance, or a resource a profile."""

    NONE = "none"
    SINGLE = "single"
    MIXED = "mixed"


class DeviceListStrategy(Enum):
    """How a container's devices are told to the container runtime."""

    ENVVAR = "envvar"
    VOLUME_MOUNTS = "volume-mounts"
    CDI_ANNOTATIONS = "cdi-annotations"
    CDI_CRI = "cdi-cri"


CDI_STRATEGIES = (DeviceListStrategy.CDI_ANNOTATIONS, DeviceListStrategy.CDI_CRI)
"""Those that name CDI devices, and leave the rest to the specifications of these."""


class DeviceIdStrategy(Enum):
    """By what a device is named to the container runtime."""

    UUID = "uuid"
    INDEX = "index"


class DeviceDiscoveryStrategy(Enum):
    """How the hardware is found: what fits the machine, or one way for certain."""

    AUTO = "auto"
    NVML = "nvml"
    TEGRA = "tegra"


SHARED_POLICIES = ("distributed", "packed", "spread", "packed-aligned")
"""What an operator can choose for shared and MIG devices; v0.20.0 knows the first two, and the first is the default."""
