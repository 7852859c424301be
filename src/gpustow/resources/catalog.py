"""The catalog: every resource of a node under a configuration, and what the operator should know about them."""

from dataclasses import dataclass

from gpustow.config import Config, DeviceListStrategy
from gpustow.hardware.node import Node
from gpustow.resources.device import Resource, Sharing
from gpustow.resources.layout import lay_out
from gpustow.resources.listsize import check_list
from gpustow.resources.sharing import shared


@dataclass(frozen=True, slots=True)
class Catalog:
    """The resources, each with one device or more: whole GPUs first, then MIG profiles from small to large."""

    resources: tuple[Resource, ...]
    warnings: tuple[str, ...] = ()


def build_catalog(node: Node, config: Config) -> Catalog:
    """What `config` makes of `node`; empty if there is nothing to serve.

    Raises HardwareError if the node's MIG devices do not go with the MIG strategy, and ConfigError if there are more
    devices than kubelet can take.
    """
    layout = lay_out(node, config.mig_strategy)
    resources = tuple(Resource(name, devices) for name, devices in layout.devices.items())
    warnings = layout.warnings
    if config.time_slicing is not None:
        resources, unknown = shared(resources, config.time_slicing, Sharing.TIME_SLICING)
        warnings += unknown
    warnings += tuple(warning for resource in resources for warning in check_list(resource))
    return Catalog(resources, (*warnings, *_warn_of_clash(resources, config)))


def _warn_of_clash(resources: tuple[Resource, ...], config: Config) -> tuple[str, ...]:
    """Tells that resources cannot be asked for together if an environment variable alone names their devices."""
    if len(resources) < 2 or config.device_list_strategies != (DeviceListStrategy.ENVVAR,):
        return ()
    names = ", ".join(resource.name for resource in resources)
    effect = f"a container that asks for more than one of {names} will see the devices of one alone"
    reason = "each names them in the same environment variable"
    return (f"{effect}, because {reason}: use device list strategy volume-mounts or a CDI one for that",)
