"""Hardware and configuration in, resources and their devices out. Pure functions."""

from gpustow.resources.catalog import Catalog, build_catalog
from gpustow.resources.device import REPLICA_SEPARATOR, Device, Resource, Sharing

__all__ = ["REPLICA_SEPARATOR", "Catalog", "Device", "Resource", "Sharing", "build_catalog"]
