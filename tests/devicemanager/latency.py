"""How long kubelet's own device manager takes to admit a pod with our daemon: `make bench-devicemanager`.

The daemon and the device manager are processes of their own. What counts is the time of kubelet's admission handlers:
the call of GetPreferredAllocation, that of Allocate, and the checkpoint, which grows with the pods.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from random import Random

from benchmarks.measurement import Measurement

from gpustow.simulation.kubelet import Container, Pod
from tests.devicemanager.devicemanager import DeviceManagerKubelet
from tests.devicemanager.plugin import GPU, sharing
from tests.devicemanager.program import PROGRAMS, ProgramUnavailableError, missing

PODS = 500
NODE, GPUS, REPLICAS = "hgx-h100", 8, 100
POLICIES = ("packed", "distributed")
ROW = "{:<44} {:>6} {:>10} {:>10} {:>10}"


async def measure(version: str, policy: str, pods: int = PODS) -> Measurement:
    """Admits pods of one device each, one after the other, and none leaves."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as name:
        directory = Path(name)
        kubelet = DeviceManagerKubelet(PROGRAMS[version].build(), directory, random=Random(1))
        kubelet.plugin_directory.mkdir()
        async with kubelet:
            daemon = await asyncio.create_subprocess_exec(
                *(str(Path(sys.executable).with_name("gpustow")), "plugin", "--log-level=error"),
                *(f"--node-model={NODE}", f"--kubelet-socket={kubelet.registration_socket}"),
                *(f"--config-file={sharing(directory, gpu=REPLICAS)}", f"--shared-devices-allocation-policy={policy}"),
            )
            try:
                await kubelet.wait_for(GPU, GPUS * REPLICAS, timeout=30)
                milliseconds = []
                for number in range(pods):
                    await kubelet.admit(Pod(f"pod-{number}", containers=(Container("main", {GPU: 1}),)))
                    milliseconds.append(kubelet.last_admission * 1000)
            finally:
                daemon.terminate()
                await daemon.wait()
    title = f"{PROGRAMS[version].release}, {GPUS} x {REPLICAS} replicas, {policy}"
    return Measurement.of(title, "ms", milliseconds)


def main(versions: list[str]) -> int:
    """Measures with the versions named, or all, and prints a row as each comes."""
    if (reason := missing()) is not None:
        sys.stderr.write(f"no device manager: {reason}\n")
        return 1
    write = sys.stdout.write
    write("admission of a pod by the device manager of Kubernetes, milliseconds\n")
    write(ROW.format("device manager", "pods", "p50", "p99", "max") + "\n")
    for version in versions or PROGRAMS:
        for policy in POLICIES:
            try:
                row = asyncio.run(measure(version, policy))
            except ProgramUnavailableError as error:
                sys.stderr.write(f"no device manager: {error}\n")
                return 1
            write(ROW.format(row.name, row.n, f"{row.median:.2f}", f"{row.p99:.2f}", f"{row.max:.2f}") + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
