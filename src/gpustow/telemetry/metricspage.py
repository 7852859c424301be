"""The page on metrics, docs/metrics.md: the catalogue, in words for people.

    python -m gpustow.telemetry.metricspage > docs/metrics.md

writes it anew.
"""

import sys
from collections.abc import Iterator

from gpustow.telemetry.catalogue import CATALOGUE
from gpustow.telemetry.facts import (
    CONFIGURATION_CHECK,
    DEVICES_CHECK,
    HEALTH_CHECK,
    NODE_CHECK,
    PLUGIN_CHECK,
)

_CHECKS = {
    CONFIGURATION_CHECK: "the configuration that was given last is in force",
    NODE_CHECK: "the node can be read and goes with the configuration",
    DEVICES_CHECK: "every device that should be there is there and healthy",
    HEALTH_CHECK: "the health of the GPUs is watched",
    f"{PLUGIN_CHECK}<resource>": "kubelet has taken the resource and has its stream of the list open",
}

_INTRO = """\
# Metrics and probes

With `--metrics-address` (or `GPUSTOW_METRICS_ADDRESS`, or `telemetry.address` in the file) the daemon answers HTTP at
that address: `:9402` is every address of the machine, `127.0.0.1:9402` and `[::1]:9402` are one. Without it nothing
listens. There is no encryption and no password: whoever reaches the address can read, and nobody can change anything.

| path | what it answers |
|---|---|
| `/` | the status page, for people |
| `/metrics` | the metrics below, in Prometheus' text form or in OpenMetrics |
| `/livez` | 200 as long as the process answers. A sick GPU, a lost driver or a bad configuration do not change that |
| `/readyz` | 200 if all checks pass, else 503 with those that do not |
| `/api/v1/node` | what the daemon knows, as JSON ([schema](../src/gpustow/telemetry/node-status.schema.json)) |

`?verbose` with either probe lists every check. `?exclude=devices` leaves one out, and may be given more than once, as
with kube-apiserver: where not ready means that a rollout stops, leave out `devices` and `node`, for a sick GPU is no
fault of a new version. Other paths are 404, other methods than GET and HEAD are 405. A request has five seconds and
8 KiB, has no body, and is the only one of its connection; there are 32 connections at most.

![The status page: four GPUs, their MIG devices, and who holds them](status-page-light.png)

It is drawn for [dark rooms](status-page-dark.png) and [phones](status-page-phone.png) as well, follows by itself, and
loads nothing from elsewhere. `gpustow status` shows the same in a terminal.

The checks of readiness:

| check | passes if |
|---|---|
"""

_METRICS = """
## Metrics

Alert rules, a ServiceMonitor and a Grafana dashboard that use them lie in [deploy/monitoring](../deploy/monitoring).
Gauges are worked out at each scrape; the others count from the start of the daemon. No label names a pod: who holds
what is in `/api/v1/node`. Beside these there are the usual metrics of a process, `process_...`.

| metric | kind | labels | what it says |
|---|---|---|---|
"""


def metrics_page() -> str:
    """The page, as Markdown."""
    checks = [f"| `{name}` | {text} |" for name, text in _CHECKS.items()]
    return _INTRO + "\n".join(checks) + "\n" + _METRICS + "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    for metric in CATALOGUE:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.help} |"


if __name__ == "__main__":
    sys.stdout.write(metrics_page())
