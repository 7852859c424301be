"""Each alert fires when what it is about is broken, on a daemon that runs, and is quiet otherwise."""

import json
import re
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped] # it has no types
import pytest
import yaml

from gpustow.errors import HardwareError
from gpustow.hardware.node import Node
from gpustow.hardware.nvml.library import NvmlFailure
from gpustow.placement import Placement, place
from gpustow.telemetry.catalogue import CATALOGUE
from gpustow.telemetry.metric import MetricKind
from tests.hardware.nvml.test_observer import nvml
from tests.plugin.source import xid
from tests.telemetry.alerting import RULES, alerts, check, needs_promtool
from tests.telemetry.daemon import Daemon, daemon

MONITORING = RULES.parent
GPU = "nvidia.com/gpu"
TEXT = (
    "version: v1\nsharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: gpu, replicas: 4}]}}\n"
)
NOT_READY = "GpustowNotReady"
DEVICES = "GpustowDevicesUnhealthy"
UNHEALTHY = "GpustowGpuUnhealthy"

Break = Callable[[Daemon, pytest.MonkeyPatch], Awaitable[None]]


def node_of(running: Daemon) -> Node:
    node = running.read()
    assert len(node.gpus) == 4
    return node


async def not_ready(running: Daemon, why: str) -> None:
    await running.until(lambda: why in str(running.supervisor.not_ready))


async def an_xid_comes(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    running.source.events.put(xid(79, node_of(running).gpus[2].uuid))
    await not_ready(running, "XID 79")


async def an_ignored_xid_comes(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    running.source.events.put(xid(13, node_of(running).gpus[2].uuid))
    telemetry = running.supervisor._telling.telemetry
    assert telemetry is not None
    await running.until(lambda: any(each.labels[-1] == "13" for each in telemetry.health.samples() if each.labels))


async def a_gpu_cannot_be_read(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    node = node_of(running)
    running.answer = replace(node, gpus=node.gpus[:3], unreadable=(3,))
    running.supervisor.rescan()
    await not_ready(running, "lost or cannot be read")


async def the_driver_is_gone(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    running.answer = HardwareError("the driver is gone")
    running.supervisor.rescan()
    await not_ready(running, "the driver is gone")


async def the_source_of_health_breaks(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    running.source.broken = True
    await not_ready(running, "health is not watched")


async def a_bad_file_is_given(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    running.text = "version: v0\n"
    running.supervisor.reload()
    await not_ready(running, "the reload is refused")


async def kubelet_stops(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    await running.kubelet.stop()
    await not_ready(running, "is init")


async def kubelet_restarts_again_and_again(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        await running.kubelet.restart()
        await running.until(lambda least=number + 2: len(running.kubelet.registrations) >= least)  # type: ignore[misc]
        await running.ready()


async def a_pod_asks_for_what_is_refused(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    assert await running.is_refused("greedy", GPU, 2)


async def decisions_are_slow(running: Daemon, patch: pytest.MonkeyPatch) -> None:
    def slow(*arguments: Any) -> Placement:
        placement = place(*arguments)
        time.sleep(0.03)
        return placement

    patch.setattr("gpustow.plugin.service.place", slow)
    for number in range(3):
        await running.admit(f"slow-{number}", GPU, 1)


async def decisions_fail(running: Daemon, patch: pytest.MonkeyPatch) -> None:
    def failing(*_arguments: Any) -> Placement:
        raise ZeroDivisionError

    patch.setattr("gpustow.plugin.service.place", failing)
    await running.admit("pod", GPU, 1)


async def pod_resources_go_away(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    running.kubelet.pod_resources_socket.unlink()
    await running.supervisor.read_usage()


async def the_driver_hangs(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    library, over = nvml(running.nvml_counts, deadline=0.01)
    with pytest.raises(NvmlFailure):
        library.call("hangs")
    over.set()


async def the_daemon_ends(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    running.supervisor.stop()
    await running.until(lambda: running.supervisor.not_ready == "it has ended")


async def pods_come_and_go(running: Daemon, _patch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        await running.admit(f"pod-{number}", GPU, 1)
    running.kubelet.remove("default", "pod-0")
    await running.supervisor.read_usage()


SCENARIOS: dict[Break, set[str]] = {
    pods_come_and_go: set(),
    an_ignored_xid_comes: {"GpustowXid"},
    an_xid_comes: {"GpustowXid", UNHEALTHY, DEVICES, NOT_READY},
    a_gpu_cannot_be_read: {"GpustowGpuUnreadable", UNHEALTHY, DEVICES, NOT_READY},
    the_driver_is_gone: {"GpustowNodeNotReadable", NOT_READY},
    the_source_of_health_breaks: {"GpustowHealthNotWatched", UNHEALTHY, DEVICES, NOT_READY},
    a_bad_file_is_given: {"GpustowConfigRefused", NOT_READY},
    kubelet_stops: {"GpustowNoKubeletStream", NOT_READY},
    kubelet_restarts_again_and_again: {"GpustowRegistersAgainAndAgain"},
    a_pod_asks_for_what_is_refused: {"GpustowAllocationFails"},
    decisions_are_slow: {"GpustowDecidesSlowly"},
    decisions_fail: {"GpustowDecisionsFail"},
    pod_resources_go_away: {"GpustowUseNotListed"},
    the_driver_hangs: {"GpustowDriverHangs"},
    the_daemon_ends: {"GpustowDown"},
}


@needs_promtool
@pytest.mark.parametrize("break_it", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_what_is_broken_is_told_and_nothing_else(
    break_it: Break, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with daemon(tmp_path, "t4-4", TEXT) as running:
        await running.ready()
        await running.admit("first", GPU, 1)
        await running.supervisor.read_usage()
        before = await running.metrics()
        await break_it(running, monkeypatch)
        after = None if break_it is the_daemon_ends else await running.metrics()
    check(tmp_path, before, after, SCENARIOS[break_it])


def test_every_alert_is_tried() -> None:
    assert {alert["alert"] for alert in alerts()} == set().union(*SCENARIOS.values())


def test_every_alert_says_what_it_means_and_what_to_do() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in {"critical", "warning", "info"}
        assert alert["annotations"].keys() == {"summary", "description"}
        assert "{{ $labels.instance }}" in alert["annotations"]["summary"]


def named() -> set[str]:
    """What a scrape calls the metrics of the catalogue."""
    suffixes = {MetricKind.HISTOGRAM: ("_bucket", "_sum", "_count"), MetricKind.SUMMARY: ("_sum", "_count")}
    return {metric.name + suffix for metric in CATALOGUE for suffix in suffixes.get(metric.kind, ("",))}


def expressions() -> Iterator[str]:
    yield from (alert["expr"] for alert in alerts())
    yield from (target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ()))


def dashboard() -> Any:
    return json.loads((MONITORING / "gpustow-dashboard.json").read_text(encoding="utf-8"))


def test_rules_and_dashboard_use_metrics_that_there_are() -> None:
    for expression in expressions():
        used = set(re.findall(r"\bgpustow_\w+", expression))
        assert used <= named(), expression


@needs_promtool
def test_the_expressions_of_the_dashboard_can_be_evaluated(tmp_path: Path) -> None:
    records = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(expressions())
    ]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": records}]}), encoding="utf-8")
    ended = subprocess.run(
        ["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_dashboard_has_panels_that_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place_ = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place_["x"], place_["x"] + place_["w"])
            for y in range(place_["y"], place_["y"] + place_["h"])
        }
        assert not cells & taken, panel["title"]
        assert all(x < 24 for x, _ in cells)
        taken |= cells


def test_the_service_monitor_finds_the_pods_of_the_daemon_set() -> None:
    service, monitor = yaml.safe_load_all((MONITORING / "gpustow-servicemonitor.yaml").read_text(encoding="utf-8"))
    assert kubernetes_validate.validate(service, "1.34", strict=True)
    [daemon_set] = yaml.safe_load_all((MONITORING.parent / "static" / "gpustow-device-plugin.yaml").read_text("utf-8"))
    labels = daemon_set["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["metadata"]["namespace"] == service["metadata"]["namespace"] == daemon_set["metadata"]["namespace"]
    [endpoint] = monitor["spec"]["endpoints"]
    assert [port["name"] for port in service["spec"]["ports"]] == [endpoint["port"]]
    job = service["metadata"]["labels"][monitor["spec"]["jobLabel"]]
    assert re.fullmatch(".*gpustow.*", job), "GpustowDown finds the job by this"


@needs_promtool
@pytest.mark.parametrize("expected", [set(), {"GpustowDown", NOT_READY}])
def test_the_trial_itself_fails_where_other_alerts_fire_than_expected(tmp_path: Path, expected: set[str]) -> None:
    with pytest.raises(AssertionError, match="GpustowDown"):
        check(tmp_path, "gpustow_ready 1\n", None, expected)
