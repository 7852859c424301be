"""Which GPUs of the node are ours: those that the operator selects, or has not excluded.

A GPU is named by its index, its UUID, its PCI bus id, or a pattern of its model with `*`. What is left out is left out
of everything: no device, no sharing, no health.

Our own container may see only some GPUs, by NVIDIA_VISIBLE_DEVICES; then NVML lists no others and nothing is to be
done. A privileged container sees all of them nevertheless, and there the variable is taken at its word: it selects when
more GPUs are seen than it names. Indices in it are the host's, which are NVML's only where all GPUs are seen.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpustow.config import Config
from gpustow.hardware.node import Gpu, Node
from gpustow.resources.pattern import matches

_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])", re.IGNORECASE)


def select_gpus(node: Node, config: Config) -> tuple[Node, tuple[str, ...]]:
    """The node with the GPUs that are ours, and a warning for each name that no GPU has."""
    gpus = _visible(node.gpus, config.visible_devices)
    if config.select_gpus:
        kept, warnings = _named(gpus, config.select_gpus, "select")
        ours = tuple(gpu for gpu in gpus if gpu in kept)
    else:
        dropped, warnings = _named(gpus, config.exclude_gpus, "exclude")
        ours = tuple(gpu for gpu in gpus if gpu not in dropped)
    return (node if ours == node.gpus else replace(node, gpus=ours)), warnings


def _named(gpus: Sequence[Gpu], names: Sequence[str], verb: str) -> tuple[list[Gpu], tuple[str, ...]]:
    """The GPUs with these names, and warnings about names that none has."""
    found: list[Gpu] = []
    warnings = []
    for name in filter(None, names):
        own = [gpu for gpu in gpus if _test(name)(gpu)]
        if not own:
            warnings.append(f"{verb} GPUs: this node has no GPU {name!r}")
        found += own
    return found, tuple(warnings)


def _test(name: str) -> Callable[[Gpu], bool]:
    """Whether a GPU has this name."""
    if name.isdecimal():
        return lambda gpu: gpu.index == int(name)
    if name.upper().startswith("GPU-"):
        return lambda gpu: gpu.uuid.lower() == name.lower()
    if match := _BUS_ID.fullmatch(name):
        bus_id = f"{int(match[1] or '0', 16):08x}:{match[2]}".lower()
        return lambda gpu: gpu.pci_bus_id.lower() == bus_id
    return lambda gpu: matches(name, gpu.model)


def _visible(gpus: tuple[Gpu, ...], names: Sequence[str]) -> tuple[Gpu, ...]:
    """The GPUs that NVIDIA_VISIBLE_DEVICES names, if we see others as well; all of them if it names parts of GPUs."""
    if not names or len(gpus) <= len(names):
        return gpus
    if not all(name.isdecimal() or name.upper().startswith("GPU-") for name in names):
        return gpus
    return tuple(gpu for gpu in gpus if any(_test(name)(gpu) for name in names))
