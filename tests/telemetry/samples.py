"""Facts for the tests of this folder: a node with MIG devices and one with replicas, some of them in use."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpustow.config import load_config
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.simulated import SimulatedReader
from gpustow.kubelet.podresources import HeldDevice
from gpustow.placement import Policy
from gpustow.resources import build_catalog
from gpustow.resources.device import Resource
from gpustow.telemetry.facts import Check, Facts, ServedFacts

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000.0


def facts(
    model: str = "a100-4-mig-5",
    *,
    held: Iterable[HeldDevice] = (),
    replicas: int = 0,
    text: str = "",
    checks: tuple[Check, ...] = (Check("configuration"), Check("node")),
    **flags: object,
) -> Facts:
    """What a daemon knows that serves a shipped node model; `replicas` shares its GPUs, `text` is its file."""
    if replicas:
        text = f"version: v1\nsharing: {{timeSlicing: {{resources: [{{name: gpu, replicas: {replicas}}}]}}}}\n"
    given: dict[str, object] = {"mig-strategy": "mixed"} | {
        name.replace("_", "-"): value for name, value in flags.items()
    }
    loaded = load_config(given | ({"config-file": "/config/config.yaml"} if text else {}), {}, lambda _path: text)
    node = SimulatedReader(load_node_model(model)).read()
    policy = Policy.named(loaded.config.shared_devices_allocation_policy)
    served = tuple(
        ServedFacts(resource, policy, "streaming", "kubelet has the list of devices", 1)
        for resource in build_catalog(node, loaded.config).resources
    )
    ids: dict[str, set[str]] = {}
    holders: dict[tuple[str, str], list[HeldDevice]] = {}
    for device in held:
        ids.setdefault(device.resource, set()).add(device.device_id)
        holders.setdefault((device.resource, device.device_id), []).append(device)
    return Facts(NOW, checks, loaded, node, served, held=ids, holders=holders, is_listed=True)


def hold(known: Facts, *numbers: int, resource: int = 0, pod: str = "pod") -> Facts:
    """The same, with devices of a resource (by their numbers) held by the container `main` of a pod."""
    mine = known.served[resource].resource
    return with_held(known, {mine.devices[number].id: pod for number in numbers}, mine)


def with_held(known: Facts, pods: Mapping[str, str], resource: Resource) -> Facts:
    held = {name: set(ids) for name, ids in known.held.items()}
    held.setdefault(resource.name, set()).update(pods)
    new = {(resource.name, id_): [HeldDevice(resource.name, id_, "default", pod, "main")] for id_, pod in pods.items()}
    return replace(known, held=held, holders={**known.holders, **new})


def unhealthy(known: Facts, *numbers: int, resource: int = 0) -> Facts:
    """The same, with some devices of a resource (by their numbers) unhealthy."""
    served = known.served[resource]
    devices = tuple(
        replace(device, healthy=number not in numbers) for number, device in enumerate(served.resource.devices)
    )
    changed = replace(served, resource=replace(served.resource, devices=devices))
    return replace(known, served=tuple(changed if at == resource else each for at, each in enumerate(known.served)))
