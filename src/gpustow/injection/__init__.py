"""What is put into a container that got devices. Pure functions of the devices and the configuration."""

from gpustow.injection.allocation import container_edits
from gpustow.injection.edits import ContainerEdits, DeviceNode, Mount

__all__ = ["ContainerEdits", "DeviceNode", "Mount", "container_edits"]
