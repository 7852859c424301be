"""The GPU models that a node model may name: memory, compute capability, PCI id, and how MIG can cut them.

Sizes are what nvidia-smi prints in MiB and NVML reports; total and profile sizes of one board belong together, because
the numbers in profile names follow from both (see `mig.profile_memory_gb`). Ways to cut: boards with seven compute
slices have eight memory slices, of which the last is only reached by the bigger profiles; A30 has four of each; RTX PRO
6000 has four compute and twelve memory slices.

Sources: supported-GPU table of NVIDIA/open-gpu-kernel-modules 595.45.04 (names, PCI ids), captures of nvidia-smi in
NVIDIA/k8s-test-infra and in public listings (totals, profile sizes), NVIDIA's MIG user guide (profiles, counts).
Limits: the profile sizes of H200's 3g and 4g, B200, GB200, B300, GB300 and the 144 GB GH200 are assumed, just under the
limit at which the profile's documented name would change; so are their multiprocessor counts above 1g.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from gpustow.hardware.mig import MigProfile, profile_memory_gb

PCI_VENDOR_NVIDIA = 0x10DE

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A GPU model by the name that NVML gives it. `memory_mib` is None where NVML does not tell (Tegra).

    `mig_profiles` are in the order of NVML's enumeration.
    """

    name: str
    memory_mib: int | None
    compute_capability: tuple[int, int]
    pci_device: int | None
    mig_profiles: tuple[MigProfile, ...] = ()

    @property
    def memory_slices(self) -> int:
        """How many memory slices MIG divides the card into; 8 for cards without MIG, where it has no meaning."""
        return max((profile.memory_slices or 0 for profile in self.mig_profiles), default=8)


@dataclass(frozen=True, slots=True)
class _Shape:
    """One way to cut a card: what is alike on every board of a family."""

    profile_id: int
    nvml_profile: int
    gpu_slices: int
    memory_slices: int
    max_count: int
    placements: tuple[int, ...]
    attribute: str = ""


_SEVEN = (
    _Shape(19, 0, 1, 1, 7, (0, 1, 2, 3, 4, 5, 6)),
    _Shape(20, 7, 1, 1, 1, (0, 1, 2, 3, 4, 5, 6), "+me"),
    _Shape(15, 9, 1, 2, 4, (0, 2, 4, 6)),
    _Shape(14, 1, 2, 2, 3, (0, 2, 4)),
    _Shape(9, 2, 3, 4, 2, (0, 4)),
    _Shape(5, 3, 4, 4, 1, (0,)),
    _Shape(0, 4, 7, 8, 1, (0,)),
)

_A30 = (
    _Shape(14, 0, 1, 1, 4, (0, 1, 2, 3)),
    _Shape(21, 7, 1, 1, 1, (0, 1, 2, 3), "+me"),
    _Shape(5, 1, 2, 2, 2, (0, 2)),
    _Shape(6, 8, 2, 2, 1, (0, 2), "+me"),
    _Shape(0, 3, 4, 4, 1, (0,)),
)

_RTX_PRO_6000 = (
    _Shape(14, 0, 1, 3, 4, (0, 3, 6, 9)),
    _Shape(21, 7, 1, 3, 1, (0, 3, 6, 9), "+me"),
    _Shape(47, 10, 1, 3, 4, (0, 3, 6, 9), "+gfx"),
    _Shape(65, 15, 1, 3, 1, (0, 3, 6, 9), "+me.all"),
    _Shape(67, 13, 1, 3, 4, (0, 3, 6, 9), "-me"),
    _Shape(5, 1, 2, 6, 2, (0, 6)),
    _Shape(35, 11, 2, 6, 2, (0, 6), "+gfx"),
    _Shape(64, 16, 2, 6, 1, (0, 6), "+me.all"),
    _Shape(66, 14, 2, 6, 2, (0, 6), "-me"),
    _Shape(0, 3, 4, 12, 1, (0,)),
    _Shape(32, 12, 4, 12, 1, (0,), "+gfx"),
)

_AMPERE_SM = (14, 14, 14, 28, 42, 56, 98)
_HOPPER_SM = (16, 16, 26, 32, 60, 64, 132)
_HOPPER_PCIE_SM = (16, 16, 26, 32, 60, 64, 114)
_BLACKWELL_SM = (18, 18, 18, 36, 54, 72, 126)


def _profiles(
    shapes: Sequence[_Shape], total_mib: int, sizes: Sequence[int], multiprocessors: Sequence[int]
) -> tuple[MigProfile, ...]:
    profiles = (
        MigProfile(
            gpu_slices=shape.gpu_slices,
            compute_slices=shape.gpu_slices,
            memory_gb=profile_memory_gb(size, total_mib * _MIB),
            memory_mib=size,
            attribute=shape.attribute,
            memory_slices=shape.memory_slices,
            multiprocessors=sm,
            nvml_profile=shape.nvml_profile,
            placements=shape.placements,
            profile_id=shape.profile_id,
            max_count=shape.max_count,
        )
        for shape, size, sm in zip(shapes, sizes, multiprocessors, strict=True)
    )
    return tuple(sorted(profiles, key=lambda profile: profile.nvml_profile or 0))


def _seven(total: int, sizes: tuple[int, int, int, int], multiprocessors: Sequence[int]) -> tuple[MigProfile, ...]:
    """Profiles of a board with seven compute slices, by the MiB of one, two, four and all memory slices."""
    one, two, four, full = sizes
    return _profiles(_SEVEN, total, (one, one, two, two, four, four, full), multiprocessors)


_MODELS = (
    GpuModel("Tesla V100-SXM2-16GB", 16384, (7, 0), 0x1DB1),
    GpuModel("Tesla V100-SXM2-32GB", 32768, (7, 0), 0x1DB5),
    GpuModel("Tesla V100-SXM3-32GB", 32768, (7, 0), 0x1DB8),
    GpuModel("Tesla T4", 15360, (7, 5), 0x1EB8),
    GpuModel("NVIDIA A10", 23028, (8, 6), 0x2236),
    GpuModel("NVIDIA A10G", 23028, (8, 6), 0x2237),
    GpuModel(
        "NVIDIA A30",
        24576,
        (8, 0),
        0x20B7,
        _profiles(_A30, 24576, (5952, 5952, 11968, 11968, 24000), (14, 14, 28, 28, 56)),
    ),
    GpuModel("NVIDIA A40", 46068, (8, 6), 0x2235),
    GpuModel("NVIDIA A100-SXM4-40GB", 40960, (8, 0), 0x20B0, _seven(40960, (4864, 9856, 19968, 40192), _AMPERE_SM)),
    GpuModel("NVIDIA A100-SXM4-80GB", 81920, (8, 0), 0x20B2, _seven(81920, (9728, 19968, 40192, 80896), _AMPERE_SM)),
    GpuModel("NVIDIA A100-PCIE-40GB", 40960, (8, 0), 0x20F1, _seven(40960, (4864, 9856, 19968, 40192), _AMPERE_SM)),
    GpuModel("NVIDIA A100 80GB PCIe", 81920, (8, 0), 0x20B5, _seven(81920, (9728, 19968, 40192, 80896), _AMPERE_SM)),
    GpuModel("NVIDIA L4", 23034, (8, 9), 0x27B8),
    GpuModel("NVIDIA L40S", 46068, (8, 9), 0x26B9),
    GpuModel("NVIDIA RTX A6000", 49140, (8, 6), 0x2230),
    GpuModel("NVIDIA GeForce RTX 4090", 24564, (8, 9), 0x2684),
    GpuModel("NVIDIA H100 80GB HBM3", 81559, (9, 0), 0x2330, _seven(81559, (9984, 20096, 40448, 81152), _HOPPER_SM)),
    GpuModel("NVIDIA H100 PCIe", 81559, (9, 0), 0x2331, _seven(81559, (9984, 20096, 40448, 81152), _HOPPER_PCIE_SM)),
    GpuModel("NVIDIA H100 NVL", 95830, (9, 0), 0x2321, _seven(95830, (11008, 22144, 47488, 95360), _HOPPER_SM)),
    GpuModel("NVIDIA H200", 143771, (9, 0), 0x2335, _seven(143771, (16384, 33280, 71424, 143360), _HOPPER_SM)),
    GpuModel("NVIDIA H200 NVL", 143771, (9, 0), 0x233B, _seven(143771, (16384, 33280, 71424, 143360), _HOPPER_SM)),
    GpuModel("NVIDIA GH200 480GB", 97871, (9, 0), 0x2342, _seven(97871, (11264, 23552, 47616, 95232), _HOPPER_SM)),
    GpuModel(
        "NVIDIA GH200 144G HBM3e", 146831, (9, 0), 0x2348, _seven(146831, (17920, 36224, 72832, 145920), _HOPPER_SM)
    ),
    GpuModel("NVIDIA B200", 183359, (10, 0), 0x2901, _seven(183359, (22528, 45312, 90880, 182528), _BLACKWELL_SM)),
    GpuModel("NVIDIA GB200", 189471, (10, 0), 0x2941, _seven(189471, (23296, 46848, 93952, 188672), _BLACKWELL_SM)),
    GpuModel(
        "NVIDIA B300 SXM6 AC", 275040, (10, 3), 0x3182, _seven(275040, (33792, 67840, 136192, 274176), _BLACKWELL_SM)
    ),
    GpuModel("NVIDIA GB300", 284208, (10, 3), 0x31C2, _seven(284208, (34816, 70144, 140800, 283136), _BLACKWELL_SM)),
    GpuModel(
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        97887,
        (12, 0),
        0x2BB5,
        _profiles(
            _RTX_PRO_6000,
            97887,
            (24192,) * 5 + (48512,) * 4 + (97408,) * 2,
            (46,) * 5 + (94,) * 4 + (188,) * 2,
        ),
    ),
    GpuModel("Orin (nvgpu)", None, (8, 7), None),
)

GPU_MODELS: Mapping[str, GpuModel] = MappingProxyType({model.name: model for model in _MODELS})
"""Every known model by NVML's name for it."""
