"""The configurations of a walk: the file, and in plain words what it offers of which cards."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.lifecycle.machine import SMALL, Card

GPU = "nvidia.com/gpu"


def mig_resource(profile: str) -> str:
    return f"nvidia.com/mig-{profile}"


@dataclass(frozen=True, slots=True)
class HealthTimes:
    """Seconds of the section `health`: between two looks at unfit GPUs, of being held, between two readings."""

    check: int = 5
    hold: int = 10
    rescan: int = 20


@dataclass(frozen=True, slots=True)
class Setting:
    """A configuration. `replicas` are of GPUs, `small_replicas` of the small MIG devices; 1: not shared.

    `by_mig` is whether MIG devices are looked at; a file that is `bad` is refused.
    """

    name: str
    policy: str = "distributed"
    by_mig: bool = True
    replicas: int = 1
    rename: str = ""
    small_replicas: int = 1
    exclude: frozenset[int] = frozenset()
    bad: bool = False

    def text(self, times: HealthTimes) -> str:
        shared = []
        if self.replicas > 1:
            rename = f", rename: {self.rename}" if self.rename else ""
            shared.append(f"{{name: {GPU}, replicas: {self.replicas}{rename}}}")
        if self.small_replicas > 1:
            shared.append(f"{{name: {mig_resource(SMALL)}, replicas: {self.small_replicas}}}")
        recovery = f"{{holdTime: {times.hold}s, flapCount: 1000, flapWindow: 1s}}"
        lines = [
            "version: v1",
            f"flags: {{migStrategy: {'mixed' if self.by_mig else 'none'}, failOnInitError: false,",
            f"  plugin: {{sharedDevicesAllocationPolicy: {'no-such-policy' if self.bad else self.policy}}}}}",
            f"health: {{checkInterval: {times.check}s, rescanInterval: {times.rescan}s, recovery: {recovery}}}",
        ]
        if shared:
            lines.append(f"sharing: {{timeSlicing: {{resources: [{', '.join(shared)}]}}}}")
        if self.exclude:
            lines.append(f"gpus: {{exclude: {sorted(map(str, self.exclude))}}}")
        return "\n".join(lines) + "\n"

    def offered(self, cards: Iterable[Card]) -> dict[str, dict[str, str]]:
        """By resource the ids of the devices of these cards, each with the UUID of its GPU or MIG device."""
        offered: dict[str, dict[str, str]] = {}
        for card in cards:
            if card.index not in self.exclude:
                for resource, ids in self._of(card).items():
                    offered.setdefault(resource, {}).update(ids)
        return offered

    def _of(self, card: Card) -> Mapping[str, Mapping[str, str]]:
        if not (self.by_mig and card.gpu.mig_enabled):
            return {self.rename or GPU: _ids(card.uuid, self.replicas)}
        found: dict[str, dict[str, str]] = {}
        for device in card.gpu.mig_devices:
            profile = device.profile.name
            replicas = self.small_replicas if profile == SMALL else 1
            found.setdefault(mig_resource(profile), {}).update(_ids(device.uuid, replicas))
        return found


def _ids(uuid: str, replicas: int) -> dict[str, str]:
    return {uuid: uuid} if replicas == 1 else {f"{uuid}::{number}": uuid for number in range(replicas)}


SETTINGS = (
    Setting("plain"),
    Setting("packed", policy="packed"),
    Setting("shared", replicas=3),
    Setting("shared more", replicas=4, policy="packed"),
    Setting("shared under another name", replicas=2, rename="nvidia.com/gpu.shared"),
    Setting("small MIG devices shared", small_replicas=2, policy="spread"),
    Setting("without card 1", exclude=frozenset({1})),
    Setting("all whole", by_mig=False),
)
BAD = Setting("bad", bad=True)
