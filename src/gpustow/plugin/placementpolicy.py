"""The policy of one resource: that of all shared devices, unless the section `placement` names the resource."""

from collections.abc import Sequence

from gpustow.config import Config
from gpustow.config.placement import ResourcePlacement
from gpustow.placement import Policy
from gpustow.placement.policy import Rule
from gpustow.resources.device import Resource


def policy_of(resource: str, config: Config) -> Policy:
    """How the devices of the resource with this full name are placed."""
    entry = next((entry for entry in config.placement if entry.name == resource), None)
    if entry is None:
        return Policy.named(config.shared_devices_allocation_policy)
    rule = Rule.DISTINCT if entry.distinct else Rule.TOGETHER if entry.together else None
    return Policy.named(entry.policy or config.shared_devices_allocation_policy, cap=entry.cap, rule=rule)


def placement_notes(resources: Sequence[Resource], config: Config) -> tuple[str, ...]:
    """What the operator should know about the section `placement`, a note for each entry that does less than it says.

    An entry may name a resource that this node does not have, since one file serves many kinds of node; and a policy or
    cap for whole GPUs has no effect, since `aligned` places those.
    """
    by_name = {resource.name: resource for resource in resources}
    return tuple(
        note for entry in config.placement if (note := _note(entry, by_name.get(entry.name), ", ".join(by_name)))
    )


def _note(entry: ResourcePlacement, resource: Resource | None, known: str) -> str | None:
    if resource is None:
        return f"placement names {entry.name}, which this node does not have; it has {known}"
    if resource.whole_gpus and entry.policy is not None:
        return f"placement names a policy for {entry.name}, but whole GPUs are always placed by aligned"
    if resource.whole_gpus and entry.together:
        return f"placement requires the devices of {entry.name} together; of whole GPUs one can be had at most"
    return None
