"""WSL: Linux under Windows, which owns the GPUs and lets them be used together through one device node, `/dev/dxg`.

NVML is there and answers less: a GPU has no minor number (k8s-device-plugin#332), no MIG and no entry in sysfs, and
its links are unknown. So nothing is needed of a GPU but that NVML lists it.
"""

import threading
from collections.abc import Collection
from contextlib import closing

from gpustow.hardware.node import Gpu, Node, Platform
from gpustow.hardware.nvml.asking import GpuQuestions, LeftOut
from gpustow.hardware.nvml.deadline import DeadlineCaller
from gpustow.hardware.nvml.findings import Findings
from gpustow.hardware.nvml.library import NOT_FOUND, NOT_SUPPORTED, Nvml
from gpustow.hardware.nvml.observer import CallObserver
from gpustow.hardware.nvml.reader import DEADLINE
from gpustow.hardware.nvml.versions import cuda_version, driver_version

DXCORE = "libdxcore.so"
"""Windows' library for GPUs under WSL; where it can be loaded, the machine is WSL."""

DEVICE_PATH = "/dev/dxg"

_QUIET: Collection[int] = frozenset({NOT_SUPPORTED, NOT_FOUND})


class WslReader:
    """A NodeReader for WSL. `name` is the node's, `driver_root` where the driver is mounted; `deadline` in seconds.

    `calls` is told of each call.
    """

    def __init__(
        self, name: str, driver_root: str = "", *, deadline: float = DEADLINE, calls: CallObserver | None = None
    ) -> None:
        self._name = name
        self._driver_root = driver_root
        self._caller = DeadlineCaller(deadline, calls)
        self._lock = threading.Lock()

    def read(self) -> Node:
        """The node as it is now.

        Raises:
            HardwareError: there is no driver, or it does not say how many GPUs there are.
        """
        with self._lock, closing(self._caller), closing(Nvml(self._driver_root, self._caller)) as nvml:
            return self._read(nvml)

    def _read(self, nvml: Nvml) -> Node:
        findings = Findings()
        gpus = []
        for index in range(nvml.need("nvmlDeviceGetCount")):
            questions = GpuQuestions(nvml, index, findings)
            try:
                gpus.append(_gpu(questions))
            except LeftOut as left_out:
                questions.tell(str(left_out))
        return Node(
            name=self._name,
            platform=Platform.WSL,
            gpus=tuple(gpus),
            driver_version=driver_version(nvml, findings),
            cuda_version=cuda_version(nvml, findings),
            notes=findings.notes(),
        )


def _gpu(questions: GpuQuestions) -> Gpu:
    """Raises LeftOut if NVML does not hand the GPU out, or calls it lost."""
    ask, index = questions.ask, questions.index
    handle = questions.need("handle", "nvmlDeviceGetHandleByIndex", index)
    memory = ask("memory", "nvmlDeviceGetMemoryInfo", handle, quiet=_QUIET)
    pci = ask("PCI bus id", "nvmlDeviceGetPciInfo", handle, quiet=_QUIET)
    return Gpu(
        index=index,
        uuid=ask("UUID", "nvmlDeviceGetUUID", handle) or f"GPU-{index}",
        pci_bus_id="" if pci is None else str(pci.busId).upper(),
        minor=0,
        model=ask("model", "nvmlDeviceGetName", handle) or "",
        memory_bytes=None if memory is None else int(memory.total),
        compute_capability=ask("compute capability", "nvmlDeviceGetCudaComputeCapability", handle, quiet=_QUIET),
        numa_node=None,
        device_paths=(DEVICE_PATH,),
    )
