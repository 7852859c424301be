"""What the embedded kubelet has done, for a test to look at: the calls it made, and what it decided and why.

Each list keeps its last 10,000 entries (1,000 of the preferences, which are long), so that a long run does not grow.
"""

from collections import deque
from dataclasses import dataclass, field

from gpustow.simulation.kubelet.endpoint import PluginOptions
from gpustow.simulation.kubelet.topology.hints import Hint, Hints

LENGTH = 10_000
PREFERENCES_LENGTH = 1_000


@dataclass(frozen=True, slots=True)
class Registered:
    """One call of Register: what the plugin sent, and the text it was refused with (None: it was taken)."""

    resource: str
    endpoint: str
    version: str
    options: PluginOptions
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class PreferenceAsked:
    """One call of GetPreferredAllocation; ids sorted."""

    resource: str
    available: tuple[str, ...]
    must_include: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class AllocateCalled:
    """One call of Allocate; ids sorted."""

    pod_uid: str
    container: str
    resource: str
    device_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopologyDecided:
    """One merge of the Topology Manager: for a container, or for the whole pod (None).

    `hints` has one map a provider, the device manager's first.
    """

    pod_uid: str
    container: str | None
    hints: tuple[Hints, ...]
    merged: Hint
    admitted: bool


@dataclass(slots=True)
class Journal:
    """The last entries of each kind, oldest first."""

    registrations: deque[Registered] = field(default_factory=lambda: deque(maxlen=LENGTH))
    preferences: deque[PreferenceAsked] = field(default_factory=lambda: deque(maxlen=PREFERENCES_LENGTH))
    allocations: deque[AllocateCalled] = field(default_factory=lambda: deque(maxlen=LENGTH))
    decisions: deque[TopologyDecided] = field(default_factory=lambda: deque(maxlen=LENGTH))

    def fate_of_last_registration(self, resource: str) -> str:
        """What became of it, in words that go on from "the last registration"."""
        for call in reversed(self.registrations):
            if call.resource == resource:
                return "was taken" if call.refusal is None else f"was refused: {call.refusal}"
        return "never came"

    def clear(self) -> None:
        """Forgets everything."""
        for entries in (self.registrations, self.preferences, self.allocations, self.decisions):
            entries.clear()
