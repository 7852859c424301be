import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustow.errors import ConfigError, GpustowError, NoDevicesError, UsageError
from gpustow.hardware.nodemodel import load_node_model, parse_node_model
from gpustow.plugin import Supervisor
from gpustow.simulation.experiment import Experiment
from gpustow.simulation.outcome import Advertised, Outcome, Phase
from gpustow.simulation.report import render_json
from gpustow.simulation.scenario import FIRST_NODE_MODEL, default_flags, three_pods
from gpustow.simulation.workload import parse_workload

GPU = "nvidia.com/gpu"
SHARED_POLICY = "shared-devices-allocation-policy"


def experiment(workload: object = None, *, model: str = FIRST_NODE_MODEL, **flags: object) -> Experiment:
    node_model = load_node_model(model)
    return Experiment(
        node_model=node_model,
        workload=three_pods(GPU) if workload is None else parse_workload(yaml.safe_dump(workload), "w.yaml"),
        flags=flags or default_flags(node_model.node),
    )


def pods_of(outcome: Outcome) -> dict[str, Phase]:
    return {pod.key: pod.phase for pod in outcome.pods}


def pod(name: str, amount: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "limits": {GPU: amount}} | more


@pytest.mark.parametrize(("policy", "wholly_free"), [("distributed", 1), ("packed", 3)])
async def test_three_pods_of_one_device_on_four_gpus_of_five(policy: str, wholly_free: int) -> None:
    outcome = await experiment().run(policy)
    assert len(outcome.wholly_free_gpus()) == wholly_free
    assert outcome.policy == policy
    assert outcome.advertised == {GPU: Advertised(20, 20)}
    assert set(pods_of(outcome).values()) == {Phase.RUNNING}


async def test_each_container_gets_what_its_pod_shows() -> None:
    outcome = await experiment().run("packed")
    for result in outcome.pods:
        [device] = result.device_ids
        [container] = result.containers
        assert container.device_ids == {GPU: (device,)}
        assert container.envs == {"NVIDIA_VISIBLE_DEVICES": device}


async def test_the_same_experiment_has_the_same_outcome() -> None:
    many = {"pods": [pod("p", 3, count=6)]}
    first, second = [render_json([await experiment(many).run("distributed")]) for _ in range(2)]
    assert first == second


async def test_released_devices_can_be_had_again() -> None:
    workload = {
        "pods": [pod("all", 20), pod("late", 20)],
        "steps": [{"admit": "all"}, {"release": "all"}, {"admit": "late"}],
    }
    outcome = await experiment(workload).run("packed")
    assert pods_of(outcome) == {"default/all": Phase.RELEASED, "default/late": Phase.RUNNING}


async def test_a_pod_that_comes_again_counts_once_and_as_it_stands_at_the_end() -> None:
    workload = {"pods": [pod("a", 1)], "steps": [{"admit": "a"}, {"release": "a"}, {"admit": "a"}]}
    assert pods_of(await experiment(workload).run("packed")) == {"default/a": Phase.RUNNING}


async def test_a_refused_pod_is_part_of_the_outcome_and_can_be_released() -> None:
    workload = {"pods": [pod("big", 21), pod("small", 1)], "steps": [{"admit": ["big", "small"]}, {"release": "big"}]}
    outcome = await experiment(workload).run("packed")
    assert pods_of(outcome) == {"default/big": Phase.REFUSED, "default/small": Phase.RUNNING}
    [refused] = outcome.refused()
    [refusal] = refused.refusals
    assert refusal.reason == "UnexpectedAdmissionError"
    assert "21" in refusal.message


async def test_a_refusal_is_kept_when_the_pod_is_admitted_later() -> None:
    workload = {
        "pods": [pod("all", 20), pod("a", 1)],
        "steps": [{"admit": ["all", "a"]}, {"release": ["all", "a"]}, {"admit": "a"}, {"release": "a"}],
    }
    outcome = await experiment(workload).run("packed")
    assert pods_of(outcome)["default/a"] is Phase.RELEASED
    assert [(refused.key, len(refused.refusals)) for refused in outcome.refused()] == [("default/a", 1)]


async def test_without_a_policy_that_of_the_configuration_holds(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("flags: {plugin: {sharedDevicesAllocationPolicy: packed}, migStrategy: single}", encoding="utf-8")
    asked = experiment(**{"config-file": str(config)})
    assert (await asked.run()).policy == "packed"
    assert (await asked.run("distributed")).policy == "distributed"


async def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIG_STRATEGY", "mixed")
    monkeypatch.setenv("KUBELET_SOCKET", "/nowhere/kubelet.sock")
    assert (await experiment().run("packed")).advertised.keys() == {GPU}


async def test_progress_is_told_after_each_action() -> None:
    told: list[tuple[int, int]] = []
    await experiment().run("packed", lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_nothing_is_left_behind() -> None:
    async def run(parent: Path) -> None:
        await replace(experiment(), parent=parent).run("packed")
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with tempfile.TemporaryDirectory() as parent:  # pytest's own is too deep for sockets
        asyncio.run(run(Path(parent)))
        assert list(Path(parent).iterdir()) == []


async def test_warnings_of_the_configuration_are_part_of_the_outcome() -> None:
    outcome = await experiment(model="t4-4", **{"imex-required": "true"}).run("packed")
    assert any("imex.required" in warning for warning in outcome.warnings)


async def test_a_node_without_devices_ends_the_experiment() -> None:
    bare = parse_node_model("name: bare\ngpus: []\n", "bare.yaml")
    with pytest.raises(NoDevicesError):
        await replace(experiment(), node_model=bare).run("packed")


async def test_a_daemon_that_ends_by_itself_ends_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ends(_self: object) -> None:
        return

    monkeypatch.setattr("gpustow.plugin.Supervisor.run", ends)
    with pytest.raises(GpustowError, match="the plugin ended before the workload did"):
        await experiment().run("packed")


async def test_a_daemon_that_does_not_register_ends_the_experiment_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hangs(self: Supervisor) -> None:
        await self._stop_asked.wait()

    monkeypatch.setattr("gpustow.plugin.Supervisor.run", hangs)
    monkeypatch.setattr("gpustow.simulation.experiment.REGISTRATION_SECONDS", 0.01)
    with pytest.raises(GpustowError) as ended:
        await experiment().run("packed")
    assert str(ended.value).startswith("kubelet knows 0 of the 20 healthy devices of nvidia.com/gpu after 0.01 s: ")
    assert "it has just been started" in str(ended.value)
    assert "--log-level=info" in str(ended.value)


async def test_a_directory_that_is_too_deep_for_sockets_is_told(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with pytest.raises(UsageError, match=r"too long for sockets in it\n  Set TMPDIR"):
        await replace(experiment(), parent=deep).run("packed")


def test_an_unknown_policy_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="tight"):
        experiment().config("tight")


async def test_what_one_resource_holds_counts_for_another_until_it_is_given_back() -> None:
    large, small, middle = (f"nvidia.com/mig-{profile}" for profile in ("3g.40gb", "1g.10gb", "2g.20gb"))
    outcome = await experiment(
        {
            "pods": [
                {"name": "large", "limits": {large: 1}},
                {"name": "small", "limits": {small: 1}},
                {"name": "middle", "limits": {middle: 1}},
            ],
            "steps": [{"admit": "large"}, {"admit": "small"}, {"release": "large"}, {"admit": "middle"}],
        },
        model="hgx-h100-mig",
        **{"mig-strategy": "mixed", SHARED_POLICY: "distributed"},
    ).run()
    gpus = {slot.holder: slot.device.gpu_index for gpu in outcome.node.gpus for slot in outcome.slots(gpu)}
    # The first GPU was busy with the large device when the small one was placed, and idle again afterwards.
    assert (gpus["default/small"], gpus["default/middle"]) == (1, 0)


async def test_a_pod_that_asks_for_what_the_node_does_not_have_is_unschedulable_and_told() -> None:
    workload = {"pods": [{"name": "lost", "limits": {"nvidia.com/gpus": 1, "example.com/none": 0}}, pod("small", 1)]}
    outcome = await experiment(workload).run("packed")
    assert pods_of(outcome) == {"default/lost": Phase.UNSCHEDULABLE, "default/small": Phase.RUNNING}
    [lost] = outcome.refused()
    message = "there is no resource nvidia.com/gpus here; advertised: nvidia.com/gpu; did you mean nvidia.com/gpu?"
    assert [(refusal.reason, refusal.message) for refusal in lost.refusals] == [("Unschedulable", message)]
    assert outcome.warnings == (
        "w.yaml: pods[0].limits.example.com/none: 0 asks for nothing",
        f"pod default/lost: {message}",
    )


async def test_an_unschedulable_pod_holds_nothing_and_can_be_released() -> None:
    workload = {
        "pods": [{"name": "lost", "limits": {"example.com/fpga": 1}}],
        "steps": [{"admit": "lost"}, {"release": "lost"}],
    }
    outcome = await experiment(workload).run("packed")
    assert pods_of(outcome) == {"default/lost": Phase.UNSCHEDULABLE}
    assert outcome.warnings == (
        "pod default/lost: there is no resource example.com/fpga here; advertised: nvidia.com/gpu",
    )


async def test_a_policy_that_is_asked_for_takes_the_place_of_those_by_resource(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    placement = {"resources": [{"name": GPU, "policy": "packed", "cap": 1}]}
    config.write_text(yaml.safe_dump({"flags": {"migStrategy": "single"}, "placement": placement}), encoding="utf-8")
    asked = experiment(**{"config-file": str(config)})
    packed, configured = await asked.run("packed"), await asked.run()
    assert (packed.policy, len(packed.wholly_free_gpus())) == ("packed", 3)
    assert (configured.policy, len(configured.wholly_free_gpus())) == ("configured", 1)
