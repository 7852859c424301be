"""What kubelet should have of each resource once all is quiet: a plain model of what is offered, held, gone and unfit.

A device is expected healthy if the configuration in force offers it of a card that is here, and nothing is known
against it. One that is not offered any more stays listed, unhealthy, while a pod holds it, or while its card is lost;
else it leaves within some time, and until then it may be listed or not.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tests.lifecycle.health import Health, Verdict
from tests.lifecycle.machine import Card, Machine, Place
from tests.lifecycle.settings import Setting

LEAVES = 80.0
"""Seconds within which a device that is gone and not held is not listed any more, once kubelet and daemon are at rest:
kubelet has been up for 30 s, the next list of what is held comes 30 s later at most, and no admission is expected."""

Ids = Mapping[str, frozenset[str]]
"""Device ids by resource."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Ids of one resource: those that must be there, and those that may be."""

    must: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()

    def allow(self, ids: frozenset[str]) -> bool:
        return self.must <= ids <= self.must | self.may


@dataclass(frozen=True, slots=True)
class Expected:
    """Of one resource: what is healthy, and what is listed in all."""

    healthy: Bounds = field(default_factory=Bounds)
    listed: Bounds = field(default_factory=Bounds)


@dataclass
class Expectation:
    """Told what happens; says what is to be seen. `setting` is the configuration in force.

    By resource and id: `known` are the cards of what this daemon may have listed, `seen` is what it has, `last_at` when
    something has happened for which a device that is gone may stay, and `lost` are devices of lost cards that stay.
    """

    machine: Machine
    health: Health
    clock: Callable[[], float]
    setting: Setting
    at_rest_since: float = 0.0
    known: dict[str, dict[str, Card]] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)
    last_at: dict[tuple[str, str], float] = field(default_factory=dict)
    lost: dict[str, set[str]] = field(default_factory=dict)
    _owner: dict[str, Card] = field(default_factory=dict)
    _former: list[tuple[Setting, float]] = field(default_factory=list)

    def owner(self, uuid: str) -> Card:
        """The card of a GPU's or MIG device's UUID, also of one that is gone."""
        return self._owner[uuid]

    def offered(self, *, lost_too: bool = False) -> dict[str, dict[str, str]]:
        """What the configuration makes of the cards that are here: ids with UUIDs, by resource."""
        places = {Place.HERE, Place.LOST} if lost_too else {Place.HERE}
        return self.setting.offered(card for card in self.machine.cards if card.place in places)

    def configure(self, setting: Setting, seen_by: float) -> None:
        """Another configuration, which the daemon has read by then; until then it may make the old one of anything."""
        self.remember()
        self._former = [(former, until) for former, until in self._former if until > self.clock()]
        self._former.append((self.setting, seen_by))
        self.setting = setting
        self.remember()

    def remember(self) -> None:
        """Takes note of what is offered now. To be called before and after each change."""
        for card in self.machine.cards:
            self._owner[card.uuid] = card
            self._owner.update(dict.fromkeys((device.uuid for device in card.gpu.mig_devices), card))
        now = self.clock()
        here = [card for card in self.machine.cards if card.here]
        for setting in (self.setting, *(former for former, until in self._former if until >= now)):
            for resource, ids in setting.offered(here).items():
                known = self.known.setdefault(resource, {})
                for id_, uuid in ids.items():
                    known[id_] = self._owner[uuid]
                    self.last_at[resource, id_] = now

    def disturbed(self) -> None:
        """Kubelet or the daemon is not at rest, or an admission begins."""
        self.at_rest_since = self.clock()

    def released(self, resource: str, ids: Iterable[str]) -> None:
        """A pod lets go of devices."""
        self.last_at.update({(resource, id_): self.clock() for id_ in ids})

    def daemon_ended(self) -> None:
        """What it knew is forgotten."""
        self.known.clear()
        self.seen.clear()
        self.last_at.clear()
        self.lost.clear()
        self._former.clear()
        self.health.forget()
        self.remember()

    def is_lost(self, card: Card) -> None:
        """A card that was listed, as all was quiet, is lost from now on."""
        uuids = {uuid for uuid, owner in self._owner.items() if owner is card}
        for resource, ids in self.offered(lost_too=True).items():
            self.lost.setdefault(resource, set()).update(id_ for id_, uuid in ids.items() if uuid in uuids)

    def is_not_lost(self, card: Card) -> None:
        """A lost card is back, or away."""
        now = self.clock()
        for resource, ids in self.lost.items():
            for id_ in [id_ for id_ in ids if self.known[resource].get(id_) is card]:
                ids.discard(id_)
                self.last_at[resource, id_] = now

    def saw(self, listed: Ids, *, quiet: bool) -> None:
        """What kubelet has listed by this daemon."""
        for resource, ids in listed.items():
            known = self.known.get(resource, {})
            self.seen.setdefault(resource, set()).update(ids & known.keys())
            if quiet:
                stays = {id_ for id_ in ids & known.keys() if known[id_].place is Place.LOST}
                self.lost.setdefault(resource, set()).update(stays)

    def expected(self, held: Ids) -> dict[str, Expected]:
        """What is to be seen of each resource that this daemon may have listed; `held` is what pods have."""
        offered, would_be = self.offered(), self.offered(lost_too=True)
        return {
            resource: Expected(
                self._healthy(offered.get(resource, {})),
                self._listed(resource, offered.get(resource, {}), would_be.get(resource, {}), held.get(resource)),
            )
            for resource in self.known
        }

    def _healthy(self, ids: Mapping[str, str]) -> Bounds:
        verdicts = {id_: self.health.verdict(uuid, self._owner[uuid]) for id_, uuid in ids.items()}
        return Bounds(
            frozenset(id_ for id_, verdict in verdicts.items() if verdict is Verdict.FIT),
            frozenset(id_ for id_, verdict in verdicts.items() if verdict is Verdict.EITHER),
        )

    def _listed(
        self, resource: str, offered: Mapping[str, str], would_be: Mapping[str, str], held: frozenset[str] | None
    ) -> Bounds:
        seen, lost = self.seen.get(resource, set()), self.lost.get(resource, set())
        must, may = set(offered), set()
        for id_, card in [*self.known[resource].items()]:
            if id_ in offered:
                continue
            if (id_ in (held or ()) and id_ in seen) or (id_ in lost and id_ in would_be):
                must.add(id_)
            elif self._may_stay(resource, id_, card, held or frozenset()):
                may.add(id_)
            else:
                self._forget(resource, id_)
        return Bounds(frozenset(must), frozenset(may))

    def _may_stay(self, resource: str, id_: str, card: Card, held: frozenset[str]) -> bool:
        if card.place is Place.LOST or id_ in held:
            return True
        return self.clock() <= max(self.last_at[resource, id_], self.at_rest_since) + LEAVES

    def _forget(self, resource: str, id_: str) -> None:
        del self.known[resource][id_]
        self.last_at.pop((resource, id_), None)
        self.seen.get(resource, set()).discard(id_)
