"""Reads the machine that we run on, whatever its platform.

The platform is resolved anew for each reading, because a driver may come later than we do. The readers stay the same,
since a reader knows what it has read before.

Limits: on a machine with an integrated GPU beside others that NVML can serve, the integrated one decides, as in
k8s-device-plugin v0.20.0. It is looked for among the GPUs that were read, and by name alone where none could be.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import assert_never

from gpustow.errors import HardwareError
from gpustow.hardware.node import Node, Platform
from gpustow.hardware.nvml import DEADLINE, NvmlReader, Places
from gpustow.hardware.nvml.deadline import DeadlineCaller
from gpustow.hardware.nvml.library import Nvml, NvmlFailure
from gpustow.hardware.nvml.observer import CallObserver
from gpustow.hardware.platform import AUTO, is_integrated, load_error, not_found, resolve_platform
from gpustow.hardware.tegra import TegraReader, is_tegra
from gpustow.hardware.wsl import WslReader


class MachineReader:
    """A NodeReader for the machine that we run on.

    `strategy` is `auto`, `nvml` or `tegra`; `places` are where the driver and the host's files are; `deadline` is for
    each call of the driver, in seconds; `load_error` says why a shared library cannot be loaded;
    `calls` is told of each call.
    """

    def __init__(
        self,
        name: str,
        strategy: str = AUTO,
        places: Places | None = None,
        *,
        deadline: float = DEADLINE,
        load_error: Callable[[str], str] = load_error,
        calls: CallObserver | None = None,
    ) -> None:
        places = places or Places()
        self._strategy = strategy
        self._driver_root = places.driver_root
        self._roots = tuple(dict.fromkeys((Path(places.driver_root or "/"), places.system_root)))
        self._nvml = NvmlReader(name, places, deadline=deadline, calls=calls)
        self._wsl = WslReader(name, places.driver_root, deadline=deadline, calls=calls)
        self._tegra = TegraReader(name, next((root for root in self._roots if is_tegra(root)), places.system_root))
        self._caller = DeadlineCaller(deadline, calls)
        self._load_error = load_error

    def read(self) -> Node:
        """The node as it is now.

        Raises:
            HardwareError: no platform is found, which tells what was tried; or its driver cannot be read.
        """
        seen: list[Node] = []

        def integrated() -> bool:
            seen.append(self._nvml.read())
            models = [gpu.model for gpu in seen[0].gpus]
            return is_integrated(models or self._names())

        resolution = resolve_platform(self._strategy, self._driver_root, self._roots, integrated, self._load_error)
        match resolution.platform:
            case Platform.NVML:
                return seen[0] if seen else self._nvml.read()
            case Platform.WSL:
                return self._wsl.read()
            case Platform.TEGRA:
                return self._tegra.read()
            case None:
                raise HardwareError(not_found(resolution))
            case _:
                assert_never(resolution.platform)

    def _names(self) -> list[str]:
        """The models of all GPUs that NVML lists, also of those that cannot be served."""
        names = []
        with closing(self._caller), closing(Nvml(self._driver_root, self._caller)) as nvml:
            for index in range(nvml.need("nvmlDeviceGetCount")):
                about = f"GPU {index}"
                with suppress(NvmlFailure):
                    handle = nvml.call("nvmlDeviceGetHandleByIndex", index, about=about)
                    names.append(str(nvml.call("nvmlDeviceGetName", handle, about=about)))
        return names
