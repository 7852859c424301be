"""The policy of one resource: that of all shared devices, unless the section `placement` names the resource."""

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
