"""The node as a reader found it: frozen values, compared by content, free of any driver handle.

A reader (NVML, simulated, Tegra, WSL) returns a whole `Node` or raises `HardwareError`. What could not be read of one
GPU is None there and told in `Node.notes`; it never costs the node.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from gpustow.hardware.links import Links
from gpustow.hardware.mig import MigDevice, MigProfile


class Platform(Enum):
    """What kind of machine the node is; it decides what a device is and how it is passed to a container."""

    NVML = "nvml"
    TEGRA = "tegra"
    WSL = "wsl"


@dataclass(frozen=True, slots=True)
class FabricIdentity:
    """The NVLink fabric that a GPU is part of: the cluster's UUID and the clique in it."""

    cluster_uuid: str
    clique: int


@dataclass(frozen=True, slots=True)
class Gpu:
    """One physical card.

    `index` is NVML's, and the key that everything below groups by; skipped display adapters leave gaps.
    `pci_bus_id` is written as NVML writes it, with eight digits of domain: `00000000:07:00.0`.
    `memory_slices` is what the card has for MIG to divide (8 on A100 and newer, 4 on A30, 12 on RTX PRO 6000).
    `mig_profiles` are the profiles that the card could be cut into, whatever its MIG mode.
    """

    index: int
    uuid: str
    pci_bus_id: str
    minor: int
    model: str
    memory_bytes: int | None
    compute_capability: tuple[int, int] | None
    numa_node: int | None
    device_paths: tuple[str, ...]
    memory_slices: int = 8
    mig_capable: bool = False
    mig_enabled: bool = False
    mig_profiles: tuple[MigProfile, ...] = ()
    mig_devices: tuple[MigDevice, ...] = ()
    fabric: FabricIdentity | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One machine. `notes` are the readings that failed, one sentence each, for the log and for `inspect`.

    `unreadable` are the GPUs, by NVML index, that the driver lists and that are left out of `gpus`: they are lost, or
    cannot be read well enough to be served.
    """

    name: str
    platform: Platform
    gpus: tuple[Gpu, ...]
    links: Links = field(default_factory=Links)
    driver_version: str = ""
    cuda_version: str = ""
    notes: tuple[str, ...] = ()
    unreadable: tuple[int, ...] = ()


class NodeReader(Protocol):
    """Reads the node. `read` may block and may be called from any thread; it raises HardwareError."""

    def read(self) -> Node:
        """The node as it is now."""
        ...
