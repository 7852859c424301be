"""The health of a whole node: events and proofs go in, conditions and what is to be said come out. Pure but for memory.

A fault of a GPU makes everything on it unfit, also what is created there later. A fault of a MIG device goes with the
device. A GPU that leaves the node and comes back is what it was. A monitor that does not work makes everything unfit,
since nobody would see a fault (k8s-device-plugin#1640); one that has nothing to tell makes nothing unfit.

Limits: one event is judged by itself; that 48 and 95 come from one fault is not seen, and need not be.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpustow.config.faultrule import FaultRule
from gpustow.config.health import RecoveryConfig
from gpustow.hardware.node import Node, Platform
from gpustow.health.condition import Condition, Transition, found_again, proven, struck, transition
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof
from gpustow.health.faultcount import FaultCount
from gpustow.health.policy import STATES, HealthPolicy
from gpustow.health.target import MONITOR, Scope, Target
from gpustow.health.wording import place_of, reason_of

_WORKS = RecoveryProof(readable=True, uuid_matches=True)
_ASKED = STATES | {EventKind.UNWATCHED}
_LASTING = _ASKED | {EventKind.LOST, EventKind.UNSUPPORTED}
"""Events that come again for as long as they hold: told once."""

_NOTHING = Node("", Platform.NVML, ())


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the node's devices are.

    `unfit` has a reason for the UUID of each GPU and MIG device that must not be given to pods; everything is there
    while the monitor does not work. `monitor` is the monitor's own condition, `known` those of all that ever was unfit.
    """

    unfit: Mapping[str, str] = field(default_factory=dict)
    monitor: Condition = field(default_factory=lambda: Condition(MONITOR))
    known: tuple[Condition, ...] = ()

    def reason(self, uuid: str) -> str | None:
        """Why the GPU or MIG device is not to be given to pods; None if it is. Any is not while nothing is watched."""
        return self.unfit.get(uuid) or (None if self.monitor.fit else self.monitor.reason)


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of an event: its rule, what it is about, what changed, and a sentence for the log.

    `again` is whether the same lasting thing was told before.
    """

    event: HealthEvent
    rule: FaultRule
    targets: tuple[Target, ...]
    transitions: tuple[Transition, ...]
    sentence: str
    again: bool


class NodeHealth:
    """Keeps the conditions of a node. Nothing is known of it before the first `update`."""

    def __init__(self, policy: HealthPolicy, recovery: RecoveryConfig) -> None:
        self.policy = policy
        self.recovery = recovery
        self._node = _NOTHING
        self._conditions: dict[str, Condition] = {}
        self._monitor = Condition(MONITOR)
        self._count = FaultCount()
        self._told: set[tuple[str | None, EventKind, RecoveryAction | None]] = set()

    def update(self, node: Node) -> None:
        """The node as it was read again. MIG devices that are gone are forgotten, GPUs that are gone are not."""
        self._node = node
        present = {gpu.uuid for gpu in node.gpus}
        named = _targets(node)
        for uuid, condition in list(self._conditions.items()):
            target = condition.target
            if target.gpu_uuid not in present:
                continue
            if uuid not in named:
                del self._conditions[uuid]
                self._count.forget(uuid)
            else:
                self._conditions[uuid] = replace(found_again(condition), target=named[uuid])
                self._told.discard((target.gpu_uuid, EventKind.LOST, None))

    def take(self, event: HealthEvent, now: float) -> Taken:
        """An event of a source that works."""
        rule = self.policy.rule(event)
        targets = self.policy.hit(event, self._node)
        told = (event.gpu_uuid, event.kind, event.recovery_action)
        again = told in self._told
        if event.kind in _LASTING:
            self._told.add(told)
        transitions = []
        counts = []
        for target in targets if rule.faults else ():
            key = (target.uuid, event.kind, event.xid)
            count = self._count.add(key, rule, now) if rule.counts else 1
            counts.append(count)
            if count >= rule.faults:
                before = self._conditions.get(target.uuid, Condition(target))
                transitions.append(self._move(before, struck(before, event, now, self.recovery), now))
        return Taken(
            event=event,
            rule=rule,
            targets=targets,
            transitions=tuple(filter(None, transitions)),
            sentence=f"{place_of(event, self._node)}: {reason_of(event)}. {self._reach(event, targets)}"
            f"{_meaning(rule, targets, counts)}",
            again=again,
        )

    def ask(self, gpu_uuid: str, proof: RecoveryProof, now: float) -> tuple[Taken, ...]:
        """What a GPU says of itself, as events; only states that hold are."""
        events = list(_events(gpu_uuid, proof))
        holding = {(event.gpu_uuid, event.kind, event.recovery_action) for event in events}
        self._told = {told for told in self._told if told[0] != gpu_uuid or told[1] not in STATES or told in holding}
        return tuple(self.take(event, now) for event in events)

    def prove(self, gpu_uuid: str, proof: RecoveryProof, now: float) -> tuple[Transition, ...]:
        """What a GPU says when it is asked whether it is well; for all that is unfit on it."""
        transitions = []
        for uuid, before in list(self._conditions.items()):
            if before.target.gpu_uuid == gpu_uuid:
                after = proven(before, proof, now, self.recovery)
                transitions.append(self._move(before, after, now))
                if after.fit and not before.fit:
                    self._count.forget(uuid)
        return tuple(filter(None, transitions))

    def monitor_failed(self, event: HealthEvent, now: float) -> Transition | None:
        """Nothing is watched."""
        before = self._monitor
        self._monitor = struck(before, event, now, self.recovery)
        return transition(before, self._monitor, now)

    def monitor_works(self, now: float) -> Transition | None:
        """GPUs are watched. It proves itself by working, whatever the configuration says of the recovery of devices."""
        before = self._monitor
        recovery = RecoveryConfig(hold_time=self.recovery.hold_time, unknown_is_proof=True, flap_hold_time=0.0)
        self._monitor = proven(before, _WORKS, now, recovery)
        return transition(before, self._monitor, now)

    @property
    def to_ask(self) -> tuple[str, ...]:
        """The UUIDs of the GPUs of the node that are to be asked whether they are well."""
        unfit = {
            condition.target.gpu_uuid
            for condition in self._conditions.values()
            if not condition.fit and not condition.lost
        }
        wanted = unfit if self.recovery.enabled else set()
        return tuple(gpu.uuid for gpu in self._node.gpus if gpu.uuid in wanted)

    @property
    def conditions(self) -> Conditions:
        """How everything is."""
        unfit = {} if self._monitor.fit else self._everything(self._monitor.reason)
        unfit |= {uuid: each.reason for uuid, each in self._conditions.items() if not each.fit}
        for gpu in self._node.gpus:
            if (own := self._conditions.get(gpu.uuid)) is not None and not own.fit:
                unfit |= {device.uuid: own.reason for device in gpu.mig_devices}
        return Conditions(unfit, self._monitor, tuple(self._conditions.values()))

    def _reach(self, event: HealthEvent, targets: tuple[Target, ...]) -> str:
        """Says so where an event names a GPU instance and is nevertheless about the whole GPU, for what it is."""
        by_instance = self.policy.by_instance and event.gpu_instance is not None
        if not by_instance or not any(target.scope is Scope.GPU and self._is_cut(target.uuid) for target in targets):
            return ""
        what = "It" if event.xid is None else f"XID {event.xid}"
        return f"{what} is about the whole GPU. "

    def _is_cut(self, uuid: str) -> bool:
        return any(gpu.uuid == uuid and gpu.mig_enabled for gpu in self._node.gpus)

    def _everything(self, reason: str) -> dict[str, str]:
        return {
            uuid: reason for gpu in self._node.gpus for uuid in (gpu.uuid, *(device.uuid for device in gpu.mig_devices))
        }

    def _move(self, before: Condition, after: Condition, now: float) -> Transition | None:
        self._conditions[after.target.uuid] = after
        return transition(before, after, now, self.recovery)


def _targets(node: Node) -> dict[str, Target]:
    """All GPUs and MIG devices, by UUID."""
    return {
        target.uuid: target
        for gpu in node.gpus
        for target in (Target.of_gpu(gpu), *(Target.of_mig_device(gpu, device) for device in gpu.mig_devices))
    }


def _events(gpu_uuid: str, proof: RecoveryProof) -> list[HealthEvent]:
    if not proof.readable or not proof.uuid_matches:
        what = proof.detail or ("another GPU answers to its UUID" if proof.readable else "it cannot be read")
        return [HealthEvent(EventKind.UNWATCHED, gpu_uuid, detail=what)]
    events = []
    if proof.recovery_action:
        events.append(HealthEvent(EventKind.RECOVERY_ACTION, gpu_uuid, recovery_action=proof.recovery_action))
    states = (
        (EventKind.ROW_REMAP_FAILURE, proof.row_remap_failure),
        (EventKind.ROW_REMAP_PENDING, proof.row_remap_pending),
        (EventKind.PAGE_RETIREMENT_PENDING, proof.retired_pages_pending),
        (EventKind.SRAM_THRESHOLD, proof.sram_threshold_exceeded),
    )
    return events + [HealthEvent(kind, gpu_uuid) for kind, holds in states if holds]


def _meaning(rule: FaultRule, targets: tuple[Target, ...], counts: list[int]) -> str:
    if not targets:
        return "It is about nothing that is served here"
    if not rule.faults:
        return "It is ignored"
    if rule.counts:
        return f"It counts: {max(counts)} of {rule}"
    return "It is fatal"
