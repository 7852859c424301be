"""Finding, loading and calling NVIDIA's management library.

The library is looked for where k8s-device-plugin v0.20.0 looks: in the usual folders below the root at which the
driver is mounted, else wherever the dynamic linker finds it. Calls go through nvidia-ml-py, NVIDIA's own bindings,
by the name that a function has there, each with a deadline.

Limits: the bindings hold one library per process, the first that was loaded; a driver that moves needs a new process.
"""

import ctypes
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpustow.errors import HardwareError
from gpustow.hardware.nvml.deadline import DeadlineCaller, Hang
from gpustow.hardware.nvml.observer import CallResult

LIBRARY = "libnvidia-ml.so.1"

_FOLDERS = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
)

INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
VERSION_MISMATCH = 18
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26
UNKNOWN = 999

_ADVICE = {
    NO_PERMISSION: "Run privileged, or with the NVIDIA container runtime.",
    DRIVER_NOT_LOADED: "Load the driver on the host (nvidia-smi has to work there), then start again.",
    VERSION_MISMATCH: "The driver was updated under the running kernel module: reload the module or restart the node.",
}


class NvmlFailure(Exception):  # noqa: N818 - names what happened
    """A call did not do what it should. `code` is NVML's return code; None means that the call did not return."""

    def __init__(self, call: str, code: int | None, text: str) -> None:
        super().__init__(f"{text} ({call})")
        self.call = call
        self.code = code
        self.text = text


def library_path(driver_root: str) -> str:
    """What to load: the library's path below the root, symbolic links resolved, else its bare name."""
    if driver_root not in {"", "/"}:
        for folder in _FOLDERS:
            candidate = Path(driver_root) / folder / LIBRARY
            with suppress(OSError):
                return str(candidate.resolve(strict=True))
    return LIBRARY


_loading = threading.Lock()


def _bindings(driver_root: str) -> Any:
    """The bindings, with the library loaded. Raises HardwareError."""
    import pynvml  # type: ignore[import-untyped] # noqa: PLC0415 - large, and of no use where no driver is

    path = library_path(driver_root)
    with _loading:
        if pynvml.nvmlLib is None:
            try:
                pynvml.nvmlLib = ctypes.CDLL(path)
            except OSError as error:
                raise HardwareError(
                    f"there is no NVIDIA driver to read: {error}",
                    advice="Install the driver, run under the NVIDIA container runtime, or mount the driver's root and "
                    "name it with --driver-root-ctr-path.",
                ) from error
    return pynvml


class Nvml:
    """NVML, initialised. `caller` makes the calls; it outlives this, so that calls that hang are not forgotten.

    `bindings` is the module of nvidia-ml-py, for the types of its structures. `hung` is for whoever asks about GPUs: by
    call, those for which it did not return.

    Raises HardwareError where there is no driver, or NVML does not come up.
    """

    def __init__(self, driver_root: str, caller: DeadlineCaller) -> None:
        self.bindings = _bindings(driver_root)
        self._caller = caller
        self.hung: defaultdict[str, set[int]] = defaultdict(set)
        self.need("nvmlInit")

    def close(self) -> None:
        """Shuts NVML down."""
        with suppress(NvmlFailure):
            self.call("nvmlShutdown")

    def call(self, name: str, *arguments: Any, about: str = "", waits: float = 0.0) -> Any:
        """What the function of the bindings returns; `about` is what it is asked about, such as `GPU 2`.

        A function that is there to wait has the seconds that it `waits` beside the deadline; that nothing came is no
        failure for the observer.

        Raises:
            NvmlFailure: it failed, or did not return in time.
        """
        start = time.perf_counter()
        result = CallResult.FAILED
        try:
            answer = self._caller.call(getattr(self.bindings, name), *arguments, about=about, waits=waits)
            result = CallResult.OK
        except Hang as hang:
            result = CallResult.HUNG
            raise NvmlFailure(name, None, str(hang)) from None
        except self.bindings.NVMLError as error:
            if waits and error.value == TIMEOUT:
                result = CallResult.OK
            raise NvmlFailure(name, error.value, str(error)) from error
        except UnicodeDecodeError as error:
            raise NvmlFailure(name, UNKNOWN, "the answer is not text") from error
        else:
            return answer
        finally:
            self._caller.observer.called(name, time.perf_counter() - start, result)

    def need(self, name: str, *arguments: Any) -> Any:
        """As `call`, for what nothing can be read without. Raises HardwareError."""
        try:
            return self.call(name, *arguments)
        except NvmlFailure as failure:
            advice = _ADVICE.get(failure.code or 0, "See what nvidia-smi says on the host.")
            raise HardwareError(f"the NVIDIA driver cannot be read: {failure}", advice=advice) from failure
