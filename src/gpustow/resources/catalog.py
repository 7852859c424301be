"""The catalog: every resource of a node under a configuration, and what the operator should know about them.

The steps, each a module: which GPUs are ours (`selection`), which devices the MIG strategy makes of them (`layout`) and
under which names (`naming`), and how they are shared (`sharing`, `mps`). What is refused is refused here, before
anything is served.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpustow.config import Config, DeviceListStrategy, ReplicatedResources
from gpustow.hardware.node import Node
from gpustow.resources.device import Device, Resource, Sharing
from gpustow.resources.layout import lay_out
from gpustow.resources.listsize import check_list
from gpustow.resources.mps import check_mps
from gpustow.resources.naming import Naming
from gpustow.resources.selection import select_gpus
from gpustow.resources.sharing import share


@dataclass(frozen=True, slots=True)
class Catalog:
    """The resources, each with one device or more: whole GPUs first, then MIG profiles from small to large."""

    resources: tuple[Resource, ...]
    warnings: tuple[str, ...] = ()


def build_catalog(node: Node, config: Config) -> Catalog:
    """What `config` makes of `node`; empty if there is nothing to serve.

    Raises HardwareError if the node's MIG devices do not go with the MIG strategy, and ConfigError if the configuration
    asks for what the node does not have or cannot do, or for more devices than kubelet can take.
    """
    ours, unknown = select_gpus(node, config)
    layout = lay_out(ours, Naming.of(config))
    devices, warnings = layout.devices, (*unknown, *layout.warnings)
    kind, asked, path = _sharing(config)
    if asked is not None:
        shared = share(devices, asked.resources, path)
        devices, warnings = shared.devices, (*warnings, *shared.warnings)
    limited = asked is not None and asked.fail_requests_greater_than_one is True
    resources = tuple(_resource(name, own, kind, limited=limited) for name, own in devices.items())
    check_mps(ours, resources)
    warnings += tuple(warning for resource in resources for warning in check_list(resource))
    return Catalog(resources, (*warnings, *_warn_of_clash(resources, config), *_warn_of_daemons(resources)))


def _sharing(config: Config) -> tuple[Sharing, ReplicatedResources | None, str]:
    """How devices are shared, what is, and which section of the file says so."""
    if config.mps is not None:
        return Sharing.MPS, config.mps, "sharing.mps"
    return Sharing.TIME_SLICING, config.time_slicing, "sharing.timeSlicing"


def _resource(name: str, devices: Sequence[Device], kind: Sharing, *, limited: bool) -> Resource:
    replicated = any(device.replica is not None for device in devices)
    return Resource(
        name, tuple(devices), kind if replicated else Sharing.NONE, requests_limited_to_one=limited and replicated
    )


def _warn_of_clash(resources: Sequence[Resource], config: Config) -> tuple[str, ...]:
    """Tells that resources cannot be asked for together if an environment variable alone names their devices."""
    if len(resources) < 2 or config.device_list_strategies != (DeviceListStrategy.ENVVAR,):
        return ()
    names = ", ".join(resource.name for resource in resources)
    effect = f"a container that asks for more than one of {names} will see the devices of one alone"
    reason = "each names them in the same environment variable"
    way_out = "the device list strategies volume-mounts, cdi-annotations and cdi-cri tell them apart"
    return (f"{effect}, because {reason}; {way_out}",)


def _warn_of_daemons(resources: Sequence[Resource]) -> tuple[str, ...]:
    """Tells that resources cannot be asked for together if each has an MPS daemon: a process has one."""
    by_mps = [resource.name for resource in resources if resource.sharing is Sharing.MPS]
    if len(by_mps) < 2:
        return ()
    return (f"a container that asks for more than one of {', '.join(by_mps)} reaches the MPS daemon of one alone",)
