"""The errors of gpustow and the exit codes that go with them.

The tree; the number is the exit code of a command that ends with the error:

    GpustowError                    1   unexpected
    ├── UsageError                  2   flags that cannot be used together, or wrong words
    ├── ConfigError                 3   the configuration is refused
    ├── InputFileError              4   an input file is refused
    │   ├── NodeModelError          4       a node model
    │   └── WorkloadError           4       a workload
    ├── HardwareError               5   driver or hardware cannot be read
    ├── NoDevicesError              6   there are no devices to serve
    ├── KubeletDirectoryError       7   kubelet's directory is missing or not writable
    ├── CdiDirectoryError           7   the same of the directory for CDI specifications
    ├── CheckFailed                 8   a check found problems
    ├── CdiSpecError                1   a CDI specification breaks the rules of CDI
    ├── InfeasibleRequest           1   placement: more asked for than offered, or a device that is not offered
    ├── AllocationRefused           1   Allocate: unknown devices, or a sharing rule is broken
    ├── RegistrationError           1   kubelet did not take the registration; trying again may help
    │   └── RegistrationRefused     1       trying again will not help
    │       └── ApiVersionRefused   1           nor will any other resource be taken
    ├── PluginServerError           1   a plugin's socket cannot be served
    ├── PodResourcesError           1   kubelet's PodResources cannot be read
    ├── DaemonError                 1   a running daemon does not answer, or answers what cannot be read
    └── AdmissionError              1   the embedded kubelet refuses a pod

An error carries its data in attributes, and its text says what is wrong, where, and what to do next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class GpustowError(Exception):
    """The root. Catch this to catch everything that gpustow raises on purpose."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, advice: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return self.message if self.advice is None else f"{self.message}\n  {self.advice}"


class UsageError(GpustowError):
    """Flags or arguments that cannot be used as given."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault in a file: `path` as `flags.plugin.deviceIDStrategy` or `gpus[0].model`, and what is wrong there."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class _FileError(GpustowError):
    """A file with problems: names the file, then one line a problem."""

    what: ClassVar[str] = "file"

    def __init__(self, source: str, problems: Sequence[Problem], *, advice: str | None = None) -> None:
        lines = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(f"{self.what} {source} is refused:{lines}", advice=advice)
        self.source = source
        self.problems = tuple(problems)


class ConfigError(_FileError):
    """The configuration (file, environment or flags) is refused; `source` says which of them.

    `warnings` are what it says without effect, for that is often the reason.
    """

    exit_code = 3
    what = "configuration"

    def __init__(
        self, source: str, problems: Sequence[Problem], *, warnings: Sequence[str] = (), advice: str | None = None
    ) -> None:
        super().__init__(source, problems, advice=advice)
        self.warnings = tuple(warnings)

    def __str__(self) -> str:
        warnings = "".join(f"\n  warning: {warning}" for warning in self.warnings)
        return self.message + warnings + super().__str__().removeprefix(self.message)


class InputFileError(_FileError):
    """An input file of a command is refused."""

    exit_code = 4
    what = "input file"


class NodeModelError(InputFileError):
    """A node model file is refused."""

    what = "node model"


class WorkloadError(InputFileError):
    """A workload file is refused."""

    what = "workload"


class CdiSpecError(_FileError):
    """A CDI specification, or a name in one, breaks the rules of CDI; `source` is its kind or its file."""

    what = "CDI specification"


class HardwareError(GpustowError):
    """The driver or the hardware cannot be read."""

    exit_code = 5


class NoDevicesError(GpustowError):
    """The node has no devices to serve."""

    exit_code = 6


class KubeletDirectoryError(GpustowError):
    """The directory of kubelet's sockets is missing or cannot be written to."""

    exit_code = 7

    def __init__(self, directory: str, reason: str, *, advice: str | None = None) -> None:
        super().__init__(
            f"kubelet's device plugin directory {directory} {reason}",
            advice=advice or "Mount the host's /var/lib/kubelet/device-plugins there, or set --kubelet-socket.",
        )
        self.directory = directory
        self.reason = reason


class CdiDirectoryError(GpustowError):
    """The directory for CDI specifications cannot be made, or a file in it cannot be written."""

    exit_code = 7

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(
            f"cannot write CDI specifications into {directory}: {reason}",
            advice="Mount the host's /var/run/cdi there, writable, or set --cdi-directory to where the runtime looks.",
        )
        self.directory = directory
        self.reason = reason


class CheckFailed(GpustowError):  # noqa: N818 - it is a result rather than a failure of ours
    """A check ran well and found problems."""

    exit_code = 8


class InfeasibleRequest(GpustowError):  # noqa: N818 - the name that the design uses
    """No placement satisfies the request: more devices asked for than offered, or a must-include that is not."""


class AllocationRefused(GpustowError):  # noqa: N818 - the name says what happened
    """Allocate cannot be answered: `resource` names whose, the text says which device and why."""

    def __init__(self, resource: str, reason: str) -> None:
        super().__init__(f"invalid allocation request for {resource!r}: {reason}")
        self.resource = resource
        self.reason = reason


class RegistrationError(GpustowError):
    """Kubelet did not take the registration of `resource`; the cause may pass."""

    def __init__(self, resource: str, reason: str, *, advice: str | None = None) -> None:
        super().__init__(f"kubelet did not register {resource!r}: {reason}", advice=advice)
        self.resource = resource
        self.reason = reason


class RegistrationRefused(RegistrationError):  # noqa: N818 - says what kubelet did
    """Kubelet will never take the registration: the name or the API version is not valid for it."""


class ApiVersionRefused(RegistrationRefused):
    """Kubelet does not know the version of the API, so that it will take no resource at all."""


class PluginServerError(GpustowError):
    """The socket of a plugin cannot be bound, or nobody answers on it."""

    def __init__(self, socket: str, reason: str, *, advice: str | None = None) -> None:
        super().__init__(f"cannot serve on {socket}: {reason}", advice=advice)
        self.socket = socket
        self.reason = reason


class PodResourcesError(GpustowError):
    """Kubelet does not say which pod holds which device."""

    def __init__(self, socket: str, reason: str) -> None:
        super().__init__(f"cannot read the pods' resources from {socket}: {reason}")
        self.socket = socket
        self.reason = reason


class DaemonError(GpustowError):
    """A daemon that was asked for its status at `address` did not tell it."""

    def __init__(self, address: str, reason: str, *, advice: str) -> None:
        super().__init__(f"no status of a daemon at {address}: {reason}", advice=advice)
        self.address = address
        self.reason = reason


class AdmissionError(GpustowError):
    """The embedded kubelet refuses a pod, with the reason and message that it would write into the pod's status."""

    def __init__(self, pod: str, reason: str, message: str) -> None:
        super().__init__(f"pod {pod} is refused ({reason}): {message}")
        self.pod = pod
        self.reason = reason
        self.status_message = message
