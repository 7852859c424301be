import io
import re
from collections.abc import Mapping
from dataclasses import replace

from rich.console import Console

from gpustow.config import Config
from gpustow.hardware.nodemodel import load_node_model
from gpustow.resources import build_catalog
from gpustow.simulation.outcome import ContainerOutcome, Outcome, Phase, Refusal
from gpustow.simulation.summary import MOST_PODS, print_summary
from tests.simulation.samples import RESOURCE, outcome, refused, running, unschedulable


def shown(*outcomes: Outcome, width: int = 80, environ: Mapping[str, str] | None = None) -> str:
    out = io.StringIO()
    print_summary(Console(file=out, width=width, force_terminal=False, _environ=environ or {}), outcomes, "a node")
    return out.getvalue()


def test_the_last_line_sums_up() -> None:
    text = shown(outcome("distributed", [running("a", "MIG-0-0")]), outcome("packed", []))
    assert text.splitlines()[-1] == "distributed leaves 1 GPU wholly free, packed leaves 2."


def test_each_pod_stands_with_its_devices_and_its_environment() -> None:
    lines = shown(outcome("packed", [running("a", "MIG-0-0")])).splitlines()
    at = lines.index("  A default/a  running  GPU 0 1g.5gb")
    assert lines[at + 1 : at + 3] == ["      nvidia.com/gpu: MIG-0-0", "      NVIDIA_VISIBLE_DEVICES=MIG-0-0"]


def test_a_refused_pod_stands_with_kubelets_reason() -> None:
    assert "    default/b  refused (UnexpectedAdmissionError): no room" in shown(outcome("packed", [refused("b")]))


def test_an_unschedulable_pod_stands_with_what_is_missing() -> None:
    assert "    default/b  unschedulable: no such resource\n" in shown(outcome("packed", [unschedulable("b")]))


def test_a_refusal_shows_although_the_pod_was_admitted_later() -> None:
    pod = replace(running("a", "MIG-0-0"), refusals=refused("a").refusals)
    lines = shown(outcome("packed", [pod])).splitlines()
    at = lines.index("  A default/a  running  GPU 0 1g.5gb")
    assert lines[at + 1] == "      before that refused (UnexpectedAdmissionError): no room"


def test_the_last_refusal_of_several_shows_as_how_the_pod_stands() -> None:
    [first] = refused("b").refusals
    pod = replace(refused("b"), refusals=(first, Refusal("Other", "still no room")))
    assert (
        "    default/b  refused (Other): still no room\n      before that refused (UnexpectedAdmissionError): no room\n"
    ) in shown(outcome("packed", [pod]))


def test_a_released_pod_has_no_symbol() -> None:
    gone = replace(running("a", "MIG-0-0"), phase=Phase.RELEASED)
    assert "    default/a  released  GPU 0 1g.5gb" in shown(outcome("packed", [gone]))


def test_a_pod_that_asked_for_nothing_has_no_devices() -> None:
    assert "default/a  running  no devices" in shown(outcome("packed", [running("a", envs={})]))


def test_containers_are_named_where_there_are_several() -> None:
    pod = running("a", "MIG-0-0")
    second = ContainerOutcome("second", {RESOURCE: ("MIG-0-1",)}, {})
    text = shown(outcome("packed", [replace(pod, containers=(*pod.containers, second))]))
    assert "      container main\n" in text
    assert "      container second\n      nvidia.com/gpu: MIG-0-1\n" in text


def test_resources_are_told_once_where_all_policies_agree() -> None:
    text = shown(outcome("distributed", []), outcome("packed", []))
    assert text.count("  nvidia.com/gpu  6 devices\n") == 1


def test_resources_are_told_by_policy_where_they_differ() -> None:
    text = shown(outcome("distributed", []), outcome("packed", [], sick=["MIG-0-0"]))
    assert "  under packed\n  nvidia.com/gpu  6 devices, 1 of them unhealthy\n" in text


def test_a_node_that_advertises_nothing_says_so() -> None:
    assert "Resources advertised to kubelet\n  none\n" in shown(outcome("packed", [], slots=0))


def test_long_lists_are_shortened_and_say_so() -> None:
    ids = [f"MIG-0-{n}" for n in range(100)]
    text = shown(outcome("packed", [running("a", *ids)], gpus=1, slots=100))
    assert "MIG-0-7 and 92 more\n" in text
    assert re.search(r"NVIDIA_VISIBLE_DEVICES=.{400}\.\.\.$", text, re.MULTILINE)


def test_replicas_of_one_device_are_told_in_ranges() -> None:
    pod = running("a", *(f"GPU-0::{number}" for number in (10, 2, 0, 1, 7)), "GPU-1::3", "GPU-2", envs={})
    assert "      nvidia.com/gpu: GPU-0::0-2,7,10 GPU-1::3 GPU-2\n" in shown(outcome("packed", [pod]))


def test_the_gpus_of_a_pod_stand_in_order() -> None:
    text = shown(outcome("packed", [running("a", "MIG-10-0", "MIG-2-0", "MIG-2-1")], gpus=11))
    assert "default/a  running  GPU 2 1g.5gb, GPU 10 1g.5gb\n" in text


def test_very_many_pods_are_counted_rather_than_listed() -> None:
    pods = [running(f"p{n}", f"MIG-0-{n}") for n in range(MOST_PODS + 2)]
    pods[-1] = replace(pods[-1], phase=Phase.RELEASED)
    text = shown(outcome("packed", pods, gpus=1, slots=50))
    assert "  and 2 more pods (1 running, 1 released); -o json lists all\n" in text


def test_a_refused_pod_is_listed_with_its_reason_however_many_pods_there_are() -> None:
    pods = [running(f"p{n}", f"MIG-0-{n}") for n in range(MOST_PODS + 1)] + [refused("x"), unschedulable("y")]
    lines = shown(outcome("packed", pods, gpus=1, slots=50)).splitlines()
    at = lines.index("    default/x  refused (UnexpectedAdmissionError): no room")
    assert lines[at + 1 : at + 3] == [
        "    default/y  unschedulable: no such resource",
        "  and 1 more pod (1 running); -o json lists all",
    ]


def test_policies_stand_side_by_side_in_80_columns_for_five_slots() -> None:
    text = shown(outcome("distributed", [], slots=5), outcome("packed", [], slots=5))
    assert re.search(r"^distributed +packed$", text, re.MULTILINE)


def test_what_is_not_a_terminal_gets_no_escape_codes() -> None:
    assert "\x1b" not in shown(outcome("packed", [running("a", "MIG-0-0")]))


def test_long_lines_are_not_folded_so_that_they_can_be_copied() -> None:
    name = "n" * 63
    assert f"  A default/{name}  running  GPU 0 1g.5gb\n" in shown(
        outcome("packed", [running(name, "MIG-0-0")]), width=40
    )


def test_it_is_said_why_policies_do_not_differ_where_nothing_is_shared_or_cut() -> None:
    sentence = "Nothing is shared or cut here, so whole GPUs are placed by `aligned` under any policy."
    node = load_node_model("t4-4").node
    whole = replace(outcome("packed", []), node=node, resources=build_catalog(node, Config()).resources)
    assert shown(whole).splitlines()[-3:-1] == [sentence, ""]
    cut = outcome("packed", [])
    assert sentence not in shown(cut)
    assert sentence not in shown(whole, cut)
    assert sentence not in shown(replace(cut, resources=()))


def test_annotations_and_cdi_devices_stand_below_the_environment() -> None:
    pod = running("a", "MIG-0-0", envs={"A": "b"})
    given = replace(pod.containers[0], annotations={"cdi.k8s.io/x": "v/gpu=0"}, cdi_devices=("v/gpu=0", "v/gpu=1"))
    text = shown(outcome("packed", [replace(pod, containers=(given,))]))
    assert "      A=b\n      annotation cdi.k8s.io/x=v/gpu=0\n      CDI devices: v/gpu=0 v/gpu=1\n" in text
