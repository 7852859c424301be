"""The table of settings: every flag of v0.20.0 and ours, with its names, default and help.

This is the one source: the command line is built from it, the environment and the file are read by it, and the help
shows it. A setting that v0.20.0 has and that does not act yet says so (`acts`), and whoever sets it to something else
than its default is told.
"""

from dataclasses import dataclass
from enum import Enum

from gpustow.config.strategies import SHARED_POLICIES, DeviceIdStrategy, DeviceListStrategy, MigStrategy


class Kind(Enum):
    """What the value of a setting is."""

    TEXT = "text"
    BOOLEAN = "boolean"
    TEXTS = "list"
    INTEGERS = "list of numbers"


Value = str | bool | tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `flag` and `aliases` are without dashes; of `envs` the first that is set wins.

    `key` is the path in the file, empty if the file cannot set it. `allowed` are the words that can be chosen (each
    item's, for a list); empty means any. `refusal` is what v0.20.0 says of another word.
    """

    flag: str
    kind: Kind
    default: Value
    help: str
    key: str = ""
    aliases: tuple[str, ...] = ()
    envs: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    refusal: str = "invalid value"
    acts: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the flag, without dashes."""
        return (self.flag, *self.aliases)


def _values(words: type[Enum]) -> tuple[str, ...]:
    return tuple(word.value for word in words)


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "config-file",
        Kind.TEXT,
        "",
        "The configuration file, YAML or JSON.",
        envs=("CONFIG_FILE",),
    ),
    Setting(
        "strict-config",
        Kind.BOOLEAN,
        False,
        "Refuse a configuration file with unknown, misplaced or doubled keys instead of warning.",
        envs=("GPUSTOW_STRICT_CONFIG",),
    ),
    Setting(
        "mig-strategy",
        Kind.TEXT,
        "none",
        "How GPUs in MIG mode are offered: none (as whole GPUs), single (each instance as nvidia.com/gpu), mixed (a "
        "resource for each profile).",
        key="flags.migStrategy",
        envs=("MIG_STRATEGY",),
        allowed=_values(MigStrategy),
        refusal="unknown MIG strategy",
    ),
    Setting(
        "fail-on-init-error",
        Kind.BOOLEAN,
        True,
        "End if the driver cannot be read or there are no devices; if false, wait for them.",
        key="flags.failOnInitError",
        envs=("FAIL_ON_INIT_ERROR",),
    ),
    Setting(
        "shared-devices-allocation-policy",
        Kind.TEXT,
        "distributed",
        "Which shared or MIG devices a request gets: distributed balances the GPUs, packed keeps whole GPUs free.",
        key="flags.plugin.sharedDevicesAllocationPolicy",
        envs=("SHARED_DEVICES_ALLOCATION_POLICY",),
        allowed=SHARED_POLICIES,
        refusal="invalid --shared-devices-allocation-policy option",
    ),
    Setting(
        "device-list-strategy",
        Kind.TEXTS,
        ("envvar",),
        "How the devices of a container are told to the container runtime; may be given several times.",
        key="flags.plugin.deviceListStrategy",
        envs=("DEVICE_LIST_STRATEGY",),
        allowed=_values(DeviceListStrategy),
        refusal="invalid strategy",
    ),
    Setting(
        "device-id-strategy",
        Kind.TEXT,
        "uuid",
        "By what devices are named to the container runtime.",
        key="flags.plugin.deviceIDStrategy",
        envs=("DEVICE_ID_STRATEGY",),
        allowed=_values(DeviceIdStrategy),
        refusal="invalid --device-id-strategy option",
    ),
    Setting(
        "kubelet-socket",
        Kind.TEXT,
        "/var/lib/kubelet/device-plugins/kubelet.sock",
        "Kubelet's registration socket; our sockets lie beside it. Empty: serve, but register with nobody.",
        envs=("KUBELET_SOCKET",),
    ),
    Setting(
        "driver-root",
        Kind.TEXT,
        "/",
        "The root of the NVIDIA driver on the host.",
        key="flags.nvidiaDriverRoot",
        aliases=("nvidia-driver-root",),
        envs=("NVIDIA_DRIVER_ROOT",),
        acts=False,
    ),
    Setting(
        "dev-root",
        Kind.TEXT,
        "",
        "The root of the device nodes on the host; empty is the driver root.",
        key="flags.nvidiaDevRoot",
        aliases=("nvidia-dev-root",),
        envs=("NVIDIA_DEV_ROOT",),
        acts=False,
    ),
    Setting(
        "pass-device-specs",
        Kind.BOOLEAN,
        False,
        "Pass device nodes to kubelet, for clusters with the CPU manager's static policy.",
        key="flags.plugin.passDeviceSpecs",
        envs=("PASS_DEVICE_SPECS",),
        acts=False,
    ),
    Setting(
        "gdrcopy-enabled",
        Kind.BOOLEAN,
        False,
        "Give containers with GPUs GDRCopy's device.",
        key="flags.gdrcopyEnabled",
        envs=("GDRCOPY_ENABLED",),
        acts=False,
    ),
    Setting(
        "gds-enabled",
        Kind.BOOLEAN,
        False,
        "Give containers with GPUs the devices of GPUDirect Storage.",
        key="flags.gdsEnabled",
        envs=("GDS_ENABLED",),
        acts=False,
    ),
    Setting(
        "mofed-enabled",
        Kind.BOOLEAN,
        False,
        "Give containers with GPUs the InfiniBand devices.",
        key="flags.mofedEnabled",
        envs=("MOFED_ENABLED",),
        acts=False,
    ),
    Setting(
        "cdi-annotation-prefix",
        Kind.TEXT,
        "cdi.k8s.io/",
        "The prefix of CDI annotations.",
        key="flags.plugin.cdiAnnotationPrefix",
        envs=("CDI_ANNOTATION_PREFIX",),
        acts=False,
    ),
    Setting(
        "nvidia-cdi-hook-path",
        Kind.TEXT,
        "/usr/bin/nvidia-ctk",
        "The program that CDI hooks run, on the host.",
        key="flags.plugin.nvidiaCTKPath",
        aliases=("nvidia-ctk-path",),
        envs=("NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH"),
        acts=False,
    ),
    Setting(
        "driver-root-ctr-path",
        Kind.TEXT,
        "/driver-root",
        "Where the driver root is mounted in our own container.",
        key="flags.plugin.containerDriverRoot",
        aliases=("container-driver-root",),
        envs=("DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT"),
        acts=False,
    ),
    Setting(
        "mps-root",
        Kind.TEXT,
        "",
        "The directory of the MPS control daemon on the host.",
        key="flags.mpsRoot",
        envs=("MPS_ROOT",),
        acts=False,
    ),
    Setting(
        "device-discovery-strategy",
        Kind.TEXT,
        "auto",
        "How the hardware is read: nvml, tegra, or what fits (auto).",
        key="flags.deviceDiscoveryStrategy",
        envs=("DEVICE_DISCOVERY_STRATEGY",),
        allowed=("auto", "nvml", "tegra"),
        refusal="invalid --device-discovery-strategy option",
        acts=False,
    ),
    Setting(
        "imex-channel-ids",
        Kind.INTEGERS,
        (),
        "The IMEX channels that containers with GPUs get: none, or 0.",
        key="imex.channelIDs",
        envs=("IMEX_CHANNEL_IDS",),
        acts=False,
    ),
    Setting(
        "imex-required",
        Kind.BOOLEAN,
        False,
        "Fail if an IMEX channel that is asked for does not exist.",
        key="imex.required",
        envs=("IMEX_REQUIRED",),
        acts=False,
    ),
    Setting(
        "cdi-feature-flags",
        Kind.TEXTS,
        (),
        "Features of the CDI specifications that are written.",
        envs=("CDI_FEATURE_FLAGS",),
        acts=False,
    ),
    Setting(
        "cdi-disable-hooks",
        Kind.TEXTS,
        (),
        "Hooks that are left out of the CDI specifications.",
        envs=("CDI_DISABLE_HOOKS",),
        acts=False,
    ),
)
"""In the order of the help: what most operators set comes first."""

BY_FLAG = {name: setting for setting in SETTINGS for name in setting.names}
"""Settings by each name of their flag."""

BY_KEY = {setting.key: setting for setting in SETTINGS if setting.key}
"""Settings by their path in the file."""
