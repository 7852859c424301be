"""What CDI names may look like, and what ours are.

A device is asked for by its qualified name, `vendor/class=name`; the runtime looks for a file of that kind and for the
device in it. The vendor is that of k8s-device-plugin v0.20.0, so that answers which kubelet kept from it stay valid.

The name of a GPU or MIG device is what the container runtime calls it elsewhere too: its UUID or its index. Under WSL
and on Tegra all GPUs are one device; there it is `all`, whatever the id strategy says. (On Tegra v0.20.0 answers
`tegra`, which no file of its has.)

The patterns are those of the CDI library 1.1. They are a little narrower in one place: libraries up to 1.1.0 crash on a
vendor or class of one letter.
"""

import re

from gpustow.config import DeviceIdStrategy
from gpustow.errors import CdiSpecError, Problem
from gpustow.resources.device import Device
from gpustow.resources.gpu import TEGRA_DEVICE, WSL_DEVICE

VENDOR = "k8s.device-plugin.nvidia.com"

GPU_CLASS = "gpu"
IMEX_CLASS = "imex-channel"
GDRCOPY_CLASS = "gdrcopy"
GDS_CLASS = "gds"
MOFED_CLASS = "mofed"
CLASSES = (GPU_CLASS, IMEX_CLASS, GDRCOPY_CLASS, GDS_CLASS, MOFED_CLASS)
"""All classes that we write, each in a file of its own."""

ALL = "all"
"""The device that stands for all devices of its class."""

_KIND_PART = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]")
_DEVICE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_ANNOTATION_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ANNOTATION_NAME = re.compile(r"([a-z0-9][-a-z0-9_.]*)?[a-z0-9]")
_PREFIX_LENGTH = 253
_NAME_LENGTH = 63


def kind(class_: str) -> str:
    """The kind of our files of this class, `vendor/class`."""
    return f"{VENDOR}/{class_}"


def qualified(class_: str, name: str) -> str:
    """The name by which a container asks for a device of ours."""
    return f"{kind(class_)}={name}"


def device_name(device: Device, strategy: DeviceIdStrategy) -> str:
    """The name in class `gpu` of the GPU or MIG device behind `device`, a replica or not.

    Raises CdiSpecError if it has none: CDI allows neither slashes in a name, which the UUIDs have that drivers before
    470 gave to MIG devices, nor a device without anything in it.
    """
    if device.uuid in {WSL_DEVICE, TEGRA_DEVICE}:
        return ALL
    if not device.paths:
        raise CdiSpecError(
            kind(GPU_CLASS),
            [Problem("", f"{device.uuid} has no device nodes")],
            advice="Look for its nodes below /dev, which nvidia-smi and nvidia-modprobe make.",
        )
    return checked_name(device.index if strategy is DeviceIdStrategy.INDEX else device.uuid)


def checked_name(name: str) -> str:
    """`name`, if it can be that of a device. Raises CdiSpecError."""
    if is_device_name(name):
        return name
    raise CdiSpecError(
        kind(GPU_CLASS),
        [Problem("", f"{name!r} cannot be the name of a device")],
        advice="Name devices by --device-id-strategy=index, or update the driver: since 470 all UUIDs are allowed.",
    )


def is_kind(text: str) -> bool:
    """Whether `text` is `vendor/class`, split at its first slash."""
    vendor, slash, class_ = text.partition("/")
    return bool(slash and _KIND_PART.fullmatch(vendor) and _KIND_PART.fullmatch(class_))


def is_device_name(text: str) -> bool:
    """Whether a device in a file may be called so."""
    return _DEVICE.fullmatch(text) is not None


def is_annotation_key(text: str) -> bool:
    """Whether an annotation in a file may be called so: a name with or without a domain before it, as in Kubernetes."""
    prefix, slash, name = text.lower().rpartition("/")
    if slash and not (len(prefix) <= _PREFIX_LENGTH and _ANNOTATION_PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= _NAME_LENGTH and _ANNOTATION_NAME.fullmatch(name) is not None
