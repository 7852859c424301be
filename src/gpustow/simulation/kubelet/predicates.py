"""What kubelet checks after the devices are allocated: does the pod fit what the node says it has?

The node's allocatable is kubelet's own copy. It may be behind the device manager, so kubelet raises it to what is
really in use before it compares. A resource that the node does not name is somebody else's and not looked at; one that
kubelet has forgotten is still named, with 0, and a pod that wants it is refused here.

A pod that is refused here has caused its Allocate calls. Limits: extended resources only.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet.pod import Pod
from gpustow.simulation.kubelet.state import DeviceState


@dataclass(frozen=True, slots=True)
class Demand:
    """How much of each resource a pod wants, and how much the other active pods want of these."""

    wanted: Mapping[str, int]
    used: Mapping[str, int]


def check_fit(pod: Pod, demand: Demand, allocatable: Mapping[str, int], state: DeviceState) -> None:
    """Raises AdmissionError if a resource does not suffice for the pod and the others."""
    room = dict(allocatable)
    if pod.uid in state.holdings.pods():
        for resource, devices in state.in_use.items():
            room[resource] = max(room.get(resource, 0), len(devices))
    for resource, size in demand.wanted.items():
        if not size or resource not in room:
            continue
        used = demand.used[resource]
        if size > room[resource] - used:
            text = (
                f"Node didn't have enough resource: {resource}, "
                f"requested: {size}, used: {used}, capacity: {room[resource]}"
            )
            raise AdmissionError(pod.key, f"OutOf{resource}", text)
