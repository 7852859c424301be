from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.hardware.faults import Fault, GpuLost, MigReconfigured, SlowNvml, XidFault, node_at, phase, reading_delay
from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import load_node_model


@pytest.fixture
def node() -> Node:
    return load_node_model("a100-4-mig-5").node


@pytest.mark.parametrize(
    ("elapsed", "indices"),
    [(0.0, [0, 1, 2, 3]), (9.9, [0, 1, 2, 3]), (10.0, [0, 1, 3]), (14.9, [0, 1, 3]), (15.0, [0, 1, 2, 3])],
)
def test_a_lost_gpu_is_missing_while_it_is_lost(node: Node, elapsed: float, indices: list[int]) -> None:
    seen = node_at(node, [GpuLost(10.0, 2, 5.0)], elapsed)
    assert [gpu.index for gpu in seen.gpus] == indices
    assert {a for (a, _), _ in seen.links.readings} == set(indices)
    assert seen.notes == (() if 2 in indices else ("GPU 2 is lost: it is left out",))
    assert seen.unreadable == (() if 2 in indices else (2,))


@given(st.floats(0, 30), st.floats(0, 30))
def test_a_node_looks_the_same_where_its_phase_is_the_same(one: float, other: float) -> None:
    node = load_node_model("a100-4-mig-5").node
    cut = MigReconfigured(20.0, 1, enabled=True, devices=node.gpus[1].mig_devices[:1])
    faults: list[Fault] = [XidFault(3.0, 0, 79), GpuLost(10.0, 2, 5.0), SlowNvml(1.0, 0.1), cut]
    same = node_at(node, faults, one) == node_at(node, faults, other)
    assert same == (phase(faults, one) == phase(faults, other))


def test_a_gpu_without_a_duration_stays_lost(node: Node) -> None:
    assert len(node_at(node, [GpuLost(1.0, 0)], 1e9).gpus) == 3


def test_the_last_mig_layout_before_now_is_the_one_that_counts(node: Node) -> None:
    few = node.gpus[1].mig_devices[:1]
    faults: list[Fault] = [MigReconfigured(20.0, 1, enabled=False, devices=()), MigReconfigured(10.0, 1, True, few)]
    assert node_at(node, faults, 5.0) == node
    assert node_at(node, faults, 10.0).gpus[1] == replace(node.gpus[1], mig_devices=few)
    assert node_at(node, faults, 20.0).gpus[1] == replace(node.gpus[1], mig_enabled=False, mig_devices=())


def test_delays_add_up_while_they_last() -> None:
    faults: list[Fault] = [SlowNvml(0.0, 2.0), SlowNvml(5.0, 1.0, 5.0), XidFault(0.0, 0, 79)]
    assert [reading_delay(faults, elapsed) for elapsed in (0.0, 5.0, 9.9, 10.0)] == [2.0, 3.0, 3.0, 2.0]


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (XidFault(0.0, 1, 79), "GPU 1 reports XID 79"),
        (XidFault(0.0, 1, 31, 7, 0), "GPU 1, GPU instance 7 reports XID 31"),
        (GpuLost(0.0, 2), "GPU 2 is lost"),
        (GpuLost(0.0, 2, 1.5), "GPU 2 is lost for 1.5 s"),
        (SlowNvml(0.0, 0.25, 60.0), "reading takes 0.25 s longer for 60 s"),
        (MigReconfigured(0.0, 3, enabled=True, devices=()), "GPU 3 is cut into nothing"),
        (MigReconfigured(0.0, 3, enabled=False, devices=()), "GPU 3 is in MIG mode no more"),
    ],
)
def test_a_fault_has_words(fault: Fault, text: str) -> None:
    assert fault.text == text


def test_an_xid_changes_nothing_that_can_be_read(node: Node) -> None:
    assert node_at(node, [XidFault(0.0, 0, 79)], 1.0) == node
