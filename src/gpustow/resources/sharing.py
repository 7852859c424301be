"""Sharing: each device of a resource becomes replicas of it, as v0.20.0 makes them.

A replica is called by the id of its device, `::` and its number from 0. It keeps everything else of the device but its
share of the card, which is divided. Resources that are not named pass through.
"""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction

from gpustow.config import ReplicatedResource, ReplicatedResources
from gpustow.resources.device import REPLICA_SEPARATOR, Device, Resource, Sharing


def shared(
    resources: Sequence[Resource], asked: ReplicatedResources, sharing: Sharing
) -> tuple[tuple[Resource, ...], tuple[str, ...]]:
    """The resources after sharing, in the same order, and warnings about entries that name none of them."""
    entries = {entry.name: entry for entry in asked.resources}
    known = [resource.name for resource in resources]
    warnings = tuple(_warn_of_unknown(name, known) for name in entries if name not in known)
    limited = asked.fail_requests_greater_than_one is True
    return (
        tuple(
            _replicated(resource, entries[resource.name], sharing, limited=limited)
            if resource.name in entries
            else resource
            for resource in resources
        ),
        warnings,
    )


def _replicated(resource: Resource, entry: ReplicatedResource, sharing: Sharing, *, limited: bool) -> Resource:
    devices = tuple(
        _replica(device, number, entry.replicas) for device in resource.devices for number in range(entry.replicas)
    )
    return Resource(entry.rename or resource.name, devices, sharing, requests_limited_to_one=limited)


def _replica(device: Device, number: int, replicas: int) -> Device:
    return replace(
        device,
        id=f"{device.id}{REPLICA_SEPARATOR}{number}",
        replica=number,
        share=device.share * Fraction(1, replicas),
    )


def _warn_of_unknown(name: str, known: Sequence[str]) -> str:
    by_short = {known_name.partition("/")[2]: known_name for known_name in known}
    near = get_close_matches(name.partition("/")[2], by_short, n=1)
    hint = f"did you mean {by_short[near[0]]}?" if near else f"it has {', '.join(known) or 'none'}"
    return f"sharing names {name}, a resource that this node does not have; {hint}"
