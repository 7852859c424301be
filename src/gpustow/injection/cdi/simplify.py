"""A specification without what it says twice, and in an order that does not depend on how it was found.

So a file changes only when its content does, and an operator can compare two of them. The order of hooks is that in
which they run and stays. What all devices share is said once, unless a device would then have nothing left, which CDI
does not allow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from gpustow.injection.cdi.edits import CdiEdits
from gpustow.injection.cdi.names import ALL
from gpustow.injection.cdi.specification import CdiDevice, CdiSpec

Item = TypeVar("Item")


def simplified(spec: CdiSpec) -> CdiSpec:
    """The same specification, shorter and sorted."""
    common = _in_order(spec.edits)
    devices = (replace(device, edits=_without(_in_order(device.edits), common)) for device in spec.devices)
    return replace(spec, devices=tuple(sorted(devices, key=lambda device: device.name)), edits=common)


def with_all(spec: CdiSpec) -> CdiSpec:
    """With a device that stands for all others, if there is none. Its annotations would be about some of them alone."""
    if any(device.name == ALL for device in spec.devices):
        return spec
    merged = sum((device.edits for device in spec.devices), CdiEdits())
    return replace(spec, devices=(*spec.devices, CdiDevice(ALL, merged)))


def _in_order(edits: CdiEdits) -> CdiEdits:
    return CdiEdits(
        env=_unique(edits.env),
        device_nodes=tuple(sorted(_unique(edits.device_nodes), key=lambda node: _by_depth(node.path))),
        mounts=tuple(sorted(_unique(edits.mounts), key=lambda mount: _by_depth(mount.container_path))),
        hooks=_unique(edits.hooks),
        additional_gids=tuple(sorted(set(edits.additional_gids))),
    )


def _without(edits: CdiEdits, common: CdiEdits) -> CdiEdits:
    own = CdiEdits(
        env=_less(edits.env, common.env),
        device_nodes=_less(edits.device_nodes, common.device_nodes),
        mounts=_less(edits.mounts, common.mounts),
        hooks=_less(edits.hooks, common.hooks),
        additional_gids=_less(edits.additional_gids, common.additional_gids),
    )
    return edits if own.is_empty else own


def _unique(items: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(items))


def _less(items: Sequence[Item], others: Sequence[Item]) -> tuple[Item, ...]:
    return tuple(item for item in items if item not in others)


def _by_depth(path: str) -> tuple[int, str]:
    """Directories before what is mounted into them."""
    return path.count("/"), path
