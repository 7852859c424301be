"""What is left of a node when calls of the driver fail, in words, for the table in docs/reliability.md."""

from collections.abc import Iterator

from gpustow.hardware.links import Link, Links
from gpustow.hardware.mig import MigDevice
from gpustow.hardware.node import Gpu, Node

_FIELDS = {
    "model": "model name",
    "memory_bytes": "memory",
    "compute_capability": "compute capability",
    "pci_bus_id": "PCI bus id",
    "numa_node": "NUMA node",
    "fabric": "NVLink fabric",
}


def outcome(healthy: Node, node: Node, struck: int) -> str:
    """How `node` differs from the healthy one; `struck` is the GPU that was to fail, -1 for all of them."""
    left = [gpu.index for gpu in node.gpus]
    gone = [gpu.index for gpu in healthy.gpus if gpu.index not in left]
    if not left:
        return "no GPU is served"
    parts = list(dict.fromkeys(_differences(healthy, node)))
    if gone:
        if struck < 0:
            assert gone == [gpu.index for gpu in healthy.gpus if gpu.mig_enabled]
            return "; ".join(["GPUs in MIG mode are left out", *parts])
        assert gone == [struck], "another GPU than the struck one is gone"
        return "; ".join(["that GPU is left out", *parts])
    return "; ".join(parts) or "all is served"


def _differences(healthy: Node, node: Node) -> Iterator[str]:
    before = {gpu.index: gpu for gpu in healthy.gpus}
    for gpu in node.gpus:
        yield from _gpu_differences(before[gpu.index], gpu)
    yield from _link_differences(healthy.links, node)
    if node.driver_version != healthy.driver_version:
        yield "without driver version"
    if node.cuda_version != healthy.cuda_version:
        yield "without CUDA version"


def _gpu_differences(before: Gpu, gpu: Gpu) -> Iterator[str]:
    for field, words in _FIELDS.items():
        if getattr(gpu, field) != getattr(before, field):
            yield f"without {words}"
    if gpu.mig_profiles != before.mig_profiles:
        yield "without places of MIG profiles" if gpu.mig_profiles else "without MIG profiles"
    if before.mig_capable and not gpu.mig_capable:
        yield "served whole, as a GPU without MIG"
    elif before.mig_devices and not gpu.mig_devices:
        yield "without MIG devices"
    for device in gpu.mig_devices:
        yield from _mig_differences(next(known for known in before.mig_devices if known.uuid == device.uuid), device)


def _mig_differences(before: MigDevice, device: MigDevice) -> Iterator[str]:
    if device.start != before.start:
        yield "without places of MIG devices"
    if device.profile.name != before.profile.name:
        yield "without suffixes of MIG profiles"
    assert before.profile.name.startswith(device.profile.name)
    assert device.memory_bytes == before.memory_bytes
    assert device.device_paths == before.device_paths


def _link_differences(healthy: Links, node: Node) -> Iterator[str]:
    left = {gpu.index for gpu in node.gpus}
    for pair, before in healthy.readings:
        if set(pair) <= left:
            link = node.links.table().get(pair, Link())
            if link.pcie is not before.pcie:
                yield "without PCIe levels"
            if link.nvlinks != before.nvlinks:
                yield "with fewer NVLinks" if link.nvlinks else "without NVLinks"
