"""What an event means for the devices of a node: how many of it make which of them unfit. Pure.

The rule of an XID is, first that says something: DP_ENABLE_HEALTHCHECKS (fatal), DP_DISABLE_HEALTHCHECKS (ignored), the
file's `health.xids`, the policy. `compatible` is v0.20.0: six XIDs, which applications cause, are ignored, all others
are fatal; ECC events are logged alone. `catalogue` follows the table of XIDs and asks the GPU after each XID what it
needs, because NVML gives no sub-codes and the driver knows best.

What is hit is what the event names: a GPU with all that is on it, or one MIG device where GPU instance (and compute
instance) are named. v0.20.0 takes an event that names the GPU instance alone for one about the whole GPU; here it is
about the devices of that instance. Under `catalogue` only faults that stay within an instance are about it: those of
applications and engines, echoes, and contained memory errors (94).

Limits: an instance that is not on the node as it was last read is nobody's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpustow.config import Config, MigStrategy
from gpustow.config.faultrule import FATAL, IGNORE, FaultRule
from gpustow.config.health import XidPolicy
from gpustow.config.xidswitches import XidSwitches
from gpustow.hardware.node import Gpu, Node
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction
from gpustow.health.target import Target
from gpustow.health.xids import CONTAINED_ERROR, known_xids

APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})
"""The XIDs that v0.20.0 ignores by default."""

STATES = frozenset(
    {
        EventKind.ROW_REMAP_PENDING,
        EventKind.ROW_REMAP_FAILURE,
        EventKind.PAGE_RETIREMENT_PENDING,
        EventKind.SRAM_THRESHOLD,
        EventKind.RECOVERY_ACTION,
    }
)
"""The events that a GPU is asked for, rather than that it sends."""

_STAYS_WITHIN = frozenset({"application", "engine", "echo"})
"""The classes of XIDs that do not reach beyond the MIG instance that they name."""

_ALWAYS_FATAL = frozenset({EventKind.LOST, EventKind.SOURCE_FAILED})
_HARMLESS_ACTIONS = frozenset({RecoveryAction.NONE, RecoveryAction.RECOVER_IMEX_DOMAIN})
"""Actions that leave the GPU itself fit: an IMEX domain concerns those who use the fabric between nodes."""

_DEFAULTS: Mapping[XidPolicy, frozenset[EventKind]] = {
    XidPolicy.COMPATIBLE: frozenset({EventKind.UNWATCHED}),
    XidPolicy.CATALOGUE: frozenset(
        {
            EventKind.UNWATCHED,
            EventKind.ECC_DOUBLE,
            EventKind.ROW_REMAP_FAILURE,
            EventKind.SRAM_THRESHOLD,
            EventKind.RECOVERY_ACTION,
        }
    ),
}
"""The events that are fatal where the file says nothing; the others are ignored."""


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """The rules. `by_instance` is whether devices are MIG devices, so that one of them can be hit alone."""

    xid_policy: XidPolicy = XidPolicy.COMPATIBLE
    xids: Mapping[int, FaultRule] = field(default_factory=dict)
    unknown_xids: FaultRule = FATAL
    events: Mapping[EventKind, FaultRule] = field(default_factory=dict)
    switches: XidSwitches = field(default_factory=XidSwitches)
    by_instance: bool = True

    @classmethod
    def of(cls, config: Config) -> "HealthPolicy":
        """The policy that the configuration asks for."""
        return cls(
            xid_policy=config.health.xid_policy,
            xids=config.health.xids,
            unknown_xids=config.health.unknown_xids,
            events={EventKind(key): rule for key, rule in config.health.events.items()},
            switches=config.xid_switches,
            by_instance=config.mig_strategy is not MigStrategy.NONE,
        )

    @property
    def off(self) -> bool:
        """Whether nothing is to be watched at all."""
        return self.switches.all_off

    @property
    def asks(self) -> bool:
        """Whether GPUs are to be asked for their states, since one of them would make a device unfit."""
        return any(self._event_rule(kind) != IGNORE for kind in STATES)

    def rule(self, event: HealthEvent) -> FaultRule:
        """How often this may happen."""
        if event.kind is EventKind.XID:
            return self.xid_rule(event.xid or 0)
        if event.kind is EventKind.RECOVERY_ACTION and event.recovery_action in _HARMLESS_ACTIONS:
            return IGNORE
        return self._event_rule(event.kind)

    def xid_rule(self, xid: int) -> FaultRule:
        """How often an XID may come."""
        if xid in self.switches.enabled:
            return FATAL
        if xid in self.switches.disabled:
            return IGNORE
        if xid in self.xids:
            return self.xids[xid]
        if xid not in known_xids():
            return self.unknown_xids
        if self.xid_policy is XidPolicy.COMPATIBLE:
            return IGNORE if xid in APPLICATION_XIDS else FATAL
        return known_xids()[xid].rule

    def hit(self, event: HealthEvent, node: Node) -> tuple[Target, ...]:
        """What the event is about, whatever its rule; nothing if that is not on the node, or not ours.

        A GPU stands for all that is on it.
        """
        if event.gpu_uuid is None:
            return tuple(map(Target.of_gpu, node.gpus))
        gpu = next((gpu for gpu in node.gpus if gpu.uuid == event.gpu_uuid), None)
        if gpu is None:
            return ()
        if event.gpu_instance is None or not gpu.mig_enabled or not self._is_about_an_instance(event):
            return (Target.of_gpu(gpu),)
        return _devices_of(gpu, event.gpu_instance, event.compute_instance)

    def _event_rule(self, kind: EventKind) -> FaultRule:
        if kind in _ALWAYS_FATAL:
            return FATAL
        return self.events.get(kind, FATAL if kind in _DEFAULTS[self.xid_policy] else IGNORE)

    def _is_about_an_instance(self, event: HealthEvent) -> bool:
        if not self.by_instance or event.kind in _ALWAYS_FATAL:
            return False
        if self.xid_policy is XidPolicy.COMPATIBLE:
            return True
        if event.xid is None or event.xid not in known_xids():
            return False
        return event.xid == CONTAINED_ERROR or known_xids()[event.xid].kind in _STAYS_WITHIN


def _devices_of(gpu: Gpu, gpu_instance: int, compute_instance: int | None) -> tuple[Target, ...]:
    return tuple(
        Target.of_mig_device(gpu, device)
        for device in gpu.mig_devices
        if device.gpu_instance == gpu_instance and compute_instance in {None, device.compute_instance}
    )
