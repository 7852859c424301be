"""What a generation gives."""

from dataclasses import dataclass, field

from gpustow.injection.cdi.specification import CdiDevice, CdiEdits, CdiSpec

VOID = "NVIDIA_VISIBLE_DEVICES=void"
"""Tells NVIDIA's own runtime that the container has its devices already."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The devices of a specification, and the edits of every container that gets one of them."""

    devices: tuple[CdiDevice, ...]
    edits: CdiEdits = field(default_factory=CdiEdits)


@dataclass(frozen=True, slots=True)
class Generated:
    """A specification, and sentences for the log: what is not in it because it was not found, and what is wrong."""

    spec: CdiSpec
    left_out: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
