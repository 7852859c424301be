"""The configuration that holds, after file, environment and flags are weighed; frozen, compared by content."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from gpustow.config.health import HealthConfig
from gpustow.config.patterns import ResourcePattern
from gpustow.config.placement import ResourcePlacement
from gpustow.config.sharing import ReplicatedResources
from gpustow.config.strategies import DeviceDiscoveryStrategy, DeviceIdStrategy, DeviceListStrategy, MigStrategy
from gpustow.config.xidswitches import XidSwitches


@dataclass(frozen=True, slots=True)
class Config:
    """What the operator asked for, defaults filled in: a field for each setting of the table, by the flag's name.

    `device_list_strategies` are in the order given, each once. `kubelet_socket` is empty if nobody is to be
    registered with, `config_file` if there is none, `metrics_address` if nothing is to listen. `dev_root` is the driver
    root where nothing else is said.
    `visible_devices` are what NVIDIA_VISIBLE_DEVICES names in our own environment; empty where it names none.
    At most one of `time_slicing` and `mps` is there. `xid_switches` are the XIDs that our own environment names.
    """

    config_file: str = ""
    strict_config: bool = False
    mig_strategy: MigStrategy = MigStrategy.NONE
    fail_on_init_error: bool = True
    shared_devices_allocation_policy: str = "distributed"
    device_list_strategies: tuple[DeviceListStrategy, ...] = (DeviceListStrategy.ENVVAR,)
    device_id_strategy: DeviceIdStrategy = DeviceIdStrategy.UUID
    kubelet_socket: str = "/var/lib/kubelet/device-plugins/kubelet.sock"
    select_gpus: tuple[str, ...] = ()
    exclude_gpus: tuple[str, ...] = ()
    driver_root: str = "/"
    dev_root: str = "/"
    pass_device_specs: bool = False
    gdrcopy_enabled: bool = False
    gds_enabled: bool = False
    mofed_enabled: bool = False
    cdi_annotation_prefix: str = "cdi.k8s.io/"
    nvidia_cdi_hook_path: str = "/usr/bin/nvidia-ctk"
    driver_root_ctr_path: str = "/driver-root"
    mps_root: str = ""
    device_discovery_strategy: DeviceDiscoveryStrategy = DeviceDiscoveryStrategy.AUTO
    imex_channel_ids: tuple[int, ...] = ()
    imex_required: bool = False
    cdi_feature_flags: tuple[str, ...] = ()
    cdi_disable_hooks: tuple[str, ...] = ()
    cdi_directory: str = "/var/run/cdi"
    metrics_address: str = ""
    visible_devices: tuple[str, ...] = ()
    gpu_patterns: tuple[ResourcePattern, ...] = ()
    mig_patterns: tuple[ResourcePattern, ...] = ()
    time_slicing: ReplicatedResources | None = None
    mps: ReplicatedResources | None = None
    placement: tuple[ResourcePlacement, ...] = ()
    health: HealthConfig = field(default_factory=HealthConfig)
    xid_switches: XidSwitches = field(default_factory=XidSwitches)


class Origin(Enum):
    """Where the value of a setting comes from; a flag wins over the environment, that over the file."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The file that was read: its path, and the SHA-256 of its text in UTF-8, as hexadecimal digits."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration, where each setting comes from (by the long name of its flag), and what to tell the operator.

    `file` is None if there is none.
    """

    config: Config
    origins: Mapping[str, Origin]
    warnings: tuple[str, ...] = ()
    file: ConfigFile | None = None
