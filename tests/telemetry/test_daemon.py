"""What a whole daemon tells, over its socket."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import psutil
import pytest

from gpustow.errors import HardwareError
from gpustow.simulation.kubelet import EmbeddedKubelet
from tests.plugin.source import xid
from tests.telemetry.client import fetch
from tests.telemetry.daemon import daemon, samples, value

GPU = "nvidia.com/gpu"
SHARED = "version: v1\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n"


async def test_metrics_and_status_tell_the_numbers_of_the_pods_that_were_admitted(tmp_path: Path) -> None:
    async with daemon(
        tmp_path, "hgx-h100-mig", mig_strategy="mixed", shared_devices_allocation_policy="packed"
    ) as running:
        await running.ready()
        resources = [resource["name"] for resource in (await running.status())["resources"]]
        assert len(resources) > 2
        held: dict[str, tuple[str, str]] = {}
        for number, resource in enumerate((resources[0], resources[0], resources[-1])):
            ids = await running.admit(f"pod-{number}", resource, 1)
            held |= dict.fromkeys(ids, (resource, f"pod-{number}"))
        await running.supervisor.read_usage()
        await running.until(lambda: running.supervisor.not_ready is None)
        status, scrape = await running.status(), samples(await running.metrics())
        assert status["useIsListed"]
        # the status names each pod with what kubelet gave it, and nothing else
        told = {
            slot["id"]: (device["resource"], slot["holders"][0]["pod"])
            for gpu in status["gpus"]
            for device in gpu["devices"]
            for slot in device["held"]
        }
        assert told == held
        # and its numbers are those of kubelet and of the metrics
        allocatable = running.kubelet.allocatable()
        for resource in status["resources"]:
            name = resource["name"]
            assert resource["healthy"] == allocatable[name]
            assert resource["used"] == sum(mine == name for mine, _ in held.values())
            assert value(scrape, "gpustow_devices", resource=name, health="healthy") == resource["healthy"]
            assert value(scrape, "gpustow_devices", resource=name, health="unhealthy") == 0
            assert value(scrape, "gpustow_devices_used", resource=name) == resource["used"]
            assert value(scrape, "gpustow_kubelet_streams", resource=name) == resource["streams"] == 1
            assert value(scrape, "gpustow_plugin_state", resource=name, state="streaming") == 1
        for gpu in status["gpus"]:
            labels = {"gpu": str(gpu["index"]), "uuid": gpu["uuid"]}
            assert value(scrape, "gpustow_gpu_used_ratio", **labels) == gpu["usedShare"]
            for state in ("used", "free", "unhealthy"):
                told_slots = sum(device[state] for device in gpu["devices"])
                slots = sum(
                    count
                    for (name, pairs), count in scrape.items()
                    if name == "gpustow_gpu_slots" and {**labels, "state": state}.items() <= dict(pairs).items()
                )
                assert slots == told_slots
        assert value(scrape, "gpustow_gpus_wholly_free") == len(status["whollyFreeGpus"])
        assert value(scrape, "gpustow_ready") == status["readiness"]["ready"] == 1
        assert value(scrape, "gpustow_allocations_total", resource=resources[0]) == 2
        assert [decision["resource"] for decision in status["decisions"]] == [resources[-1], resources[0], resources[0]]
        decided = sum(count for (name, _), count in scrape.items() if name == "gpustow_placements_total")
        assert decided == len(status["decisions"])


async def test_decisions_are_told_with_their_reasons_and_counted_by_what_decided(tmp_path: Path) -> None:
    async with daemon(tmp_path, "t4-4", SHARED, shared_devices_allocation_policy="packed") as running:
        await running.ready()
        await running.admit("first", GPU, 1)
        await running.admit("second", GPU, 2)
        newest, _ = (await running.status())["decisions"]
        scrape = samples(await running.metrics())
        assert newest["sentence"].startswith("packed takes")
        assert newest["decidedBy"] == "idle GPUs opened"
        assert 0 <= newest["seconds"] < 60
        labels = {"resource": GPU, "policy": "packed"}
        assert value(scrape, "gpustow_placements_total", decided_by="idle GPUs opened", **labels) == 1
        assert value(scrape, "gpustow_placement_decision_seconds_count", **labels) == 2
        assert value(scrape, "gpustow_list_sends_total", resource=GPU) >= 1
        assert value(scrape, "gpustow_list_bytes_total", resource=GPU) > 16


async def test_a_sick_gpu_makes_it_not_ready_and_leaves_it_alive(tmp_path: Path) -> None:
    async with daemon(tmp_path, "t4-4") as running:
        await running.ready()
        assert (await fetch(running.port, "/readyz")).status == 200
        node = running.read()
        uuid = node.gpus[1].uuid
        running.source.events.put(xid(79, uuid))
        await running.until(lambda: running.supervisor.not_ready is not None)
        ready, live = await fetch(running.port, "/readyz"), await fetch(running.port, "/livez")
        assert (ready.status, live.status) == (503, 200)
        assert "[-]devices failed: unhealthy: " in ready.text
        assert "[+]plugin:nvidia.com/gpu ok" in ready.text
        health = (await running.status())["gpus"][1]["health"]
        assert health["state"] == "unhealthy"
        assert health["reason"].startswith("XID 79")
        assert abs(health["since"] - (await running.status())["at"]) < 3600
        scrape = samples(await running.metrics())
        assert value(scrape, "gpustow_xid_errors_total", uuid=uuid, xid="79") == 1
        assert value(scrape, "gpustow_gpu_healthy", gpu="1", uuid=uuid) == 0
        assert value(scrape, "gpustow_gpu_healthy", gpu="0", uuid=node.gpus[0].uuid) == 1
        transition = {"uuid": uuid, "scope": "gpu", "to": "unhealthy", "cause": "xid 79"}
        assert value(scrape, "gpustow_health_transitions_total", **transition) == 1


async def test_probes_answer_before_the_node_can_be_read(tmp_path: Path) -> None:
    async with daemon(tmp_path, "t4-4", fail_on_init_error="false") as running:
        good, running.answer = running.answer, HardwareError("the driver is gone")
        await running.listens()
        assert (await fetch(running.port, "/livez")).status == 200
        await running.until(lambda: "driver is gone" in str(running.supervisor.not_ready))
        ready = await fetch(running.port, "/readyz")
        assert ready.status == 503
        assert "[-]node failed: the driver is gone" in ready.text
        assert (await running.status())["gpus"] == []
        running.answer = good
        await running.ready()
        assert (await fetch(running.port, "/readyz")).status == 200


async def test_a_refused_reload_is_told_and_a_good_one_takes_it_back(tmp_path: Path) -> None:
    async with daemon(tmp_path, "t4-4") as running:
        await running.ready()
        running.text = "version: v0\n"
        running.supervisor.reload()
        await running.until(lambda: running.supervisor.not_ready is not None)
        assert "[-]configuration failed: the reload is refused" in (await fetch(running.port, "/readyz")).text
        before = samples(await running.metrics())
        assert value(before, "gpustow_config_last_reload_successful") == 0
        assert value(before, "gpustow_config_reloads_total", result="refused") >= 1
        running.text = "version: v1\nflags: {migStrategy: mixed}\n"
        running.supervisor.reload()
        await running.ready()
        after = samples(await running.metrics())
        assert value(after, "gpustow_config_last_reload_successful") == 1
        assert value(after, "gpustow_config_reloads_total", result="ok") >= 1
        settings = {each["name"]: each["value"] for each in (await running.status())["config"]["settings"]}
        assert settings["flags.migStrategy"] == "mixed"


async def test_a_reload_can_end_listening_and_begin_it_again(tmp_path: Path) -> None:
    on = "version: v1\ntelemetry: {address: '127.0.0.1:0'}\n"
    async with daemon(tmp_path, "t4-4", on, metrics_address=None) as running:
        await running.ready()
        telemetry = running.supervisor._telling.telemetry
        assert telemetry is not None
        running.text = "version: v1\n"
        running.supervisor.reload()
        await running.until(lambda: not telemetry.ports)
        running.text = on
        running.supervisor.reload()
        await running.ready()
        assert value(samples(await running.metrics()), "gpustow_config_reloads_total", result="ok") >= 2


async def test_a_device_that_left_says_so_and_since_when(tmp_path: Path) -> None:
    async with daemon(tmp_path, "t4-4") as running:
        await running.ready()
        ids = await running.admit("pod", GPU, 4)
        await running.supervisor.read_usage()
        node = running.read()
        running.answer = type(node)(node.name, node.platform, node.gpus[:3], node.links)
        running.supervisor.rescan()
        await running.until(lambda: "not found any more" in str(running.supervisor.not_ready))
        gpu = (await running.status())["gpus"][3]
        assert (gpu["found"], gpu["served"]) == (False, True)
        assert gpu["health"]["reason"] == "it is not found any more"
        assert gpu["health"]["since"] is not None
        assert gpu["devices"][0]["used"] == 1
        assert gpu["uuid"] in ids


@pytest.mark.slow
@pytest.mark.parametrize("address", [None, "127.0.0.1:0"])
async def test_a_daemon_listens_nowhere_unless_it_is_told_to(tmp_path: Path, address: str | None) -> None:
    """What a scan of all ports would find: the sockets of the process that take connections."""
    async with EmbeddedKubelet(tmp_path, random=Random(1)) as kubelet:
        words = [f"--kubelet-socket={kubelet.registration_socket}", "--node-model=t4-4", "--log-level=error"]
        words += [] if address is None else [f"--metrics-address={address}"]
        environ = {name: text for name, text in os.environ.items() if not name.startswith("GPUSTOW_")}
        process = subprocess.Popen(  # noqa: ASYNC220 - starting it takes no time that matters
            [Path(sys.executable).with_name("gpustow"), "plugin", *words], env=environ
        )
        try:
            await kubelet.wait_for(GPU, at_least=4, timeout=60)
            found = psutil.Process(process.pid).net_connections(kind="inet")
            listening = [each.laddr for each in found if each.status == psutil.CONN_LISTEN]
            if address is None:
                assert found == []
            else:
                [(host, port)] = listening
                assert host == "127.0.0.1"
                assert (await fetch(port, "/livez")).text == "ok\n"
                assert (await fetch(port, "/nowhere")).status == 404
                assert (await fetch(port, "/metrics", "POST")).status == 405
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 30)
    assert process.returncode == 0
