"""Every call that discovery makes fails in every way, for one GPU and for all: what is still served.

What comes out is the table in docs/reliability.md. To write it anew after a change that is meant:
GPUSTOW_WRITE_DOCS=1 pytest tests/hardware/nvml/test_failures.py
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from gpustow.errors import HardwareError
from gpustow.hardware.modelwriter import write_node_model
from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import NodeModel, parse_node_model
from tests.hardware.nvml.outcome import outcome
from tests.nvml.fakedriver import FakeDriver
from tests.nvml.faulttable import CODES, Row, compare_with_docs, gathered, written
from tests.nvml.readerprocess import ReaderProcess

NODE = """
name: node
driverVersion: 550.90.07
cudaVersion: 12.4
gpus:
  - {model: NVIDIA A100-SXM4-40GB, count: 3, numaNode: [0, 1, 2],
     fabric: {clusterUuid: 3c4f5a6b-7d8e-4f90-a1b2-c3d4e5f60718, clique: 2},
     mig: [{enabled: false}, {devices: [3g.20gb, 1g.5gb+me]}, {enabled: false}]}
links: {pcie: [X PIX SYS, PIX X SYS, SYS SYS X], nvlinks: [X 2 2, 2 X 2, 2 2 X], nvswitchLinks: 3}
"""
"""Three GPUs with everything that can be read: MIG devices, NVLinks to each other and to switches, a fabric."""

STRUCK = 1
"""The GPU that fails alone: the one with MIG devices."""

REFUSED = "the driver cannot be read: exit code 5"

EXPECTED_QUIET = {
    ("nvmlDeviceGetMigMode", "not supported"),
    ("nvmlDeviceGetGpuFabricInfoV", "not supported"),
    ("nvmlDeviceGetNvLinkState", "not supported"),
    ("nvmlDeviceGetMigDeviceHandleByIndex", "not found"),
    ("nvmlDeviceGetGpuInstanceProfileInfo", "not supported"),
}
"""Where a return code is an answer, not a failure: there is no such thing on this GPU."""


@cache
def _model() -> NodeModel:
    return parse_node_model(NODE, "node")


def _calls(counts: Counter[tuple[str, int]]) -> list[tuple[str, bool]]:
    """The calls that a reading makes, sorted, and whether they are about a GPU."""
    return sorted({call: gpu >= 0 for call, gpu in counts if call != "nvmlShutdown"}.items())


def _strike(machine: ReaderProcess, healthy: Node, call: str, code: int, gpu: int) -> tuple[str, Node | None]:
    machine.start(_model())
    machine.driver.fail(call, code, gpu=gpu)
    try:
        node = machine.read()
    except HardwareError:
        return REFUSED, None
    return outcome(healthy, node, gpu), node


@pytest.mark.slow
def test_what_is_still_served_when_a_call_fails(machine: ReaderProcess) -> None:
    machine.start(_model())
    healthy = machine.read()
    assert healthy == _model().node
    rows: list[Row] = []
    for call, about_gpu in _calls(machine.counts()):
        results: dict[str, Row] = {}
        for name, code in CODES.items():
            every, node = _strike(machine, healthy, call, code, -1)
            one = "-"
            if node is not None and every != "all is served" and (call, name) not in EXPECTED_QUIET:
                assert node.notes, f"{call} with {name} is not told"
            if about_gpu:
                one, node = _strike(machine, healthy, call, code, STRUCK)
                assert node is not None, f"{call} with {name} for one GPU costs the node"
                _check_others(healthy, node)
                _check_written(node)
            results[name] = (one, every)
        rows += gathered(f"`{call}`", results)
    compare_with_docs("calls that fail", written(("call", "return code", "for one GPU", "for every GPU"), rows))


def _check_others(healthy: Node, node: Node) -> None:
    """The GPUs that were not struck are as they were, whatever happened to the one that was."""
    others = {gpu.index: gpu for gpu in node.gpus if gpu.index != STRUCK}
    assert others == {gpu.index: gpu for gpu in healthy.gpus if gpu.index != STRUCK}


def _check_written(node: Node) -> None:
    """What was read can be written as a node model and read back, whatever is missing."""
    back = parse_node_model(write_node_model(node), "written").node
    assert [gpu.uuid for gpu in back.gpus] == [gpu.uuid for gpu in node.gpus]
    assert [len(gpu.mig_devices) for gpu in back.gpus] == [len(gpu.mig_devices) for gpu in node.gpus]


def _hang_alone(folder: Path, calls: Sequence[tuple[str, bool]]) -> list[str]:
    """For each call: hangs for one GPU (for all if it is about none); what is served, and that it is told."""
    model, results = _model(), []
    with ReaderProcess(FakeDriver(folder, model)) as process:
        for call, about_gpu in calls:
            process.start(model, deadline=0.8)
            process.driver.hang(call, 5.0, gpu=STRUCK if about_gpu else -1)
            try:
                node = process.read()
            except HardwareError as error:
                assert "no answer within 0.8 s" in str(error)
                results.append(f"{call}: {REFUSED}")
                continue
            assert any("no answer within 0.8 s" in note for note in node.notes), node.notes
            _check_others(model.node, node)
            results.append(f"{call}: {outcome(model.node, node, STRUCK)}")
    return results


@pytest.mark.slow
def test_a_call_that_hangs_is_cut_off_and_costs_no_more_than_one_that_fails(
    machine: ReaderProcess, tmp_path: Path
) -> None:
    machine.start(_model())
    healthy = machine.read()
    calls = _calls(machine.counts())
    with ThreadPoolExecutor(4) as pool:
        folders = [tmp_path / str(part) for part in range(4)]
        parts = list(pool.map(_hang_alone, folders, [calls[part::4] for part in range(4)]))
    expected = []
    for call, about_gpu in calls:
        result, _ = _strike(machine, healthy, call, CODES["unknown error"], STRUCK if about_gpu else -1)
        expected.append(f"{call}: {result}")
    assert sorted(line for part in parts for line in part) == sorted(expected)


def test_a_node_that_is_read_again_and_again_while_a_gpu_hangs_leaves_no_more_calls_behind(
    machine: ReaderProcess,
) -> None:
    machine.start(_model(), deadline=0.8)
    machine.driver.hang("nvmlDeviceGetUUID", 30.0, gpu=STRUCK)
    for _ in range(20):
        assert [gpu.index for gpu in machine.read().gpus] == [0, 2]
    assert machine.counts()["nvmlDeviceGetUUID", STRUCK] == 1


def test_an_nvml_that_hangs_on_its_way_up_is_not_started_again_until_it_is_up(tmp_path: Path) -> None:
    with ReaderProcess(FakeDriver(tmp_path, _model())) as process:
        process.start(_model(), deadline=0.8)
        process.driver.hang("nvmlInitWithFlags", 30.0)
        with pytest.raises(HardwareError, match=r"no answer within 0\.8 s"):
            process.read()
        with pytest.raises(HardwareError, match="was asked before and has not answered yet"):
            process.read()


def test_a_call_that_hangs_for_every_gpu_is_not_made_for_each(machine: ReaderProcess) -> None:
    machine.start(_model(), deadline=0.8)
    machine.driver.hang("nvmlDeviceGetGpuFabricInfoV", 5.0)
    node = machine.read()
    assert [gpu.fabric for gpu in node.gpus] == [None] * 3
    assert len(node.notes) == 2
    assert "not asked, because it did not answer for other GPUs" in node.notes[1]
    assert sum(times for (call, _), times in machine.counts().items() if call == "nvmlDeviceGetGpuFabricInfoV") == 2
