"""The hardware of a walk: four cards that fall ill, fall off the bus, leave, come back and are cut into MIG devices.

It is the truth that the daemon has to find out about. MIG devices that are created have UUIDs that none had before.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache

from gpustow.hardware.faults import lost_note
from gpustow.hardware.links import Links
from gpustow.hardware.mig import MigDevice
from gpustow.hardware.node import Gpu, Node
from gpustow.hardware.nodemodel import NodeModel, parse_node_model

CARDS = 4
SMALL = "1g.5gb"
LARGE = "2g.10gb"
LAYOUTS: tuple[tuple[str, ...] | None, ...] = (
    None,
    (SMALL,) * 7,
    (LARGE,) * 3,
    (LARGE, LARGE, SMALL, SMALL),
    (SMALL,) * 2,
    (),
)
"""What a card may be cut into; None: its MIG mode is off."""


class Place(Enum):
    """Where a card is."""

    HERE = "here"
    LOST = "lost"
    """The driver lists it, and cannot read it."""
    AWAY = "away"
    """Nothing lists it."""


@cache
def _model(layout: tuple[str, ...] | None) -> NodeModel:
    mig = "{enabled: false}" if layout is None else f"{{enabled: true, devices: [{', '.join(layout)}]}}"
    text = (
        "name: walk\ndriverVersion: 550.90.07\ncudaVersion: '12.4'\nlinks: {fabric: hgx-a100-4}\n"
        f"gpus: [{{model: NVIDIA A100-SXM4-40GB, count: {CARDS}, numaNode: [0, 0, 1, 1], mig: {mig}}}]"
    )
    return parse_node_model(text, "walk")


@dataclass
class Card:
    """One card. `repair` is whether it waits for a repair, and so cannot prove that it is well."""

    gpu: Gpu
    place: Place = Place.HERE
    repair: bool = False

    @property
    def uuid(self) -> str:
        return self.gpu.uuid

    @property
    def index(self) -> int:
        return self.gpu.index

    @property
    def here(self) -> bool:
        return self.place is Place.HERE


@dataclass
class Machine:
    """All cards. `version` counts what the daemon could see without the driver; `broken`: health cannot be watched."""

    cards: list[Card] = field(default_factory=lambda: [Card(gpu) for gpu in _model(None).node.gpus])
    version: int = 0
    broken: bool = False
    _made: int = 0

    def cut(self, card: Card, layout: tuple[str, ...] | None) -> None:
        """Another MIG layout: all MIG devices of the card are new."""
        like = _model(layout).node.gpus[card.index]
        devices = tuple(self._new(device) for device in like.mig_devices)
        card.gpu = replace(card.gpu, mig_enabled=layout is not None, mig_devices=devices)
        self.version += 1

    def _new(self, device: MigDevice) -> MigDevice:
        self._made += 1
        return replace(device, uuid=f"MIG-00000000-0000-0000-0000-{self._made:012d}")

    def move(self, card: Card, place: Place) -> None:
        card.place = place
        self.version += 1

    def repair(self, card: Card, *, pending: bool) -> None:
        card.repair = pending

    def read(self) -> Node:
        """What a reader finds."""
        whole = _model(None).node
        here = {card.index for card in self.cards if card.here}
        lost = tuple(card.index for card in self.cards if card.place is Place.LOST)
        return replace(
            whole,
            gpus=tuple(card.gpu for card in self.cards if card.here),
            links=Links(tuple(entry for entry in whole.links.readings if here.issuperset(entry[0]))),
            notes=tuple(map(lost_note, lost)),
            unreadable=lost,
        )

    def model(self) -> NodeModel:
        """The same for the fake driver, which is told beside this which cards are lost."""
        base = _model(None)
        return replace(base, node=replace(base.node, gpus=tuple(card.gpu for card in self.cards)))
