"""The configuration that holds, after file, environment and flags are weighed; frozen, compared by content."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from gpustow.config.sharing import ReplicatedResources
from gpustow.config.strategies import DeviceIdStrategy, DeviceListStrategy, MigStrategy


@dataclass(frozen=True, slots=True)
class Config:
    """What the operator asked for, defaults filled in.

    `device_list_strategies` are those that act, in the order given. `kubelet_socket` is empty if nobody is to be
    registered with, `config_file` if there is none.
    """

    config_file: str = ""
    strict_config: bool = False
    mig_strategy: MigStrategy = MigStrategy.NONE
    fail_on_init_error: bool = True
    device_list_strategies: tuple[DeviceListStrategy, ...] = (DeviceListStrategy.ENVVAR,)
    device_id_strategy: DeviceIdStrategy = DeviceIdStrategy.UUID
    shared_devices_allocation_policy: str = "distributed"
    kubelet_socket: str = "/var/lib/kubelet/device-plugins/kubelet.sock"
    time_slicing: ReplicatedResources | None = None


class Origin(Enum):
    """Where the value of a setting comes from; a flag wins over the environment, that over the file."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration, where each setting comes from (by the long name of its flag), and what to tell the operator."""

    config: Config
    origins: Mapping[str, Origin]
    warnings: tuple[str, ...] = ()
