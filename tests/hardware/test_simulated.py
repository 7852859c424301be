from dataclasses import replace

from gpustow.hardware.faults import GpuLost, SlowNvml
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.simulated import SimulatedReader


def test_without_a_clock_the_node_stays_as_it_starts() -> None:
    model = replace(load_node_model("t4-4"), faults=(GpuLost(1.0, 0),))
    assert SimulatedReader(model).read() == model.node


def test_faults_come_at_their_time() -> None:
    now = 0.0
    model = replace(load_node_model("t4-4"), faults=(GpuLost(1.0, 0),))
    reader = SimulatedReader(model, elapsed=lambda: now)
    assert len(reader.read().gpus) == 4
    assert reader.phase() == frozenset()
    now = 1.0
    assert [gpu.index for gpu in reader.read().gpus] == [1, 2, 3]
    assert reader.phase() == {0}


def test_a_slow_nvml_makes_a_reading_take_longer_and_is_read_as_of_its_end() -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    model = replace(load_node_model("t4-4"), faults=(SlowNvml(0.0, 3.0), GpuLost(2.0, 1)))
    node = SimulatedReader(model, elapsed=lambda: now, sleep=sleep).read()
    assert now == 3.0
    assert len(node.gpus) == 3
