"""What the operator asked for: the v1 file, flags, environment, which of them wins, and what is refused.

The table `SETTINGS` is the one source for names, defaults and help; `load_config` turns file, environment and flags
into a `LoadedConfig`.
"""

from gpustow.config.config import Config, ConfigFile, LoadedConfig, Origin
from gpustow.config.load import load_config
from gpustow.config.patterns import ResourcePattern
from gpustow.config.resourcename import resource_name
from gpustow.config.setting import Kind, Setting
from gpustow.config.settings import FEATURE_SETTINGS, SETTINGS
from gpustow.config.sharing import ReplicatedResource, ReplicatedResources
from gpustow.config.strategies import DeviceDiscoveryStrategy, DeviceIdStrategy, DeviceListStrategy, MigStrategy

__all__ = [
    "FEATURE_SETTINGS",
    "SETTINGS",
    "Config",
    "ConfigFile",
    "DeviceDiscoveryStrategy",
    "DeviceIdStrategy",
    "DeviceListStrategy",
    "Kind",
    "LoadedConfig",
    "MigStrategy",
    "Origin",
    "ReplicatedResource",
    "ReplicatedResources",
    "ResourcePattern",
    "Setting",
    "load_config",
    "resource_name",
]
