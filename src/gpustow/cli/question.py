"""A question about a placement in plain data, and its answer: the form of `gpustow explain`, in single and in batch.

A device is named by its id, or shorter by its index as `nvidia-smi -L` counts: `3` for a GPU, `3:1` for a MIG device,
`3::0` or `3:1::0` for a replica.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpustow.errors import NoDevicesError, UsageError
from gpustow.hardware.links import Links
from gpustow.placement import Inventory, Occupancy, Placement, Policy, Request, place
from gpustow.placement.explain import Candidate
from gpustow.resources.device import REPLICA_SEPARATOR, Device, Resource

_FEW = 4
"""How many devices a message names."""

_FIELDS = ("offered", "must_include", "size", "policy", "in_use")


@dataclass(frozen=True, slots=True)
class Question:
    """Which devices a request would get. `offered` None is all that are healthy and not in use; so is `policy`.

    `in_use` None means that nobody knows: then devices that are not offered count as in use.
    """

    size: int
    offered: Sequence[str] | None = None
    must_include: Sequence[str] = ()
    policy: str | None = None
    in_use: Sequence[str] | None = None

    @classmethod
    def parse(cls, data: Any) -> "Question":
        """The question in an object of JSON; raises UsageError with what is wrong with it."""
        if not isinstance(data, dict):
            raise UsageError("a question must be an object")
        unknown = [key for key in data if key not in _FIELDS]
        if unknown:
            raise UsageError(f"unknown field {unknown[0]!r}; known are {', '.join(_FIELDS)}")
        size, policy = data.get("size"), data.get("policy")
        if isinstance(size, bool) or not isinstance(size, int):
            raise UsageError(f"size: {size!r} is not a whole number")
        if not isinstance(policy, str | None):
            raise UsageError(f"policy: {policy!r} is not a text")
        offered, must_include, in_use = (_texts(data, key) for key in ("offered", "must_include", "in_use"))
        return cls(size, offered, must_include or (), policy, in_use)


def _texts(data: Mapping[str, Any], key: str) -> list[str] | None:
    value = data.get(key)
    if value is None or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return value
    raise UsageError(f"{key}: {value!r} is not a list of texts")


def resource_named(name: str | None, resources: Sequence[Resource], node: str) -> Resource:
    """The resource that is asked for, with or without its prefix; the first one where none is named.

    `node` is the node's name, for messages. Raises UsageError if there is no such resource, NoDevicesError if there is
    none at all.
    """
    served = [resource for resource in resources if resource.devices]
    if not served:
        raise NoDevicesError(f"node {node} has no devices to serve")
    if name is None:
        return served[0]
    for resource in served:
        if name in {resource.name, resource.name.partition("/")[2]}:
            return resource
    known = ", ".join(resource.name for resource in served)
    raise UsageError(f"node {node} has no resource {name!r}", advice=f"Choose one of {known}.")


def short_name(device: Device) -> str:
    """The device by its index."""
    return device.index if device.replica is None else f"{device.index}{REPLICA_SEPARATOR}{device.replica}"


class Questioned:
    """A resource of a node that is asked about; `policies` are what a question can name, None what it gets else."""

    def __init__(
        self,
        resource: Resource,
        resources: Sequence[Resource],
        links: Links,
        policies: Mapping[str | None, Policy],
    ) -> None:
        self._resource = resource
        self._resources = resources
        self._inventory = Inventory.of(resource.devices, links)
        self._policies = policies
        self._own = _names([resource])
        self._all = _names(resources)

    def answer(self, question: Question) -> Placement:
        """Place the request. Raises UsageError for unknown names, InfeasibleRequest if there is no answer."""
        in_use = None if question.in_use is None else self._held(question.in_use)
        return place(
            Request(self._offered(question, in_use), self._ids(question.must_include), question.size),
            self._inventory,
            self._policy(question.policy),
            Occupancy() if in_use is None else Occupancy.seen(self._resource, self._resources, in_use),
        )

    def _policy(self, name: str | None) -> Policy:
        if name not in self._policies:
            known = ", ".join(policy for policy in self._policies if policy is not None)
            raise UsageError(f"unknown policy {name!r}", advice=f"Choose one of {known}.")
        return self._policies[name]

    def _offered(self, question: Question, in_use: Mapping[str, set[str]] | None) -> Sequence[str]:
        if question.offered is not None:
            return self._ids(question.offered)
        taken = set() if in_use is None else in_use.get(self._resource.name, set())
        must_include = set(self._ids(question.must_include))
        return [
            device.id
            for device in self._resource.devices
            if (device.healthy and device.id not in taken) or device.id in must_include
        ]

    def _ids(self, names: Iterable[str]) -> list[str]:
        return [self._named(name, self._own).id for name in names]

    def _held(self, names: Iterable[str]) -> dict[str, set[str]]:
        """The ids in use by resource."""
        held: dict[str, set[str]] = {}
        for name in names:
            found = self._all[name] if name in self._all else (self._resource.name, self._named(name, self._own))
            held.setdefault(found[0], set()).add(found[1].id)
        return held

    def _named(self, name: str, known: Mapping[str, tuple[str, Device]]) -> Device:
        return known[name][1] if name in known else device_named(name, self._resource)


def device_named(name: str, resource: Resource) -> Device:
    """The device of the resource with this id or index. Raises UsageError if there is none, or it is several."""
    known = _names([resource])
    if name in known:
        return known[name][1]
    several = [short for device in resource.devices if (short := short_name(device)).startswith(f"{name}:")]
    advice = "Name a device by its id, or by index and replica as in 0, 0:1 or 0::3."
    if several:
        more = ", ..." if len(several) > _FEW else ""
        advice = f"It is several devices; name those that are meant: {', '.join(several[:_FEW])}{more}"
    raise UsageError(f"{resource.name} has no device {name!r}", advice=advice)


def _names(resources: Iterable[Resource]) -> dict[str, tuple[str, Device]]:
    """The devices by id and by index, with the name of their resource."""
    names: dict[str, tuple[str, Device]] = {}
    for resource in resources:
        for device in resource.devices:
            names.setdefault(short_name(device), (resource.name, device))
            names[device.id] = (resource.name, device)
    return names


def answer_data(placement: Placement) -> dict[str, object]:
    """A placement and its reasons as plain data."""
    explanation = placement.explanation()
    return {
        "device_ids": list(placement.device_ids),
        "per_gpu": _counts(placement.per_gpu),
        "policy": placement.policy.name.value,
        "objective": dict(explanation.winner.objective),
        "runner_up": None if explanation.runner_up is None else _candidate(explanation.runner_up),
        "decided_by": explanation.decided_by,
        "sentence": explanation.sentence,
        "weighed": placement.weighed,
        "exact": placement.exact,
    }


def _candidate(candidate: Candidate) -> dict[str, object]:
    return {"per_gpu": _counts(candidate.per_gpu), "objective": dict(candidate.objective)}


def _counts(per_gpu: Mapping[int, int]) -> dict[str, int]:
    return {str(gpu): count for gpu, count in per_gpu.items()}
