"""What has changed on a node between two readings, in words: one line for each GPU that is another than before.

GPUs are told apart by their UUID, since a GPU that is lost can shift the indexes of those after it. A GPU that was seen
before and left is back; one that was never seen is new. MIG devices are told by how many there are of each profile.

Limits: of the rest that is read of a GPU (its memory, its links) nothing is said.
"""

from collections import Counter
from collections.abc import Set as AbstractSet

from gpustow.hardware.node import Gpu, Node


class NodeChanges:
    """Keeps the node that was read last, and which GPUs were ever there."""

    def __init__(self) -> None:
        self._last: Node | None = None
        self._seen: set[str] = set()

    def look(self, node: Node) -> tuple[str, ...]:
        """What has changed since the last look; nothing at the first."""
        last, self._last = self._last, node
        lines = () if last is None else node_changes(last, node, self._seen)
        self._seen.update(gpu.uuid for gpu in node.gpus)
        return lines


def node_changes(old: Node, new: Node, seen: AbstractSet[str] = frozenset()) -> tuple[str, ...]:
    """One line for each GPU that is another in `new` than in `old`, in the order of their indexes.

    `seen` are the UUIDs of GPUs that were there at some time before.
    """
    before = {gpu.uuid: gpu for gpu in old.gpus}
    after = {gpu.uuid: gpu for gpu in new.gpus}
    lines = [(gpu.index, _gone(gpu, new)) for gpu in old.gpus if gpu.uuid not in after]
    for gpu in new.gpus:
        known = before.get(gpu.uuid)
        if known is None:
            lines.append((gpu.index, f"{gpu_name(gpu)} is {'back' if gpu.uuid in seen else 'new'}"))
        else:
            lines.extend((gpu.index, line) for line in (_moved(known, gpu), _recut(known, gpu)) if line)
    return tuple(line for _, line in sorted(lines, key=lambda line: line[0]))


def gpu_name(gpu: Gpu) -> str:
    """Which GPU, for people and for programs."""
    return f"GPU {gpu.index} ({gpu.uuid})"


def _gone(gpu: Gpu, new: Node) -> str:
    lost = gpu.index in new.unreadable
    return f"{gpu_name(gpu)} is gone" + (": the driver lists it, and it is lost or cannot be read" if lost else "")


def _moved(old: Gpu, new: Gpu) -> str:
    return f"{gpu_name(new)} was GPU {old.index} before" if old.index != new.index else ""


def _recut(old: Gpu, new: Gpu) -> str:
    """What has become of the MIG mode and the MIG devices."""
    cut = _cut(new)
    if old.mig_enabled != new.mig_enabled:
        if new.mig_enabled:
            return f"GPU {new.index} is in MIG mode now: {cut}"
        return f"GPU {new.index} is not in MIG mode any more"
    if cut != _cut(old):
        return f"GPU {new.index}: {_cut(old)} -> {cut}"
    if {device.uuid for device in old.mig_devices} != {device.uuid for device in new.mig_devices}:
        return f"GPU {new.index}: {cut}, as before, but not the same devices"
    return ""


def _cut(gpu: Gpu) -> str:
    """How many MIG devices of which profile there are, small ones first: `2 x 1g.5gb + 1 x 3g.20gb`."""
    profiles = sorted((device.profile.gpu_slices, device.profile.name) for device in gpu.mig_devices)
    counts = Counter(name for _, name in profiles)
    return " + ".join(f"{count} x {name}" for name, count in counts.items()) or "no MIG devices"
