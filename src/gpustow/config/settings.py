"""The table of settings: every flag of v0.20.0 and ours, with its names, default and help.

This is the one source: the command line is built from it, the environment and the file are read by it, and the help,
the page on configuration and the file's JSON schema show it.
"""

from enum import Enum

from gpustow.config.address import ADDRESS_PATTERN
from gpustow.config.duration import parse_duration
from gpustow.config.setting import FormerNames, Kind, Setting
from gpustow.config.strategies import (
    SHARED_POLICIES,
    DeviceDiscoveryStrategy,
    DeviceIdStrategy,
    DeviceListStrategy,
    MigStrategy,
)


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
        "Which shared or MIG devices a request gets: distributed balances the GPUs, packed keeps whole "
        "GPUs free, spread takes as many GPUs as it can, packed-aligned the fewest that are linked well.",
        key="flags.plugin.sharedDevicesAllocationPolicy",
        envs=("SHARED_DEVICES_ALLOCATION_POLICY",),
        former=FormerNames("allocation-policy", "ALLOCATION_POLICY", "flags.plugin.allocationPolicy"),
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
        field="device_list_strategies",
        allowed=_values(DeviceListStrategy),
        refusal="invalid strategy",
        least=1,
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
        "select-gpus",
        Kind.TEXTS,
        (),
        "Serve only these GPUs: by index, UUID, PCI bus id, or a pattern of the model with *. Not with exclude-gpus.",
        key="gpus.select",
        envs=("GPUSTOW_SELECT_GPUS",),
    ),
    Setting(
        "exclude-gpus",
        Kind.TEXTS,
        (),
        "Leave these GPUs alone: by index, UUID, PCI bus id, or a pattern of the model with *.",
        key="gpus.exclude",
        envs=("GPUSTOW_EXCLUDE_GPUS",),
    ),
    Setting(
        "driver-root",
        Kind.TEXT,
        "/",
        "The root of the NVIDIA driver on the host.",
        key="flags.nvidiaDriverRoot",
        aliases=("nvidia-driver-root",),
        envs=("NVIDIA_DRIVER_ROOT",),
    ),
    Setting(
        "dev-root",
        Kind.TEXT,
        "",
        "The root of the device nodes on the host; empty is the driver root.",
        key="flags.nvidiaDevRoot",
        aliases=("nvidia-dev-root",),
        envs=("NVIDIA_DEV_ROOT",),
    ),
    Setting(
        "pass-device-specs",
        Kind.BOOLEAN,
        False,
        "Pass device nodes to kubelet, for clusters with the CPU manager's static policy.",
        key="flags.plugin.passDeviceSpecs",
        envs=("PASS_DEVICE_SPECS",),
    ),
    Setting(
        "gdrcopy-enabled",
        Kind.BOOLEAN,
        False,
        "Give containers with GPUs GDRCopy's device.",
        key="flags.gdrcopyEnabled",
        envs=("GDRCOPY_ENABLED",),
    ),
    Setting(
        "gds-enabled",
        Kind.BOOLEAN,
        False,
        "Give containers with GPUs the devices of GPUDirect Storage.",
        key="flags.gdsEnabled",
        envs=("GDS_ENABLED",),
    ),
    Setting(
        "mofed-enabled",
        Kind.BOOLEAN,
        False,
        "Give containers with GPUs the InfiniBand devices.",
        key="flags.mofedEnabled",
        envs=("MOFED_ENABLED",),
    ),
    Setting(
        "cdi-annotation-prefix",
        Kind.TEXT,
        "cdi.k8s.io/",
        "The prefix of CDI annotations.",
        key="flags.plugin.cdiAnnotationPrefix",
        envs=("CDI_ANNOTATION_PREFIX",),
    ),
    Setting(
        "nvidia-cdi-hook-path",
        Kind.TEXT,
        "/usr/bin/nvidia-ctk",
        "The program that CDI hooks run, on the host.",
        key="flags.plugin.nvidiaCTKPath",
        aliases=("nvidia-ctk-path",),
        envs=("NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH"),
    ),
    Setting(
        "driver-root-ctr-path",
        Kind.TEXT,
        "/driver-root",
        "Where the driver root is mounted in our own container.",
        key="flags.plugin.containerDriverRoot",
        aliases=("container-driver-root",),
        envs=("DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT"),
    ),
    Setting(
        "mps-root",
        Kind.TEXT,
        "",
        "The directory of the MPS control daemon on the host.",
        key="flags.mpsRoot",
        envs=("MPS_ROOT",),
    ),
    Setting(
        "device-discovery-strategy",
        Kind.TEXT,
        "auto",
        "How the hardware is read: nvml, tegra, or what fits (auto).",
        key="flags.deviceDiscoveryStrategy",
        envs=("DEVICE_DISCOVERY_STRATEGY",),
        allowed=_values(DeviceDiscoveryStrategy),
        refusal="invalid --device-discovery-strategy option",
    ),
    Setting(
        "imex-channel-ids",
        Kind.INTEGERS,
        (),
        "The IMEX channels that containers with GPUs get: none, or 0.",
        key="imex.channelIDs",
        envs=("IMEX_CHANNEL_IDS",),
        whole=((), (0,)),
        refusal="invalid IMEX config: channelIDs must be [] or [0]; found",
    ),
    Setting(
        "imex-required",
        Kind.BOOLEAN,
        False,
        "Fail if an IMEX channel that is asked for does not exist.",
        key="imex.required",
        envs=("IMEX_REQUIRED",),
    ),
    Setting(
        "cdi-feature-flags",
        Kind.TEXTS,
        (),
        "Features of the CDI specifications that are written.",
        envs=("CDI_FEATURE_FLAGS",),
    ),
    Setting(
        "cdi-disable-hooks",
        Kind.TEXTS,
        (),
        "Hooks that are left out of the CDI specifications.",
        envs=("CDI_DISABLE_HOOKS",),
    ),
    Setting(
        "cdi-directory",
        Kind.TEXT,
        "/var/run/cdi",
        "Where CDI specifications are written: a directory of the host's that its container runtime reads.",
        key="cdi.directory",
        envs=("GPUSTOW_CDI_DIRECTORY",),
    ),
    Setting(
        "metrics-address",
        Kind.TEXT,
        "",
        "Where metrics, probes and the status of the node are told over HTTP: HOST:PORT, or :PORT on all addresses. "
        "Empty: nothing listens.",
        key="telemetry.address",
        envs=("GPUSTOW_METRICS_ADDRESS",),
        pattern=ADDRESS_PATTERN,
        refusal="not HOST:PORT or :PORT, such as :9402, 127.0.0.1:9402 or [::1]:9402",
    ),
)
"""In the order of the help: what most operators set comes first."""

FEATURE_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "use-node-feature-api",
        Kind.BOOLEAN,
        True,
        "Publish labels as a NodeFeature object instead of a file.",
        key="flags.useNodeFeatureAPI",
        envs=("GFD_USE_NODE_FEATURE_API", "USE_NODE_FEATURE_API"),
    ),
    Setting(
        "oneshot",
        Kind.BOOLEAN,
        False,
        "Label once and end.",
        key="flags.gfd.oneshot",
        envs=("GFD_ONESHOT",),
    ),
    Setting(
        "no-timestamp",
        Kind.BOOLEAN,
        False,
        "Leave out the label with the time.",
        key="flags.gfd.noTimestamp",
        envs=("GFD_NO_TIMESTAMP",),
    ),
    Setting(
        "sleep-interval",
        Kind.DURATION,
        parse_duration("60s"),
        "How long to wait before labelling again: a duration such as 60s or 1h30m, nanoseconds, or infinite.",
        key="flags.gfd.sleepInterval",
        envs=("GFD_SLEEP_INTERVAL",),
    ),
    Setting(
        "output-file",
        Kind.TEXT,
        "/etc/kubernetes/node-feature-discovery/features.d/gfd",
        "The file for the labels; empty is the standard output.",
        key="flags.gfd.outputFile",
        aliases=("output",),
        envs=("GFD_OUTPUT_FILE",),
    ),
    Setting(
        "machine-type-file",
        Kind.TEXT,
        "/sys/class/dmi/id/product_name",
        "The file that names the type of the machine.",
        key="flags.gfd.machineTypeFile",
        envs=("GFD_MACHINE_TYPE_FILE",),
    ),
)
"""What feature discovery alone reads, of the file that it shares with the plugin."""

BY_FLAG = {name: setting for setting in SETTINGS for name in setting.names}
"""The plugin's settings by each name of their flag."""

BY_FORMER_KEY = {setting.former.key: setting for setting in SETTINGS if setting.former}
"""The settings by the key that they had while they were proposed."""

BY_KEY = {setting.key: setting for setting in (*SETTINGS, *FEATURE_SETTINGS) if setting.key}
"""All settings by their path in the file."""
