"""Which platform this machine is: the probes of NVIDIA's go-nvlib, in its order.

platform   where
wsl        Windows' GPU library, libdxcore.so, can be loaded
tegra      the files of a Tegra board are there and NVML's library is not, or NVML lists an integrated GPU
nvml       NVML's library can be loaded

Whoever names the strategy decides between tegra and the rest; under `nvml`, as there, WSL is still found.

Each probe says what it saw, so that where nothing is found the operator reads what was tried and why it failed, and not
(as in k8s-device-plugin#1469) that a strategy is invalid that is none of theirs.
"""

import ctypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpustow.hardware.node import Platform
from gpustow.hardware.nvml.library import LIBRARY, library_path
from gpustow.hardware.tegra import is_tegra
from gpustow.hardware.wsl import DXCORE

AUTO, NVML, TEGRA = "auto", "nvml", "tegra"
"""The strategies that an operator chooses from; `auto` is the default."""

_INTEGRATED = ("(nvgpu)", "NVIDIA Thor")


@dataclass(frozen=True, slots=True)
class Resolution:
    """The platform, None if there is none; and for each one that was looked for, why it is not that one."""

    platform: Platform | None
    tried: tuple[str, ...] = ()


def load_error(library: str) -> str:
    """Why a shared library cannot be loaded; empty if it can."""
    try:
        ctypes.CDLL(library)
    except OSError as error:
        return str(error)
    return ""


def resolve_platform(
    strategy: str,
    driver_root: str,
    roots: Sequence[Path],
    integrated: Callable[[], bool],
    load_error: Callable[[str], str] = load_error,
) -> Resolution:
    """The platform of this machine under a discovery strategy.

    `driver_root` is where the driver is mounted, `roots` are where the files of a Tegra board may be. `integrated` says
    whether NVML lists an integrated GPU; it is asked only where NVML's library can be loaded.
    """
    if strategy == TEGRA:
        return Resolution(Platform.TEGRA)
    if not (no_dxcore := load_error(DXCORE)):
        return Resolution(Platform.WSL)
    no_wsl = f"wsl: {no_dxcore}"
    no_nvml = load_error(library_path(driver_root))
    if strategy == NVML:
        return Resolution(None if no_nvml else Platform.NVML, (no_wsl, *([f"nvml: {no_nvml}"] if no_nvml else [])))
    if any(is_tegra(root) for root in roots) if no_nvml else integrated():
        return Resolution(Platform.TEGRA, (no_wsl,))
    if no_nvml:
        looked = " or ".join(str(root) for root in roots)
        return Resolution(None, (no_wsl, f"tegra: no files of a Tegra board below {looked}", f"nvml: {no_nvml}"))
    return Resolution(Platform.NVML, (no_wsl, "tegra: NVML lists no integrated GPU"))


def not_found(resolution: Resolution) -> str:
    """The sentence for an operator on whose machine no platform was found."""
    return (
        "there is no NVIDIA driver to read: NVML library not found, platform unknown "
        f"({LIBRARY} comes with the driver: is the runtimeClass nvidia, or the driver's root mounted and named?); "
        f"tried {'; '.join(resolution.tried)}"
    )


def is_integrated(models: Iterable[str]) -> bool:
    """Whether one of the GPUs with these model names is part of a processor."""
    return any(mark in model for model in models for mark in _INTEGRATED)
