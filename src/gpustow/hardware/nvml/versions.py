"""The versions that NVML tells; empty, and told, where it does not."""

from gpustow.hardware.nvml.findings import Findings
from gpustow.hardware.nvml.library import Nvml, NvmlFailure


def driver_version(nvml: Nvml, findings: Findings) -> str:
    """The driver's, such as `550.90.07`."""
    try:
        return str(nvml.call("nvmlSystemGetDriverVersion"))
    except NvmlFailure as failure:
        findings.add("driver", f"version cannot be read: {failure}")
        return ""


def cuda_version(nvml: Nvml, findings: Findings) -> str:
    """The highest version of CUDA that the driver can run, such as `12.4`."""
    try:
        number = int(nvml.call("nvmlSystemGetCudaDriverVersion_v2"))
    except NvmlFailure as failure:
        findings.add("CUDA", f"version cannot be read: {failure}")
        return ""
    return f"{number // 1000}.{number % 1000 // 10}"
