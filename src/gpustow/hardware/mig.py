"""MIG profiles and devices: the parts that a GPU can be cut into, and those that it is cut into.

A profile's name follows NVIDIA's rule: `<G>g.<M>gb` where the compute instance fills the GPU instance, otherwise
`<C>c.<G>g.<M>gb`; M comes from the instance's memory rounded up to eighths of the card, halves rounded away from zero.
"""

from dataclasses import dataclass
from math import ceil, floor

_MIB = 1 << 20
_GIB = 1 << 30


def profile_memory_gb(instance_mib: int, card_bytes: int) -> int:
    """The memory number in a profile's name, for an instance of `instance_mib` MiB on a card of `card_bytes`."""
    eighths = -(-8 * instance_mib * _MIB // card_bytes)
    return floor(eighths / 8 * ceil(card_bytes / _GIB) + 0.5)


@dataclass(frozen=True, slots=True)
class MigProfile:
    """What a MIG device is: its slices, its memory and its attributes.

    `attribute` is the suffix of the name with its sign (`+me`, `+gfx`, `-me`), or empty. `memory_slices` is what the
    GPU instance takes of the card's slices (None where NVML does not tell). `nvml_profile` is the profile's number in
    NVML's enumeration, `profile_id` the one that instances report and nvidia-smi prints, `max_count` how many of it
    an empty card can hold, and `placements` the memory slices at which one may start.
    """

    gpu_slices: int
    compute_slices: int
    memory_gb: int
    memory_mib: int
    attribute: str = ""
    memory_slices: int | None = None
    multiprocessors: int | None = None
    nvml_profile: int | None = None
    placements: tuple[int, ...] = ()
    profile_id: int | None = None
    max_count: int | None = None

    @property
    def name(self) -> str:
        """The profile's name as nvidia-smi and the resource name have it, such as `1g.10gb` or `1c.2g.10gb`."""
        compute = "" if self.compute_slices == self.gpu_slices else f"{self.compute_slices}c."
        return compute + self.instance_name

    @property
    def instance_name(self) -> str:
        """The name of the GPU instance, whatever part of it the device has: `2g.10gb` of a `1c.2g.10gb`."""
        return f"{self.gpu_slices}g.{self.memory_gb}gb{self.attribute}"

    @property
    def resource_suffix(self) -> str:
        """The name as part of a resource name, where `+` is not allowed."""
        return self.name.replace("+", ".")


@dataclass(frozen=True, slots=True)
class MigEngines:
    """How many engines beside multiprocessors the GPU instance of a MIG device has; its compute instances share them.

    `ofa` are optical flow accelerators.
    """

    copy: int = 0
    decoder: int = 0
    encoder: int = 0
    jpeg: int = 0
    ofa: int = 0


@dataclass(frozen=True, slots=True)
class MigDevice:
    """One MIG device of a GPU. `index` counts within its parent; `start` is its first memory slice, where known.

    `engines` is None where neither NVML nor a table tells.
    """

    index: int
    uuid: str
    profile: MigProfile
    gpu_instance: int
    compute_instance: int
    memory_bytes: int
    device_paths: tuple[str, ...]
    start: int | None = None
    engines: MigEngines | None = None
