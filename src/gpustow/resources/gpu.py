"""The devices that whole GPUs are, by platform, as in v0.20.0.

On an ordinary machine a GPU is one device, called by its UUID and NVML index. Under WSL the container gets every GPU
through one device node, so that all of them together are the one device `all`; on Tegra the integrated GPU is `tegra`.
Neither of the two has MIG or NUMA nodes.
"""

from fractions import Fraction

from gpustow.hardware.node import Gpu, Platform
from gpustow.resources.device import Device

WSL_DEVICE = "all"
WSL_PATHS = ("/dev/dxg",)
TEGRA_DEVICE = "tegra"
TEGRA_INDEX = "0"


def gpu_device(gpu: Gpu) -> Device:
    """The device that is the whole of `gpu`."""
    return Device(
        id=gpu.uuid,
        uuid=gpu.uuid,
        gpu_index=gpu.index,
        index=str(gpu.index),
        share=Fraction(1),
        paths=gpu.device_paths,
        numa_node=gpu.numa_node,
    )


def joint_device(platform: Platform, gpu: Gpu) -> Device:
    """The one device of a node whose platform passes all GPUs on together; `gpu` is the first of them."""
    wsl = platform is Platform.WSL
    name = WSL_DEVICE if wsl else TEGRA_DEVICE
    return Device(
        id=name,
        uuid=name,
        gpu_index=gpu.index,
        index=WSL_DEVICE if wsl else TEGRA_INDEX,
        share=Fraction(1),
        paths=WSL_PATHS if wsl else (),
    )
