"""What the daemon knows at one moment, as it has it: what `plugin` passes, and everything shown is made of.

The daemon's own frozen values go in as they are, so that passing them costs nothing; what people and programs read is
made of them by `picture` and `gauges`. Both ask `tally` for the numbers, so that they cannot tell different ones.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from gpustow.config import LoadedConfig
from gpustow.hardware.node import Node
from gpustow.health.condition import Fitness
from gpustow.kubelet.podresources import HeldDevice
from gpustow.placement.policy import ALIGNED, Policy
from gpustow.resources.device import Resource


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the daemon must have to be ready. `reason` says why it has not; empty if it has."""

    name: str
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether it is as it should be."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class Ailment:
    """Why a GPU or MIG device is not given to pods. `since` is in seconds since 1970, None where that is not known."""

    reason: str
    since: float | None = None
    fitness: Fitness = Fitness.UNHEALTHY


@dataclass(frozen=True, slots=True)
class ServedFacts:
    """One resource, with the health that kubelet is told; where its plugin is, and why; kubelet's open streams."""

    resource: Resource
    policy: Policy
    state: str
    reason: str
    streams: int

    @property
    def policy_in_force(self) -> Policy:
        """What requests are placed by: whole GPUs by `aligned`, whatever was chosen."""
        return Policy(ALIGNED.name, rule=self.policy.rule) if self.resource.whole_gpus else self.policy


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything. `at` is in seconds since 1970; `loaded` and `node` are None before they have been read.

    `ailments` are by the UUID of a GPU or MIG device. `held` are the ids in use by the name of their resource, as far
    as is known: `is_listed` is whether kubelet's PodResources said so, else they are what the calls tell. `holders`
    are the containers of those that PodResources named, by resource and id.
    """

    at: float
    checks: tuple[Check, ...]
    loaded: LoadedConfig | None = None
    node: Node | None = None
    served: tuple[ServedFacts, ...] = ()
    ailments: Mapping[str, Ailment] = field(default_factory=dict)
    held: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    holders: Mapping[tuple[str, str], Sequence[HeldDevice]] = field(default_factory=dict)
    is_listed: bool = False

    @property
    def ready(self) -> bool:
        """Whether the devices of the node are in use as they should be."""
        return all(check.passed for check in self.checks)


CONFIGURATION_CHECK = "configuration"
NODE_CHECK = "node"
DEVICES_CHECK = "devices"
HEALTH_CHECK = "health-monitor"
PLUGIN_CHECK = "plugin:"
"""The names of the checks; that of a plugin is followed by the name of its resource."""


class StatusSource(Protocol):
    """Who knows. Asked in the thread of the event loop, at every scrape: it must be quick, and not raise."""

    def facts(self, now: float) -> Facts:
        """What is known; `now` is the time, in seconds since 1970."""
        ...
