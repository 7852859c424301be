"""What the daemon knows, gathered from its parts for whoever shows it. Nothing is copied that is large.

The parts count time by a clock that only goes up; what is shown has the time of day, as it is now.
"""

from collections.abc import Callable, Iterator

from gpustow.config import LoadedConfig
from gpustow.hardware.node import Node
from gpustow.plugin.healthwatch import HealthWatch
from gpustow.plugin.serving import Serving
from gpustow.telemetry.facts import (
    CONFIGURATION_CHECK,
    DEVICES_CHECK,
    HEALTH_CHECK,
    NODE_CHECK,
    PLUGIN_CHECK,
    Ailment,
    Check,
    Facts,
    ServedFacts,
)


def readiness(trouble: str | None, refused: str | None, health: HealthWatch, serving: Serving) -> tuple[Check, ...]:
    """The checks: with the node and with the configuration nothing is wrong but for these reasons."""
    return (
        Check(NODE_CHECK, trouble or ""),
        Check(CONFIGURATION_CHECK, refused or ""),
        Check(HEALTH_CHECK, health.complaint or ""),
        Check(DEVICES_CHECK, "; ".join(serving.roster.complaints)),
        *(Check(f"{PLUGIN_CHECK}{name}", complaint) for name, complaint in serving.fleet.complaints.items()),
    )


def gathered(
    checks: tuple[Check, ...],
    loaded: LoadedConfig | None,
    node: Node | None,
    *,
    serving: Serving,
    health: HealthWatch,
    now: float,
    clock: Callable[[], float],
) -> Facts:
    """Everything, with the checks as they are passed; `now` is in seconds since 1970."""
    usage = serving.usage
    return Facts(
        at=now,
        checks=checks,
        loaded=loaded,
        node=node,
        served=tuple(_served(serving)),
        ailments=dict(_ailments(node, serving, health, now - clock())),
        held=usage.held,
        holders=usage.holders,
        is_listed=usage.is_listed,
    )


def _served(serving: Serving) -> Iterator[ServedFacts]:
    plugins = serving.fleet.plugins
    for name, served in serving.roster.served.items():
        plugin = plugins.get(name)
        if plugin is None:
            yield ServedFacts(served.resource, served.policy, "init", "it is about to be served", 0)
        else:
            yield ServedFacts(served.resource, served.policy, plugin.state.value, plugin.reason, plugin.streams)


def _ailments(node: Node | None, serving: Serving, health: HealthWatch, offset: float) -> Iterator[tuple[str, Ailment]]:
    """By UUID; `offset` is what is to be added to the time of the clock."""
    for uuid, (why, left_at) in serving.roster.missing().items():
        yield uuid, Ailment(why, None if left_at is None else left_at + offset)
    for uuid, card in _cards(node, serving).items():
        if reason := health.reason(uuid):
            condition = health.condition(uuid, card)
            if condition is None:
                yield uuid, Ailment(reason)
            else:
                yield uuid, Ailment(reason, condition.since + offset, condition.fitness)


def _cards(node: Node | None, serving: Serving) -> dict[str, str]:
    """The UUID of its card for each GPU and MIG device; for what is served and not found, its own."""
    cards = {
        device.uuid: device.uuid
        for served in serving.roster.served.values()
        for device in served.resource.devices
        if not device.healthy
    }
    gpus = () if node is None else node.gpus
    return cards | {uuid: gpu.uuid for gpu in gpus for uuid in (gpu.uuid, *(device.uuid for device in gpu.mig_devices))}
