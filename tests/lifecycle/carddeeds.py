"""What can happen to the cards of a world, and to what tells of their health.

Each deed tells the plain model what follows from it, and how long that may take to be seen.
"""

from dataclasses import replace

from gpustow.health.event import EventKind, HealthEvent
from gpustow.health.policy import APPLICATION_XIDS
from tests.lifecycle.machine import LAYOUTS, Card, Place
from tests.lifecycle.world import World

FATAL_XIDS = (48, 62, 64, 74, 95, 119)
FALLEN_OFF = 79


def _card(world: World, a: int, *places: Place) -> Card | None:
    cards = [card for card in world.machine.cards if card.place in places]
    return cards[a % len(cards)] if cards else None


def _may_go(world: World, card: Card) -> bool:
    """Whether something is left to offer without the card; a reload to a configuration that offers nothing is refused,
    so the card must stay until the last one has been read."""
    others = world.expectation.setting.offered(other for other in world.machine.cards if other.here and other != card)
    return bool(others) or world.clock() >= world.loaded_by


def _is_watched(world: World) -> bool:
    return world.daemon.up and world.is_quiet() and not world.machine.broken


async def xid(world: World, a: int, b: int) -> str | None:
    """An XID, fatal or not, of a card or one of its MIG instances."""
    card = _card(world, a, Place.HERE)
    setting = world.expectation.setting
    if card is None or card.index in setting.exclude or not _is_watched(world):
        return None
    code = [*sorted(APPLICATION_XIDS), *FATAL_XIDS, *FATAL_XIDS, *FATAL_XIDS, FALLEN_OFF][b % 25]
    device = None
    if card.gpu.mig_devices and (b // 25) % 2 and code != FALLEN_OFF:
        device = card.gpu.mig_devices[(b // 50) % len(card.gpu.mig_devices)]
    event = HealthEvent(EventKind.XID, card.uuid, xid=code)
    if device is not None:
        event = replace(event, gpu_instance=device.gpu_instance, compute_instance=device.compute_instance)
    if not world.daemon.happens(event):
        return None
    if code not in APPLICATION_XIDS:
        hit = device.uuid if device is not None and setting.by_mig else card.uuid
        world.health.strike(hit, card, found=code == FALLEN_OFF)
    world.falls_ill(world.pace.notice)
    return f"card {card.index}{'' if device is None else f', {device.uuid}'}: XID {code}"


async def xid_of_nobody(world: World, _a: int, b: int) -> str | None:
    """An XID of which the driver does not say whose it is."""
    if not _is_watched(world):
        return None
    code = FATAL_XIDS[b % len(FATAL_XIDS)]
    if not world.daemon.happens(HealthEvent(EventKind.XID, None, xid=code)):
        return None
    for card in world.machine.cards:
        if card.here and card.index not in world.expectation.setting.exclude:
            world.health.strike(card.uuid, card)
    world.falls_ill(world.pace.notice)
    return f"some card: XID {code}"


async def need_repair(world: World, a: int, _b: int) -> str | None:
    """A card waits for a repair."""
    whole = [card for card in world.machine.cards if not card.repair]
    if not whole:
        return None
    card = whole[a % len(whole)]
    world.machine.repair(card, pending=True)
    world.repair_since[card.index] = world.clock()
    world.health.needs_repair(card)
    return f"card {card.index} needs a repair"


async def repair(world: World, a: int, _b: int) -> str | None:
    cards = [card for card in world.machine.cards if card.repair]
    if not cards:
        return None
    card = cards[a % len(cards)]
    world.machine.repair(card, pending=False)
    world.health.repaired(card, world.repair_since[card.index])
    return f"card {card.index} is repaired"


async def lose(world: World, a: int, _b: int) -> str | None:
    card = _card(world, a, Place.HERE)
    if card is None or not _may_go(world, card):
        return None
    world.expectation.remember()
    quiet = world.is_quiet() and world.kubelet_up and world.daemon.up
    world.machine.move(card, Place.LOST)
    told = world.daemon.happens(HealthEvent(EventKind.LOST, card.uuid))
    world.health.lost(card, told=told)
    if quiet:
        world.expectation.is_lost(card)
    world.falls_ill(world.pace.look)
    return f"card {card.index} is lost"


async def remove(world: World, a: int, _b: int) -> str | None:
    card = _card(world, a, Place.HERE, Place.LOST)
    if card is None or not _may_go(world, card):
        return None
    world.expectation.remember()
    if card.here:
        told = world.daemon.happens(HealthEvent(EventKind.LOST, card.uuid))
        world.health.lost(card, told=told)
    else:
        world.expectation.is_not_lost(card)
    world.machine.move(card, Place.AWAY)
    world.falls_ill(world.pace.look)
    return f"card {card.index} is taken away"


async def bring_back(world: World, a: int, _b: int) -> str | None:
    card = _card(world, a, Place.LOST, Place.AWAY)
    if card is None:
        return None
    was = card.place
    if was is Place.LOST:
        world.expectation.is_not_lost(card)
    world.machine.move(card, Place.HERE)
    world.health.found_again(card)
    world.expectation.remember()
    world.takes(world.pace.look)
    return f"card {card.index} is back, which was {was.value}"


async def cut(world: World, a: int, b: int) -> str | None:
    """Another MIG layout; SIGHUP after it, or not."""
    card = _card(world, a, Place.HERE)
    if card is None or not _may_go(world, card):
        return None
    layout = LAYOUTS[b % len(LAYOUTS)]
    world.expectation.remember()
    world.health.cut(device.uuid for device in card.gpu.mig_devices)
    world.machine.cut(card, layout)
    world.expectation.remember()
    if (b // 8) % 2 and world.daemon.up:
        world.daemon.sighup()
    world.falls_ill(world.pace.look)
    return f"card {card.index} is cut into {layout}"


async def break_source(world: World, _a: int, _b: int) -> str | None:
    """Health cannot be watched any more."""
    if world.machine.broken:
        return None
    world.machine.broken = True
    world.health.source_broke()
    world.daemon.source_changes()
    world.falls_ill(world.pace.look)
    return "the source of health is broken"


async def mend_source(world: World, _a: int, _b: int) -> str | None:
    if not world.machine.broken:
        return None
    world.machine.broken = False
    world.health.source_works()
    world.daemon.source_changes()
    world.takes(world.pace.look)
    return "the source of health works again"
