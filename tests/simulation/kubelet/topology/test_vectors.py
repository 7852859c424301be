"""What kubelet 1.36.2 did in 53 situations, recorded from the real device manager and Topology Manager, and here again.

In a vector, hints read `0P 01`: NUMA nodes, P for preferred, `*` for no mask. `call` is what GetPreferredAllocation was
asked, or null; `alloc` the ids of the Allocate call; `taken` what another pod had before; `cpu` the hints of a second
provider; steps are init containers (i), sidecars (s) and app containers (a).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet.devices import PluginDevice
from gpustow.simulation.kubelet.journal import TopologyDecided
from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.topology.hints import Hint, Hints
from gpustow.simulation.kubelet.topology.masks import Mask
from gpustow.simulation.kubelet.topology.merge import merge_hints
from gpustow.simulation.kubelet.topology.settings import TopologySettings
from tests.simulation.kubelet.core import THING, Core, listed

Vector = Mapping[str, Any]

VECTORS: list[Vector] = [
    json.loads(line) for line in Path(__file__).with_name("vectors.jsonl").read_text(encoding="utf-8").splitlines()
]

LAYOUTS: dict[str, list[PluginDevice]] = {
    "L8": listed("d0 d1 d2 d3", (0,)) + listed("d4 d5 d6 d7", (1,)),
    "L4": listed("d0 d1", (0,)) + listed("d2 d3", (1,)),
    "L24": listed("a0 a1", (0,)) + listed("b0 b1 b2 b3", (1,)),
    "LM": listed("a0 a1", (0,)) + listed("b0 b1", (1,)) + listed("x0 x1"),
    "LX": listed("m0 m1", (0, 1)) + listed("a0", (0,)) + listed("b0", (1,)),
    "LN": listed("d0 d1 d2 d3"),
    "L1": listed("d0 d1 d2 d3", (1,)),
    "LU": listed("a0", (0,)) + listed("u0", (7,)),
    "L22": listed("d0 d1", (0,)) + listed("d2 d3", (1,)) + listed("d4 d5", (2,)) + listed("d6 d7", (3,)),
}

DISTANCES = {
    "V52": {0: (10, 20, 30, 12), 1: (20, 10, 12, 30), 2: (30, 12, 10, 20), 3: (12, 30, 20, 10)},
    "V53": {0: (10, 20, 30, 12), 1: (20, 10, 13, 30), 2: (30, 13, 10, 20), 3: (12, 30, 20, 10)},
}

REASONS = {"TAE": "TopologyAffinityError", "UAE": "UnexpectedAdmissionError"}

SEEDS = 40
"""Seeds to try where kubelet's own choice was arbitrary and the vector has one of several outcomes."""

ARBITRARY = {"V42", "V47"}
"""Vectors in which a container takes part of a pool."""


def hint_of(text: str) -> Hint:
    nodes = text.removesuffix("P")
    return Hint(None if nodes == "*" else Mask.of(int(node) for node in nodes), text.endswith("P"))


def hints_text(hints: Hints) -> str | None:
    of_thing = hints[THING]
    return None if of_thing is None else " ".join(map(str, of_thing))


@dataclass(frozen=True)
class SecondProvider:
    """Gives the same hints to everybody, as a CPU manager would."""

    text: str

    def _hints(self) -> Hints:
        return {"cpu": tuple(hint_of(part) for part in self.text.split())}

    def hints(self, pod: Pod, container: Container) -> Hints:
        del pod, container
        return self._hints()

    def pod_hints(self, pod: Pod) -> Hints:
        del pod
        return self._hints()

    async def allocate(self, pod: Pod, container: Container) -> None:
        del pod, container


def settings_of(vector: Vector) -> TopologySettings:
    closest = vector.get("opt") == "closest"
    return TopologySettings(
        policy=vector["pol"],
        scope=vector.get("scope", "container"),
        numa_nodes=tuple(range(vector.get("numa", 2))),
        options={"prefer-closest-numa-nodes": "true"} if closest else {},
        distances=DISTANCES[vector["id"]] if closest else {},
    )


def steps_of(vector: Vector) -> list[Vector]:
    return vector.get("steps") or [{"c": "a", **vector}]


def pod_of(vector: Vector) -> Pod:
    containers = [
        (step["c"], Container(f"c{number}", {THING: step["n"]}, restartable=step["c"] == "s"))
        for number, step in enumerate(steps_of(vector))
    ]
    return Pod(
        "tested",
        containers=tuple(container for kind, container in containers if kind == "a"),
        init_containers=tuple(container for kind, container in containers if kind != "a"),
        uid="uid-tested",
    )


async def occupy(core: Core, devices: str) -> None:
    """Another pod takes these devices, as they lie, past the Topology Manager."""
    names = devices.split()
    endpoint = core.plug(core.manager.state.table.listed[THING].values())
    endpoint.prefer = lambda *_: names
    other = Pod("other", containers=(Container("main", {THING: len(names)}),), uid="uid-other")
    core.activate(other)
    await core.manager.allocate(other, other.containers[0])
    core.journal.clear()
    endpoint.prefer = None


def decision(made: TopologyDecided) -> tuple[str | None, str]:
    return hints_text(made.hints[0]), str(made.merged)


async def replay(vector: Vector, seed: int) -> dict[str, Any]:
    """What the imitation does, in the words of the vectors."""
    providers = [SecondProvider(vector["cpu"])] if "cpu" in vector else []
    core = Core(seed, settings=settings_of(vector), providers=providers)
    core.plug(LAYOUTS[vector["L"]])
    if "taken" in vector:
        await occupy(core, vector["taken"])
    reason = None
    try:
        await core.admit(pod_of(vector))
    except AdmissionError as error:
        reason = error.reason
    return {
        "calls": core.asked(),
        "allocs": core.allocated(),
        "decisions": [decision(made) for made in core.journal.decisions],
        "reason": reason,
    }


def expected(vector: Vector) -> dict[str, Any]:
    steps = steps_of(vector)
    decided = [vector] if vector.get("scope") == "pod" else [step for step in steps if "hints" in step]
    return {
        "calls": [tuple(step["call"]) for step in steps if step["call"]],
        "allocs": [step["alloc"] for step in steps if "alloc" in step],
        "decisions": [(step["hints"], step["merged"]) for step in decided],
        "reason": None if vector["admit"] else REASONS[vector["reason"]],
    }


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
async def test_kubelet_does_the_same_in_vector(vector: Vector) -> None:
    if vector["id"] in ARBITRARY:
        assert expected(vector) in [await replay(vector, seed) for seed in range(SEEDS)]
    else:
        for seed in range(3):
            assert await replay(vector, seed) == expected(vector)


def test_all_vectors_are_there() -> None:
    assert [vector["id"] for vector in VECTORS] == [f"V{number:02}" for number in range(1, 54)]


async def admit_again_with(core: Core, size: int) -> str:
    """The container `main` of pod `a`, which holds two devices, now asks for another number."""
    with pytest.raises(AdmissionError) as refused:
        await core.admit(Pod("a", containers=(Container("main", {THING: size}),), uid="uid-a"))
    return f"{refused.value.reason}: {refused.value.status_message}"


@pytest.mark.parametrize("scope", ["container", "pod"])
async def test_w1_a_container_that_now_asks_for_another_number_has_no_hints(scope: str) -> None:
    strict = Core(settings=TopologySettings("restricted", scope, (0, 1)))
    strict.plug(LAYOUTS["L8"])
    await strict.admit(Pod("a", containers=(Container("main", {THING: 2}),), uid="uid-a"))
    assert "TopologyAffinityError" in await admit_again_with(strict, 3)
    assert hints_text(strict.journal.decisions[-1].hints[0]) == ""


@pytest.mark.parametrize("policy", ["none", "best-effort"])
async def test_w1_and_without_a_strict_policy_fails_in_the_allocation(policy: str) -> None:
    core = Core(settings=TopologySettings(policy, "container", (0, 1)))
    core.plug(LAYOUTS["L8"])
    await core.admit(Pod("a", containers=(Container("main", {THING: 2}),), uid="uid-a"))
    assert await admit_again_with(core, 3) == (
        "UnexpectedAdmissionError: Allocate failed due to "
        'pod "uid-a" container "main" changed request for resource "example.com/thing" from 2 to 3, which is unexpected'
    )


def test_w2_two_lists_that_prefer_different_nodes_meet_on_one_node_without_preference() -> None:
    lists = [[hint_of("0P"), hint_of("12")], [hint_of("1P"), hint_of("12")]]
    assert str(merge_hints(lists, Mask.of((0, 1, 2)))) == "1"


def test_w3_the_most_demanding_list_decides_how_many_nodes_the_result_has() -> None:
    lists = [[hint_of("01P")], [hint_of("01"), hint_of("12P")]]
    assert str(merge_hints(lists, Mask.of((0, 1, 2)))) == "01"


def chain(*kinds_and_sizes: tuple[str, int]) -> Pod:
    return pod_of({"steps": [{"c": kind, "n": size} for kind, size in kinds_and_sizes]})


async def test_w4_pod_scope_counts_the_effective_limit_and_later_containers_reuse() -> None:
    core = Core(settings=TopologySettings("restricted", "pod", (0, 1)))
    core.plug(LAYOUTS["L8"])
    pod = chain(("i", 3), ("s", 1), ("i", 2), ("a", 2), ("a", 1))
    await core.admit(pod)
    assert [decision(made) for made in core.journal.decisions] == [("0P 1P 01", "0P")]
    assert core.asked() == [("d0 d1 d2 d3", "", 3)]
    assert core.allocated()[-1] == "d3"
    again = core.restart(running=[])
    again.plug(LAYOUTS["L8"])
    await again.admit(pod)
    assert [decision(made) for made in again.journal.decisions] == [("0P 01", "0P")]
    assert (again.allocated(), again.asked()) == ([], [])


async def test_w5_pod_scope_of_a_sidecar_and_an_init_container() -> None:
    core = Core(settings=TopologySettings("restricted", "pod", (0, 1)))
    core.plug(LAYOUTS["L8"])
    pod = chain(("s", 1), ("i", 4), ("a", 1))
    await core.admit(pod)
    assert [decision(made) for made in core.journal.decisions] == [("01P", "01P")]
    again = core.restart(running=[])
    again.plug(LAYOUTS["L8"])
    await again.admit(pod)
    assert [decision(made) for made in again.journal.decisions] == [("01P", "01P")]


async def test_w6_an_amount_of_zero_has_hints_and_no_call() -> None:
    core = Core(settings=TopologySettings("restricted", "container", (0, 1)))
    core.plug(LAYOUTS["L4"])
    await core.admit(chain(("a", 0)))
    assert [decision(made) for made in core.journal.decisions] == [("0P 1P 01", "0P")]
    assert (core.allocated(), core.asked()) == ([], [])


async def test_w7_an_amount_of_zero_is_refused_when_no_device_is_healthy() -> None:
    core = Core()
    core.plug(listed("d0 d1", (0,), "Unhealthy"))
    with pytest.raises(AdmissionError, match="no healthy devices present; cannot allocate unhealthy devices"):
        await core.admit(chain(("a", 0)))


async def test_w8_unhealthy_devices_count_for_preference_and_not_for_the_allocation() -> None:
    layout = listed("d0 d1", (0,), "Unhealthy") + listed("d2 d3", (1,))
    core = Core(settings=TopologySettings("restricted", "container", (0, 1)))
    core.plug(layout)
    await core.admit(chain(("a", 2)))
    assert [decision(made) for made in core.journal.decisions] == [("1P 01", "1P")]
    assert (core.asked(), core.allocated()) == ([], ["d2 d3"])
    core.active.clear()
    with pytest.raises(AdmissionError, match="Topology locality"):
        await core.admit(Pod("more", containers=(Container("main", {THING: 3}),), uid="uid-more"))
    assert decision(core.journal.decisions[-1])[0] == ""
