"""What the parts of the daemon know, as it is shown."""

import time
from dataclasses import replace
from pathlib import Path

from gpustow.health.condition import Condition, Fitness
from gpustow.health.event import EventKind, HealthEvent
from gpustow.health.nodehealth import Conditions
from gpustow.health.target import MONITOR, Scope, Target
from gpustow.plugin.healthwatch import HealthWatch
from gpustow.plugin.knowledge import gathered, readiness
from gpustow.plugin.offer import Offer
from gpustow.plugin.roster import GONE, UNREADABLE
from gpustow.plugin.serving import Serving
from gpustow.telemetry.facts import Ailment, Facts
from tests.plugin.samples import GPU, SHORT, config, gpu, node, surroundings

NOW = 1_800_000_000.0
FAULT = HealthEvent(EventKind.XID, "GPU-1", xid=79)


class World:
    """A daemon that serves two GPUs, one of them in two MIG devices; its clock says 100."""

    def __init__(self, directory: Path) -> None:
        self.serving = Serving(surroundings(), directory)
        self.node = node(gpu(0), gpu(1, mig_devices=2))
        self.health = HealthWatch(None, self.serving.mark, SHORT.monitor)
        self.serving.roster.see(self.node)
        self.serving.roster.take(Offer.of(self.node, config(mig_strategy="mixed")))

    def facts(self) -> Facts:
        checks = readiness(None, None, self.health, self.serving)
        return gathered(checks, None, self.node, serving=self.serving, health=self.health, now=NOW, clock=lambda: 100.0)

    def finds(self, *known: Condition, monitor: Condition | None = None) -> None:
        unfit = {each.target.uuid: each.reason for each in known if not each.fit}
        if "GPU-1" in unfit:
            unfit |= dict.fromkeys(("MIG-1-0", "MIG-1-1"), unfit["GPU-1"])
        self.health._changed(Conditions(unfit, monitor or Condition(MONITOR), known))


def sick(target: Target, since: float, event: HealthEvent = FAULT) -> Condition:
    return Condition(target, Fitness.UNHEALTHY, event, since)


def test_a_resource_that_has_no_plugin_yet_is_about_to_have_one(tmp_path: Path) -> None:
    facts = World(tmp_path).facts()
    assert facts.served[0].resource.name == GPU
    assert {(served.state, served.streams) for served in facts.served} == {("init", 0)}
    assert facts.ready
    assert facts.ailments == {}


def test_the_time_of_the_clock_becomes_that_of_the_day(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.finds(sick(Target("GPU-0", "GPU-0"), 40.0))
    assert world.facts().ailments["GPU-0"].since == NOW - 60


def test_mig_devices_of_a_sick_gpu_have_its_ailment_since_its_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    own = sick(Target("MIG-1-1", "GPU-1", Scope.MIG_DEVICE), 90.0)
    world.finds(own, sick(Target("GPU-1", "GPU-1"), 40.0))
    ailments = world.facts().ailments
    assert {uuid: ailment.since for uuid, ailment in ailments.items()} == dict.fromkeys(
        ("GPU-1", "MIG-1-0", "MIG-1-1"), NOW - 60
    )


def test_a_recovering_device_says_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    condition = sick(Target("MIG-1-1", "GPU-1", Scope.MIG_DEVICE), 90.0)
    world.finds(replace(condition, fitness=Fitness.RECOVERING))
    assert world.facts().ailments == {"MIG-1-1": Ailment(condition.reason, NOW - 10, Fitness.RECOVERING)}


def test_while_nothing_is_watched_everything_is_sick_since_then(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.finds(monitor=sick(MONITOR, 70.0, HealthEvent(EventKind.SOURCE_FAILED, detail="NVML is broken")))
    facts = world.facts()
    assert {ailment.since for ailment in facts.ailments.values()} == {NOW - 30}
    assert facts.ailments.keys() == {"GPU-0", "GPU-1", "MIG-1-0", "MIG-1-1"}
    assert [check.name for check in facts.checks if not check.passed] == ["health-monitor", "devices"]


def test_a_monitor_that_crashed_has_a_reason_and_no_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.health._crashed(ZeroDivisionError())
    ailment = world.facts().ailments["GPU-0"]
    assert "ZeroDivisionError" in ailment.reason
    assert ailment.since is None


def test_what_has_left_and_what_cannot_be_read_say_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.node = replace(node(gpu(1)), unreadable=(0,))
    left_at = time.monotonic()
    world.serving.roster.see(world.node)
    world.serving.roster.take(Offer.of(world.node, config(mig_strategy="mixed")))
    ailments = world.facts().ailments
    assert ailments["GPU-0"].reason == UNREADABLE
    since = ailments["GPU-0"].since
    assert since is not None
    assert since >= NOW - 100 + left_at
    assert ailments["MIG-1-0"].reason == GONE


def test_reasons_are_told_by_check(tmp_path: Path) -> None:
    world = World(tmp_path)
    checks = {check.name: check.reason for check in readiness("no driver", "bad file", world.health, world.serving)}
    assert checks == {
        "node": "no driver",
        "configuration": "bad file",
        "health-monitor": "",
        "devices": "",
    }
