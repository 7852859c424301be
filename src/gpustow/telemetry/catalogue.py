"""All metrics of the daemon. docs/metrics.md is made of this table, and a test holds what is exposed to it.

Gauges are worked out at each scrape, from what is known then (`gauges`). The others count from when telling began.
"""

from gpustow.telemetry.metric import Metric, MetricKind

_COUNTER, _GAUGE = MetricKind.COUNTER, MetricKind.GAUGE

BUILD_INFO = Metric("gpustow_build_info", _GAUGE, "1; the version of gpustow and of Python.", ("version", "python"))
CONFIG_INFO = Metric(
    "gpustow_config_info",
    _GAUGE,
    "1; the configuration in force: its file, the start of the SHA-256 of its text, and two settings.",
    ("file", "sha256", "mig_strategy", "policy"),
)
CONFIG_WARNINGS = Metric("gpustow_config_warnings", _GAUGE, "Warnings about the configuration in force.")
LAST_RELOAD_SUCCESSFUL = Metric(
    "gpustow_config_last_reload_successful",
    _GAUGE,
    "1 if the configuration that was given last is in force, 0 if it was refused and the one before goes on.",
)
RELOADS = Metric(
    "gpustow_config_reloads_total", _COUNTER, "Reloads by result: ok, or refused (each new try counts).", ("result",)
)
NODE_READINGS = Metric(
    "gpustow_node_readings_total",
    _COUNTER,
    "Readings of the node by result: ok, or trouble (it cannot be read, or does not go with the configuration).",
    ("result",),
)
READY = Metric("gpustow_ready", _GAUGE, "1 if the node's devices are in use as they should be: what /readyz says.")
READINESS_CHECK = Metric(
    "gpustow_readiness_check",
    _GAUGE,
    "1 if a check of readiness passes: configuration, node, devices, health-monitor, plugin:<resource>.",
    ("check",),
)

GPU_INFO = Metric(
    "gpustow_gpu_info",
    _GAUGE,
    "1; what a GPU is, to be joined by its UUID. The NUMA node is empty where it is not known.",
    ("gpu", "uuid", "model", "numa_node"),
)
GPU_HEALTHY = Metric(
    "gpustow_gpu_healthy", _GAUGE, "1 if a GPU is healthy, 0 if it is unhealthy, recovering or lost.", ("gpu", "uuid")
)
GPU_USED_RATIO = Metric(
    "gpustow_gpu_used_ratio",
    _GAUGE,
    "The share of a GPU that containers hold, over all resources, from 0 to 1.",
    ("gpu", "uuid"),
)
GPU_SLOTS = Metric(
    "gpustow_gpu_slots",
    _GAUGE,
    "The devices of a resource on a GPU by state: used, free, or unhealthy (and not used).",
    ("resource", "gpu", "uuid", "state"),
)
GPUS_WHOLLY_FREE = Metric(
    "gpustow_gpus_wholly_free", _GAUGE, "GPUs that are served and healthy and on which nothing is in use."
)
GPUS_UNREADABLE = Metric(
    "gpustow_gpus_unreadable", _GAUGE, "GPUs that the driver lists and that are lost or cannot be read."
)
DEVICES = Metric(
    "gpustow_devices",
    _GAUGE,
    "Devices of a resource by health (healthy, unhealthy), as kubelet is told, in use or not.",
    ("resource", "health"),
)
DEVICES_USED = Metric("gpustow_devices_used", _GAUGE, "Devices of a resource that containers hold.", ("resource",))
USE_IS_LISTED = Metric(
    "gpustow_use_is_listed",
    _GAUGE,
    "1 if kubelet's PodResources service says what is in use, 0 if only the calls of kubelet do.",
)

PLUGIN_STATE = Metric(
    "gpustow_plugin_state",
    _GAUGE,
    "1 for the state in which the plugin of a resource is; streaming is the good one.",
    ("resource", "state"),
)
STREAMS = Metric(
    "gpustow_kubelet_streams", _GAUGE, "Streams of the list of devices that kubelet has open.", ("resource",)
)
REGISTRATIONS = Metric(
    "gpustow_kubelet_registrations_total", _COUNTER, "Registrations that kubelet took.", ("resource",)
)
STATE_CHANGES = Metric(
    "gpustow_plugin_state_changes_total",
    _COUNTER,
    "How often the plugin of a resource went into a state.",
    ("resource", "state"),
)
LIST_SENDS = Metric("gpustow_list_sends_total", _COUNTER, "Lists of devices sent to kubelet.", ("resource",))
LIST_BYTES = Metric("gpustow_list_bytes_total", _COUNTER, "Bytes of the lists sent to kubelet.", ("resource",))

DECISION_SECONDS = Metric(
    "gpustow_placement_decision_seconds",
    MetricKind.HISTOGRAM,
    "How long it took to decide which devices are preferred.",
    ("resource", "policy"),
    (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1),
)
PLACEMENTS = Metric(
    "gpustow_placements_total",
    _COUNTER,
    "Decisions by policy and by the rule on which the winner beat the next best answer.",
    ("resource", "policy", "decided_by"),
)
FALLBACKS = Metric(
    "gpustow_placement_fallbacks_total",
    _COUNTER,
    "Answers that are less than a proven best one, by cause: infeasible and fault (kubelet chooses), hurried (time was "
    "up), inexact (steps were up).",
    ("resource", "cause"),
)
ALLOCATIONS = Metric("gpustow_allocations_total", _COUNTER, "Allocations granted, one a container.", ("resource",))
ALLOCATED_DEVICES = Metric("gpustow_allocated_devices_total", _COUNTER, "Devices of these allocations.", ("resource",))
ALLOCATION_ERRORS = Metric(
    "gpustow_allocation_errors_total",
    _COUNTER,
    "Allocations that failed, and with them the pod, by reason: refused, or fault (of ours).",
    ("resource", "reason"),
)

XIDS = Metric(
    "gpustow_xid_errors_total",
    _COUNTER,
    "XIDs that the driver reported, ignored or not; the UUID is empty where the GPU is not known.",
    ("uuid", "xid"),
)
HEALTH_EVENTS = Metric(
    "gpustow_health_events_total",
    _COUNTER,
    "Events of health by kind (xid, eccDoubleBit, lost ...), ignored or not; a lasting one counts once.",
    ("uuid", "kind"),
)
TRANSITIONS = Metric(
    "gpustow_health_transitions_total",
    _COUNTER,
    "Changes of health by the GPU, by what has changed (gpu, mig_device, monitor), into what, and by cause: `xid 79`, "
    "or the kind of the event.",
    ("uuid", "scope", "to", "cause"),
)
SOURCE_FAILURES = Metric(
    "gpustow_health_source_failures_total", _COUNTER, "How often the source of health events did not work."
)
LAST_WAIT = Metric(
    "gpustow_health_last_wait_timestamp_seconds",
    _GAUGE,
    "When the health monitor last waited for events and all was well, in seconds since 1970; missing before that.",
)

NVML_SECONDS = Metric(
    "gpustow_nvml_call_seconds", MetricKind.SUMMARY, "Calls into NVIDIA's library, and how long they took.", ("call",)
)
NVML_ERRORS = Metric(
    "gpustow_nvml_call_errors_total",
    _COUNTER,
    "Calls into NVIDIA's library that did not do what they should, by result: failed, or hung. What a GPU does not "
    "support fails, too.",
    ("call", "result"),
)

CATALOGUE: tuple[Metric, ...] = tuple(value for value in list(vars().values()) if isinstance(value, Metric))
"""In the order above."""
