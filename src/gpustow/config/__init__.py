"""What the operator asked for: the v1 file, flags, environment, which of them wins, and what is refused.

The table `SETTINGS` is the one source for names, defaults and help; `load_config` turns file, environment and flags
into a `LoadedConfig`.
"""

from gpustow.config.config import Config, LoadedConfig, Origin
from gpustow.config.load import load_config
from gpustow.config.resourcename import resource_name
from gpustow.config.settings import SETTINGS, Kind, Setting
from gpustow.config.sharing import ReplicatedResource, ReplicatedResources
from gpustow.config.strategies import DeviceIdStrategy, DeviceListStrategy, MigStrategy

__all__ = [
    "SETTINGS",
    "Config",
    "DeviceIdStrategy",
    "DeviceListStrategy",
    "Kind",
    "LoadedConfig",
    "MigStrategy",
    "Origin",
    "ReplicatedResource",
    "ReplicatedResources",
    "Setting",
    "load_config",
    "resource_name",
]
