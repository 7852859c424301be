"""Pods that come and go on a node, and the devices that they get under each policy: a table for the documentation."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpustow.hardware.node import Node
from gpustow.simulation.kubelet import AdmittedPod, Container, Pod
from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import GPU, Plugin, node_of, sharing
from tests.devicemanager.scene import Scene, scene

POLICIES = ("packed", "distributed", "spread")
COMING = (("a", 1), ("b", 1), ("c", 2), ("d", 1), ("e", 3))
LEAVING = ("a", "d")
LATE = ("f", 2)


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A node and how it is served; `sliced` is the number of replicas."""

    title: str
    model: str
    mig_strategy: str = "none"
    sliced: int | None = None

    @property
    def node(self) -> Node:
        """The node."""
        return node_of(self.model)


EXHIBITS = (
    Exhibit(
        "MIG devices: `a100-4-mig-5`, four GPUs of five MIG devices each, `migStrategy: single`",
        "a100-4-mig-5",
        "single",
    ),
    Exhibit("Replicas: `t4-4`, four GPUs, time-sliced into four replicas each", "t4-4", sliced=4),
)


async def table(backend: Backend, directory: Path, exhibit: Exhibit) -> list[str]:
    """The lines of the table: a row a pod, a column a policy."""
    columns = []
    for policy in POLICIES:
        folder = directory / policy / exhibit.model
        (folder / "device-plugins").mkdir(parents=True)
        flags = {"mig_strategy": exhibit.mig_strategy}
        if exhibit.sliced is not None:
            flags["config_file"] = sharing(folder, gpu=exhibit.sliced)
        async with scene(backend, folder, exhibit.node, policy=policy, flags=flags) as at:
            columns.append(await _column(at))
    heads = [f"{name}: {_devices(size)}" for name, size in COMING]
    heads += [f"{LATE[0]}: {_devices(LATE[1])}, after {' and '.join(LEAVING)} have gone", "GPUs wholly free then"]
    rows = [[head, *cells] for head, *cells in zip(heads, *columns, strict=True)]
    return [_row(["pod", *POLICIES]), _row(["---"] * (1 + len(POLICIES))), *map(_row, rows)]


async def _column(at: Scene) -> list[str]:
    pods = {name: await _admit(at, name, size) for name, size in COMING}
    cells = [_shown(at.plugin, pod) for pod in pods.values()]
    for name in LEAVING:
        at.remove(pods.pop(name))
    pods[LATE[0]] = await _admit(at, *LATE)
    taken = {gpu for pod in pods.values() for gpu in at.plugin.gpus_of(pod.device_ids(GPU))}
    return [*cells, _shown(at.plugin, pods[LATE[0]]), str(len(at.plugin.node.gpus) - len(taken))]


async def _admit(at: Scene, name: str, size: int) -> AdmittedPod:
    return await at.kubelet.admit(Pod(name, containers=(Container("main", {GPU: size}),)))


def _shown(plugin: Plugin, pod: AdmittedPod) -> str:
    by_gpu: dict[int, list[str]] = {}
    for device_id in pod.device_ids(GPU):
        device = plugin.resources[GPU].by_id[device_id]
        part = device.index if device.replica is None else f"{device.index}::{device.replica}"
        by_gpu.setdefault(device.gpu_index, []).append(f"`{part}`")
    return "; ".join(f"GPU {gpu}: {' '.join(sorted(parts))}" for gpu, parts in sorted(by_gpu.items()))


def _devices(size: int) -> str:
    return "1 device" if size == 1 else f"{size} devices"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
