"""Which names of a CDI file must outlive the devices that they stood for.

Kubelet keeps an answer and gives it to the runtime again whenever a container starts anew, also after we have been
replaced. The runtime fails the container if one name in the answer is nowhere to be found. So a name goes out of a file
only once nobody can have it in an answer any more:

- a UUID as long as a container holds the device, or a replica of it;
- any other name (an index, `all`, an IMEX channel) as long as a container holds any device of ours, because such a name
  does not tell whose it was;
- and every name as long as kubelet has not said what is held.

A name that is used anew has its new meaning, also for old answers: with indices that can be another GPU after a change
of the hardware. UUIDs do not have that problem, and are the default.
"""

import re
from collections.abc import Collection
from dataclasses import replace

from gpustow.injection.cdi.names import ALL, GPU_CLASS, kind
from gpustow.injection.cdi.specification import CdiSpec

_INDEX = re.compile(r"\d+(:\d+)?", re.ASCII)


def still_named(kind_: str, name: str, held: Collection[str] | None) -> bool:
    """Whether an old answer may have this name of a file.

    `held` are the UUIDs of all devices of ours that containers hold, None if that is not known.
    """
    if held is None:
        return True
    if kind_ == kind(GPU_CLASS) and name != ALL and not _INDEX.fullmatch(name):
        return name in held
    return bool(held)


def with_old_names(
    previous: CdiSpec | None,
    wanted: CdiSpec | None,
    held: Collection[str] | None,
    removable: Collection[str] | None = None,
) -> CdiSpec | None:
    """What the file of a kind is to hold: what is wanted, and what of the previous content may still be asked for.

    Of the latter only names in `removable` may go, if that is given: what appeared later is somebody else's. Old
    devices come after the new ones, and get the new edits that all devices of the file share. None if the file is to
    go.
    """
    if previous is None:
        return wanted
    new_names = {device.name for device in wanted.devices} if wanted is not None else set()
    old = tuple(
        device
        for device in previous.devices
        if device.name not in new_names
        and (still_named(previous.kind, device.name, held) or not (removable is None or device.name in removable))
    )
    if wanted is not None:
        return replace(wanted, devices=wanted.devices + old)
    return replace(previous, devices=old) if old else None
