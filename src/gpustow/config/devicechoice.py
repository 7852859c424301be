"""Which devices of a resource an entry of the sharing section means: all, a number of them, or a list of names.

A name is a GPU's index (`0`), a MIG device's (`0:1`), or a UUID (`GPU-...`, `MIG-...`, or the older `MIG-GPU-.../1/0`).
What is accepted and refused is as in v0.20.0, which then drops the choice; here it holds.
"""

import re
from typing import Any, Literal
from uuid import UUID

DeviceChoice = Literal["all"] | int | tuple[str, ...]
"""All devices, so many of them, or those with these indices and UUIDs."""

INDEX_PATTERN = r"[0-9]+(:[0-9]+)?"
"""The index of a GPU or of a MIG device, as a regular expression."""

UUID_PATTERN = r"(GPU-|MIG-GPU-|MIG-)(.+?)(/[0-9]+/[0-9]+)?"
"""What a UUID may look like, as a regular expression: the prefix, the UUID proper, instances in the older form."""

_INDEX = re.compile(INDEX_PATTERN, re.ASCII)
_UUID = re.compile(UUID_PATTERN, re.ASCII | re.DOTALL)


def read_device_choice(node: Any) -> DeviceChoice:
    """The choice that stands in the file. Raises ValueError with what is wrong about it."""
    if node == "all":
        return "all"
    if isinstance(node, str):
        raise ValueError(f"devices set as {node!r} but the only valid string input is 'all'")  # noqa: TRY004 - as below
    if isinstance(node, bool) or not isinstance(node, (int, list)):
        raise ValueError(f"{node!r} is neither 'all', a count, nor a list of devices")  # noqa: TRY004 - of a file
    if isinstance(node, int):
        if node <= 0:
            raise ValueError(f"the count of devices must be > 0, not {node}")
        return node
    return tuple(_reference(item) for item in node)


def _reference(item: Any) -> str:
    if isinstance(item, bool) or not isinstance(item, (int, str)):
        raise ValueError(f"unsupported type in a list of devices: {item!r} is no index and no UUID")  # noqa: TRY004 - as above
    text = str(item)
    if _INDEX.fullmatch(text):
        return text
    match = _UUID.fullmatch(text)
    if match is None or (match[1] == "MIG-GPU-") != (match[3] is not None):
        raise ValueError(
            f"{text!r} is neither the index of a GPU (0) or MIG device (0:1), nor a UUID (GPU-..., MIG-...)"
        )
    try:
        uuid = UUID(match[2])
    except ValueError:
        raise ValueError(f"{text!r} does not hold a UUID behind {match[1]}") from None
    return f"{match[1]}{uuid}{match[3] or ''}"
