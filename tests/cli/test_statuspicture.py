from dataclasses import replace

import pytest

from gpustow.cli.statuspicture import NOT_KNOWN, draw_status, for_how_long
from gpustow.health.condition import Fitness
from gpustow.simulation.picture import PLAIN
from gpustow.telemetry.decisions import DecisionStatus
from gpustow.telemetry.facts import Ailment, Check, Facts
from gpustow.telemetry.nodestatus import NodeStatus
from gpustow.telemetry.picture import node_status
from tests.telemetry.samples import GPU, NOW, facts, hold, unhealthy

SHARED_MIG = """version: v1
flags: {migStrategy: mixed}
sharing: {timeSlicing: {resources: [{name: nvidia.com/mig-1g.10gb, replicas: 3}]}}
"""


def drawn(status: NodeStatus | Facts) -> list[str]:
    known = node_status(status) if isinstance(status, Facts) else status
    return [line.plain for line in draw_status(known, PLAIN)]


def decided(number: int) -> DecisionStatus:
    return DecisionStatus(
        NOW - number, GPU, "packed", ("a",), {"0": 1}, "best fit", f"sentence {number}", 0.1, True, False
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0s"), (59.4, "59s"), (60, "1m00s"), (3661, "1h01m"), (86_399, "23h59m"), (86_400 * 9 + 7_300, "9d02h")],
)
def test_a_time_is_told_in_two_units(seconds: float, text: str) -> None:
    assert for_how_long(seconds) == text


def test_mig_devices_are_cells_with_the_letter_of_the_pod() -> None:
    lines = drawn(hold(hold(facts(), 0, 3, pod="train"), 6, pod="serve"))
    assert lines[0] == "a100-4-mig-5  ready"
    assert "2 of 4 GPUs wholly free" in lines
    at = lines.index("GPU 0  NUMA 0  NVIDIA A100-SXM4-40GB  healthy")
    assert [line.strip() for line in lines[at + 1 : at + 5]] == [
        "1g.5gb 0:0 0:1 0:2 0:3 0:4",
        "+---+---+---+---+---+",
        "| A |   |   | A |   | 2 of 5",
        "+---+---+---+---+---+",
    ]
    assert "|   | B |   |   |   | 1 of 5" in lines[at + 8]
    assert lines[-1] == "A default/train  B default/serve"


def test_several_profiles_share_a_row() -> None:
    lines = drawn(hold(facts("hgx-h100-mig"), 1))
    at = lines.index("GPU 0  NUMA 0  NVIDIA H100 80GB HBM3  healthy")
    assert lines[at + 1].strip() == "1g.10gb 0:2 0:3  2g.20gb 0:1  3g.40gb 0:0"
    assert lines[at + 3].strip() == "|   | A |   |   | 1 of 4"


def test_shared_mig_devices_have_a_row_a_resource_that_names_it() -> None:
    lines = drawn(hold(facts("hgx-h100-mig", text=SHARED_MIG), 4))
    at = lines.index("GPU 0  NUMA 0  NVIDIA H100 80GB HBM3  healthy")
    shared = next(line.split()[0] for line in lines if line.startswith("nvidia.com/mig-1g.10gb"))
    assert [line.strip() for line in lines[at + 1 : at + 4]] == [
        f"{shared}  1g.10gb 0:2 0:3",
        "+---+---+---+---+---+---+",
        "|   |   |   |   | A |   | 1 of 6",
    ]
    assert sum(line.strip().endswith("0:1") for line in lines) == 1


def test_replicas_are_where_their_number_says_and_sick_ones_marked() -> None:
    lines = drawn(unhealthy(hold(facts("t4-4", replicas=4), 2), 4, 5, 6, 7))
    cells = [line.strip() for line in lines if line.startswith("       |")]
    assert cells[:3] == ["|   |   | A |   | 1 of 4", "| ! | ! | ! | ! | unhealthy", "|   |   |   |   | free"]
    row = next(line for line in lines if line.startswith(GPU))
    assert row.split() == [GPU, "distributed", "streaming", "16", "1", "11", "4"]


def test_many_replicas_shrink_and_fit() -> None:
    lines = drawn(hold(facts("hgx-h100", replicas=100), *range(40)))
    at = lines.index("GPU 0  NUMA 0  NVIDIA H100 80GB HBM3  healthy")
    assert [line.strip() for line in lines[at + 1 : at + 3]] == ["A" * 40 + "." * 10, "." * 50 + " 40 of 100"]
    thousand = drawn(facts("hgx-h100", replicas=1000))
    assert sum(line.strip() == "free" for line in thousand) == 8


def test_a_use_that_nobody_claims_is_a_question_mark() -> None:
    known = hold(facts("t4-4"), 0)
    lines = drawn(replace(known, holders={}, is_listed=False))
    assert "| ? | 1 of 1" in "\n".join(lines)
    assert lines[-1] == f"? {NOT_KNOWN}"
    assert any("PodResources does not say" in line for line in lines)


def test_health_is_told_with_reason_and_since_when() -> None:
    known = facts()
    gpu = known.node.gpus[1] if known.node else None
    assert gpu is not None
    ailments = {
        gpu.uuid: Ailment("XID 79: fallen off the bus", NOW - 4000),
        gpu.mig_devices[1].uuid: Ailment("XID 79: fallen off the bus", NOW - 4000),
        gpu.mig_devices[2].uuid: Ailment("XID 94: contained", NOW - 30, Fitness.RECOVERING),
    }
    checks = (Check("node"), Check("devices", "unhealthy: GPU 1"))
    lines = drawn(replace(known, ailments=ailments, checks=checks))
    assert lines[0] == "a100-4-mig-5  NOT READY"
    assert "  devices: unhealthy: GPU 1" in lines
    assert not any(line.startswith("  node") for line in lines)
    at = lines.index("GPU 1  NUMA 0  NVIDIA A100-SXM4-40GB")
    assert lines[at + 1] == "       unhealthy for 1h06m: XID 79: fallen off the bus"
    assert lines[at + 6] == "       1:2 1g.5gb recovering for 30s: XID 94: contained"
    assert "\n".join(lines).count("fallen off the bus") == 1, "what a whole GPU has is told once"


def test_the_newest_decisions_are_told_with_their_sentences() -> None:
    status = node_status(facts("t4-4"), [decided(number) for number in range(57, 80)])
    lines = drawn(status)
    at = lines.index("Last decisions")
    assert lines[at + 1] == f"57s ago    {GPU}: sentence 57"
    assert lines[at + 5] == f"1m01s ago  {GPU}: sentence 61"
    assert len(lines) == at + 6


def test_what_the_daemon_does_not_know_yet_is_said() -> None:
    lines = drawn(Facts(NOW, (Check("node", "the driver is gone"),)))
    assert lines[0] == "a node that could not be read yet  NOT READY"
    assert "driver not known" in lines[1]
    assert lines[2] == "  configuration yet"
    assert lines[-1] == "  node: the driver is gone"


def test_notes_and_warnings_are_told() -> None:
    known = facts("t4-4", text="version: v1\nflags: {migStrategie: none}\n")
    assert known.node is not None
    gpus = tuple(replace(gpu, numa_node=None, model="") for gpu in known.node.gpus)
    lines = drawn(replace(known, node=replace(known.node, notes=("links",), gpus=gpus)))
    assert "  could not be read: links" in lines
    assert any(line.startswith("  warning: ") and "migStrategie" in line for line in lines)
    assert "GPU 3  NUMA 0  model not known  healthy" in lines or "GPU 3  NUMA -  model not known  healthy" in lines


def test_a_gpu_that_is_left_alone_is_not_served() -> None:
    known = facts("t4-4")
    lines = drawn(replace(known, served=()))
    assert sum("not served" in line for line in lines) == 4
    assert "no devices" not in "\n".join(lines)


@pytest.mark.parametrize("model", ["a100-4-mig-5", "hgx-h100-mig", "dgx-2", "jetson-orin", "wsl"])
def test_everything_fits_into_80_columns(model: str) -> None:
    known = hold(facts(model, text="version: v1\n"), 0)
    uuid = known.node.gpus[0].uuid if known.node else ""
    status = node_status(replace(known, ailments={uuid: Ailment("a long reason " * 20, 0.0)}), [decided(1)])
    status = replace(status, decisions=(replace(decided(1), sentence="many words " * 30),))
    assert [line for line in drawn(status) if len(line) > 80] == []
