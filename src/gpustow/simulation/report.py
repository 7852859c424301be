"""The outcomes as JSON: by policy, what was advertised, what each pod got, and how many GPUs are wholly free.

The keys are an interface that scripts read, so none of them changes its meaning. `device_ids` and `envs` of a pod are
there for the common pod with one container; `containers` says the same for each container by itself, and by resource.

`refusals` of a pod are all that it met with; `reason` and `message` are those of the last one, where it stands
refused or unschedulable.

`mig_fragmentation` of a GPU is in memory slices, null where the GPU is not cut for MIG or it is not known.

Limits: with several containers, `envs` of the pod is that of the first one that has any, because their values differ.
"""

import json
from collections.abc import Sequence
from typing import Any

from gpustow.simulation.outcome import Outcome, PodOutcome


def report_data(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The outcomes as plain data with a key a policy."""
    return {outcome.policy: _outcome(outcome) for outcome in outcomes}


def render_json(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as one JSON object with a key a policy, indented, with a newline at the end."""
    return json.dumps(report_data(outcomes), indent=2) + "\n"


def _outcome(outcome: Outcome) -> dict[str, Any]:
    free = outcome.wholly_free_gpus()
    fragmented = outcome.mig_fragmentation()
    return {
        "resources": {
            name: {"capacity": counts.capacity, "allocatable": counts.allocatable}
            for name, counts in sorted(outcome.advertised.items())
        },
        "pods": [_pod(pod) for pod in outcome.pods],
        "gpus": [
            {
                "index": gpu.index,
                "uuid": gpu.uuid,
                "model": gpu.model,
                "wholly_free": gpu.index in free,
                "mig_fragmentation": fragmented.get(gpu.index),
                "devices": [
                    {"id": slot.device.id, "resource": slot.resource, "pod": slot.holder} for slot in outcome.slots(gpu)
                ],
            }
            for gpu in outcome.node.gpus
        ],
        "wholly_free_gpus": len(free),
        "unusable_gpus": len(outcome.unusable_gpus()),
        "warnings": list(outcome.warnings),
    }


def _pod(pod: PodOutcome) -> dict[str, Any]:
    described: dict[str, Any] = {
        "namespace": pod.namespace,
        "name": pod.name,
        "phase": pod.phase.value,
        "device_ids": list(pod.device_ids),
        "envs": dict(next((container.envs for container in pod.containers if container.envs), {})),
        "containers": [
            {
                "name": container.name,
                "device_ids": {name: list(ids) for name, ids in container.device_ids.items()},
                "envs": dict(container.envs),
                "annotations": dict(container.annotations),
                "cdi_devices": list(container.cdi_devices),
            }
            for container in pod.containers
        ],
    }
    if pod.turned_away:
        described |= {"reason": pod.refusals[-1].reason, "message": pod.refusals[-1].message}
    described["refusals"] = [{"reason": refusal.reason, "message": refusal.message} for refusal in pod.refusals]
    return described
