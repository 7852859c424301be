"""What the daemon offers: all that follows from one reading of the node and one configuration, computed once.

An `Offer` is built whole, in a thread, beside the one that is running; only if that works does it take over. So a bad
configuration or a driver that just fails changes nothing, and a handler finds everything ready.
"""

from dataclasses import dataclass
from pathlib import Path

from gpustow.config import Config
from gpustow.errors import NoDevicesError
from gpustow.hardware.links import Links
from gpustow.hardware.node import Node
from gpustow.injection.hostdevices import NO_HOST_DEVICES, HostDevices
from gpustow.kubelet.devicefeed import device_list
from gpustow.placement import Inventory, Policy
from gpustow.plugin.placementpolicy import placement_notes, policy_of
from gpustow.resources import build_catalog
from gpustow.resources.device import Resource


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One resource, with what its handlers need.

    `device_list` is the serialised ListAndWatchResponse, `host` what the node has beside its GPUs. `withdrawn` are the
    ids that are unhealthy for no other reason than that the configuration does not offer them any more.
    """

    resource: Resource
    config: Config
    policy: Policy
    inventory: Inventory
    device_list: bytes
    host: HostDevices = NO_HOST_DEVICES
    withdrawn: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, resource: Resource, links: Links, config: Config, host: HostDevices = NO_HOST_DEVICES
    ) -> "ServedResource":
        """The resource of a node with these links and host devices."""
        return cls(
            resource=resource,
            config=config,
            policy=policy_of(resource.name, config),
            inventory=Inventory.of(resource.devices, links),
            device_list=device_list(resource.devices),
            host=host,
        )


@dataclass(frozen=True, slots=True)
class KubeletPlace:
    """Where kubelet is: the directory of the sockets, and its own socket in it (None: do not register)."""

    directory: Path
    socket: Path | None

    @classmethod
    def of(cls, config: Config, default_directory: Path) -> "KubeletPlace":
        """The place that the configuration names. Our sockets lie beside kubelet's, because that is where it looks.

        An empty kubelet socket means that nobody is to be registered with, as in v0.20.0; then the sockets lie in
        `default_directory`.
        """
        if not config.kubelet_socket:
            return cls(default_directory, None)
        socket = Path(config.kubelet_socket)
        return cls(socket.parent, socket)


@dataclass(frozen=True, slots=True)
class Offer:
    """The resources that have devices, in the catalog's order, and what the operator should know about them."""

    served: tuple[ServedResource, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, node: Node, config: Config, host: HostDevices = NO_HOST_DEVICES) -> "Offer":
        """What `config` makes of `node`, which has `host` beside its GPUs.

        Raises ConfigError if they do not go together, HardwareError, and NoDevicesError if nothing is left to serve.
        """
        catalog = build_catalog(node, config)
        resources = [resource for resource in catalog.resources if resource.devices]
        if not resources:
            raise NoDevicesError(
                f"node {node.name} has no devices to serve ({len(node.gpus)} GPUs were found)",
                advice="Look at the driver with `nvidia-smi -L`, and at migStrategy if the GPUs are in MIG mode.",
            )
        served = tuple(ServedResource.of(resource, node.links, config, host) for resource in resources)
        strangers = placement_notes(resources, config)
        return cls(served, (*node.notes, *host.notes, *catalog.warnings, *strangers))
