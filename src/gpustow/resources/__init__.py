"""Hardware and configuration in, resources and their devices out. Pure functions."""

from gpustow.resources.catalog import Catalog, build_catalog
from gpustow.resources.device import REPLICA_SEPARATOR, Device, Resource, Sharing
from gpustow.resources.mps import MpsShares, mps_shares
from gpustow.resources.selection import select_gpus

__all__ = [
    "REPLICA_SEPARATOR",
    "Catalog",
    "Device",
    "MpsShares",
    "Resource",
    "Sharing",
    "build_catalog",
    "mps_shares",
    "select_gpus",
]
