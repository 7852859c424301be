"""From what the daemon knows to the status of the node. Pure.

A GPU is in the picture if the last reading found it, or if devices of it are still listed: one that is lost must be
seen where it was. GPUs that the configuration leaves alone are there, too, and not served.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from gpustow.config import LoadedConfig
from gpustow.config.effective import effective
from gpustow.hardware.links import UNKNOWN_LINK
from gpustow.hardware.node import Gpu
from gpustow.health.condition import Fitness
from gpustow.kubelet.podresources import HeldDevice
from gpustow.resources.device import Device
from gpustow.telemetry.decisions import DecisionStatus
from gpustow.telemetry.facts import Facts, ServedFacts
from gpustow.telemetry.nodestatus import (
    CheckStatus,
    ConfigStatus,
    DeviceStatus,
    GpuStatus,
    HealthStatus,
    HeldStatus,
    HolderStatus,
    LinkStatus,
    NodeStatus,
    ReadinessStatus,
    ResourceStatus,
    SettingStatus,
)
from gpustow.telemetry.tally import CardPart, Tally
from gpustow.version import __version__

_WELL = HealthStatus(Fitness.HEALTHY.value, "", None)


def node_status(facts: Facts, decisions: Iterable[DecisionStatus] = ()) -> NodeStatus:
    """The status, with the decisions as they are passed."""
    tally = Tally.of(facts)
    node = facts.node
    return NodeStatus(
        at=facts.at,
        version=__version__,
        node="" if node is None else node.name,
        platform=None if node is None else node.platform.value,
        driver_version="" if node is None else node.driver_version,
        cuda_version="" if node is None else node.cuda_version,
        config=None if facts.loaded is None else _config(facts.loaded),
        readiness=ReadinessStatus(
            facts.ready, tuple(CheckStatus(check.name, check.passed, check.reason) for check in facts.checks)
        ),
        use_is_listed=facts.is_listed,
        resources=tuple(_resource(served, tally) for served in facts.served),
        gpus=_Cards.of(facts, tally).gpus(),
        wholly_free_gpus=tally.wholly_free(),
        notes=() if node is None else node.notes,
        decisions=tuple(decisions),
    )


def _config(loaded: LoadedConfig) -> ConfigStatus:
    return ConfigStatus(
        file=None if loaded.file is None else loaded.file.path,
        sha256=None if loaded.file is None else loaded.file.sha256,
        warnings=loaded.warnings,
        settings=tuple(SettingStatus(each.name, each.value, each.origin.value) for each in effective(loaded)),
    )


def _resource(served: ServedFacts, tally: Tally) -> ResourceStatus:
    slots, policy = tally.of_resource(served.resource.name), served.policy_in_force
    return ResourceStatus(
        name=served.resource.name,
        sharing=served.resource.sharing.value,
        policy=policy.name.value,
        cap=policy.cap,
        rule=None if policy.rule is None else policy.rule.value,
        state=served.state,
        reason=served.reason,
        streams=served.streams,
        devices=slots.total,
        healthy=slots.healthy,
        used=slots.used,
        free=slots.free,
        unhealthy=slots.unhealthy,
    )


def _holder(device: HeldDevice) -> HolderStatus:
    return HolderStatus(device.namespace, device.pod, device.container)


@dataclass(frozen=True, slots=True)
class _Cards:
    """The GPUs, by what is known of each from its index on."""

    facts: Facts
    found: Mapping[int, Gpu]
    parts: Mapping[int, list[CardPart]]
    shares: Mapping[int, Fraction]
    free: frozenset[int]

    @classmethod
    def of(cls, facts: Facts, tally: Tally) -> "_Cards":
        parts: dict[int, list[CardPart]] = {}
        for part in tally.parts:
            parts.setdefault(part.device.gpu_index, []).append(part)
        gpus = () if facts.node is None else facts.node.gpus
        return cls(facts, {gpu.index: gpu for gpu in gpus}, parts, tally.used_shares(), frozenset(tally.wholly_free()))

    def gpus(self) -> tuple[GpuStatus, ...]:
        unreadable = () if self.facts.node is None else self.facts.node.unreadable
        links = self._links()
        return tuple(
            self._gpu(index, links.get(index, ())) for index in sorted({*self.found, *self.parts, *unreadable})
        )

    def _gpu(self, index: int, links: tuple[LinkStatus, ...]) -> GpuStatus:
        gpu = self.found.get(index)
        parts = self.parts.get(index, [])
        uuid = gpu.uuid if gpu is not None else next((p.device.uuid for p in parts if p.device.mig is None), "")
        return GpuStatus(
            index=index,
            uuid=uuid,
            found=gpu is not None,
            served=bool(parts),
            model="" if gpu is None else gpu.model,
            pci_bus_id="" if gpu is None else gpu.pci_bus_id,
            numa_node=gpu.numa_node if gpu is not None else next((p.device.numa_node for p in parts), None),
            memory_bytes=None if gpu is None else gpu.memory_bytes,
            memory_slices=None if gpu is None else gpu.memory_slices,
            mig_enabled=gpu.mig_enabled if gpu is not None else any(part.device.mig is not None for part in parts),
            health=self._gpu_health(uuid, parts, found=gpu is not None),
            links=links,
            used_share=float(self.shares.get(index, 0)),
            wholly_free=index in self.free,
            devices=tuple(self._device(part, gpu) for part in parts),
        )

    def _device(self, part: CardPart, gpu: Gpu | None) -> DeviceStatus:
        device, mig = part.device, part.device.mig
        return DeviceStatus(
            resource=part.served.resource.name,
            uuid=device.uuid,
            index=device.index,
            profile=None if mig is None else mig.profile.name,
            start=None if mig is None else mig.start,
            memory_bytes=mig.memory_bytes if mig is not None else None if gpu is None else gpu.memory_bytes,
            health=self._health(device.uuid, is_fit=part.slots.healthy > 0),
            slots=part.slots.total,
            used=part.slots.used,
            free=part.slots.free,
            unhealthy=part.slots.unhealthy,
            held=tuple(self._held(part.served.resource.name, each) for each in part.held),
        )

    def _held(self, resource: str, device: Device) -> HeldStatus:
        holders = self.facts.holders.get((resource, device.id), ())
        return HeldStatus(device.id, device.replica, tuple([_holder(each) for each in holders]))

    def _gpu_health(self, uuid: str, parts: list[CardPart], *, found: bool) -> HealthStatus:
        """The GPU's own health; that of a MIG device makes no GPU unhealthy."""
        healthy = any(part.slots.healthy for part in parts) or (found and not parts)
        return self._health(uuid, is_fit=healthy or (found and any(part.device.mig is not None for part in parts)))

    def _health(self, uuid: str, *, is_fit: bool) -> HealthStatus:
        ailment = self.facts.ailments.get(uuid)
        if ailment is not None:
            return HealthStatus(ailment.fitness.value, ailment.reason, ailment.since)
        return _WELL if is_fit else HealthStatus(Fitness.UNHEALTHY.value, "it is not found any more", None)

    def _links(self) -> dict[int, tuple[LinkStatus, ...]]:
        """The links of each GPU that was found to all others; of two ends that differ the lower one."""
        table = {} if self.facts.node is None else self.facts.node.links.table()
        return {
            one: tuple(
                LinkStatus(other, link.label, link.score)
                for other in sorted(self.found)
                if other != one
                for link in [
                    min(
                        (table.get(pair, UNKNOWN_LINK) for pair in ((one, other), (other, one))),
                        key=lambda link: link.score,
                    )
                ]
            )
            for one in self.found
        }
