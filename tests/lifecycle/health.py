"""What is to be thought of the health of cards: a plain account of faults, holds and proofs.

It does not follow the monitor step by step. It says from when to when a device cannot be healthy, and from when on it
must be; between these either is right.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from tests.lifecycle.machine import Card, Machine
from tests.lifecycle.settings import HealthTimes

_WAIT = 2.5
"""Seconds that one wait of the monitor may take, with what comes between two."""

_RETRY = 40.0
"""Seconds within which a source that works again is tried."""


class Verdict(Enum):
    FIT = "fit"
    UNFIT = "unfit"
    EITHER = "either"


@dataclass
class Fault:
    """A card or MIG device that has been unfit. Times are those of the clock.

    It became so at `at`, surely if `certain`; before `floor` it cannot be fit again. `well` is when the card had all
    that it needs to prove that it is well; `found` whether a reading has to find it first. It is `stuck` if it has
    been surely unfit since before its card waits for a repair.
    """

    card: Card
    at: float
    floor: float
    well: float
    certain: bool = True
    found: bool = False
    stuck: bool = False


class Health:
    """Told what happens; asked for verdicts. Kubelet hears of a fault within `notice` seconds; `clock` gives them."""

    def __init__(self, machine: Machine, times: HealthTimes, notice: float, clock: Callable[[], float]) -> None:
        self._machine = machine
        self._times = times
        self._notice = notice
        self._clock = clock
        self._faults: dict[str, Fault] = {}
        self._broken_at: float | None = None
        self._mended_at: float | None = None
        self._monitor_floor = 0.0

    def forget(self) -> None:
        """The daemon has ended, and with it what it knew."""
        self._faults.clear()
        self._mended_at = None
        self._monitor_floor = 0.0
        self._broken_at = self._clock() if self._machine.broken else None

    def strike(self, uuid: str, card: Card, *, certain: bool = True, found: bool = False) -> None:
        """A fault of the card or MIG device."""
        now = self._clock()
        before = self._faults.get(uuid)
        certain = certain or (before is not None and before.certain)
        found = found or (before is not None and before.found)
        self._faults[uuid] = Fault(card, now, now + self._times.hold, now, certain, found, stuck=card.repair)

    def well_again(self, card: Card) -> None:
        """The card is back, or repaired, or ours again: from now on it can prove that it is well."""
        now = self._clock()
        for fault in self._of(card):
            fault.well = now

    def lost(self, card: Card, *, told: bool) -> None:
        self.strike(card.uuid, card, certain=told, found=True)

    def found_again(self, card: Card) -> None:
        self.well_again(card)
        fault = self._faults.get(card.uuid)
        if fault is not None and fault.found:
            # Whether it is held depends on who saw first that it was lost: a reading, or the source of events.
            fault.certain = False
            fault.floor = self._clock() + self._times.hold

    def needs_repair(self, card: Card) -> None:
        """A repair is pending from now on."""
        for fault in self._of(card):
            fault.stuck = self._clock() < fault.floor

    def repaired(self, card: Card, since: float) -> None:
        """A repair that was pending since then is done. If the card was asked meanwhile, its hold begins anew."""
        self.well_again(card)
        for fault in self._of(card):
            fault.stuck = False
            if fault.certain and max(fault.at, since) + self._times.check + _WAIT < self._clock() < fault.floor:
                fault.floor = self._clock() + self._times.hold

    def cut(self, uuids: Iterable[str]) -> None:
        """MIG devices that are gone, and their faults with them."""
        for uuid in uuids:
            self._faults.pop(uuid, None)

    def source_broke(self) -> None:
        self._broken_at = self._clock()

    def source_works(self) -> None:
        if self.monitor() is Verdict.UNFIT:
            self._monitor_floor = self._clock() + self._times.hold
        self._broken_at, self._mended_at = None, self._clock()
        for fault in self._faults.values():
            fault.well = self._clock()

    def _of(self, card: Card) -> Iterable[Fault]:
        return [fault for fault in self._faults.values() if fault.card is card]

    def monitor(self) -> Verdict:
        """Whether health is watched."""
        now = self._clock()
        if self._broken_at is not None:
            return Verdict.UNFIT if now > self._broken_at + self._notice + _WAIT else Verdict.EITHER
        if self._mended_at is None:
            return Verdict.FIT
        if now < self._monitor_floor:
            return Verdict.UNFIT
        if now > self._mended_at + _RETRY + self._times.hold + _WAIT:
            self._mended_at = None
            return Verdict.FIT
        return Verdict.EITHER

    def verdict(self, uuid: str, card: Card) -> Verdict:
        """On a device by the UUID of its card or MIG device."""
        each = {self._one(key) for key in {uuid, card.uuid}} | {self.monitor()}
        if Verdict.UNFIT in each:
            return Verdict.UNFIT
        return Verdict.EITHER if Verdict.EITHER in each else Verdict.FIT

    def surely_unfit_since(self, uuid: str, card: Card) -> float:
        """Since when kubelet must know that a device is unfit; infinity if it need not."""
        if self.verdict(uuid, card) is not Verdict.UNFIT:
            return math.inf
        faults = [self._faults[key].at for key in (uuid, card.uuid) if self._one(key) is Verdict.UNFIT]
        return max(faults, default=self._broken_at or 0.0) + self._notice + _WAIT

    def _one(self, uuid: str) -> Verdict:
        fault = self._faults.get(uuid)
        if fault is None:
            return Verdict.FIT
        now, times, card = self._clock(), self._times, fault.card
        if now < fault.at + self._notice:
            return Verdict.EITHER
        if now < fault.floor or (fault.stuck and card.repair):
            return Verdict.UNFIT if fault.certain else Verdict.EITHER
        if card.repair or not card.here or self._broken_at is not None:
            return Verdict.EITHER
        reading = times.rescan + _WAIT if fault.found else 0
        ceiling = max(fault.at, fault.well) + reading + 2 * (times.check + _WAIT) + times.hold + self._notice
        if now <= ceiling:
            return Verdict.EITHER
        del self._faults[uuid]
        return Verdict.FIT
