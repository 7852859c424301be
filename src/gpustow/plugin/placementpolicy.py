"""The policy of one resource: that of all shared devices, unless the section `placement` names the resource."""

from collections.abc import Sequence

from gpustow.config import Config
from gpustow.placement import Policy
from gpustow.placement.policy import Rule


def policy_of(resource: str, config: Config) -> Policy:
    """How the devices of the resource with this full name are placed."""
    entry = next((entry for entry in config.placement if entry.name == resource), None)
    if entry is None:
        return Policy.named(config.shared_devices_allocation_policy)
    rule = Rule.DISTINCT if entry.distinct else Rule.TOGETHER if entry.together else None
    return Policy.named(entry.policy or config.shared_devices_allocation_policy, cap=entry.cap, rule=rule)


def unmatched(resources: Sequence[str], config: Config) -> tuple[str, ...]:
    """A note for each resource that the section names and this node does not have; one file serves many nodes."""
    known = ", ".join(resources)
    return tuple(
        f"placement names {entry.name}, which this node does not have; it has {known}"
        for entry in config.placement
        if entry.name not in resources
    )
