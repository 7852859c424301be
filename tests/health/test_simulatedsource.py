import pytest

from gpustow.hardware.nodemodel import NodeModel, parse_node_model
from gpustow.hardware.simulated import SimulatedReader
from gpustow.health.event import EventKind, HealthEvent, RecoveryAction, RecoveryProof
from gpustow.health.simulatedsource import SimulatedSource

WELL = RecoveryProof(
    readable=True,
    uuid_matches=True,
    recovery_action=RecoveryAction.NONE,
    row_remap_pending=False,
    row_remap_failure=False,
    retired_pages_pending=False,
    sram_threshold_exceeded=False,
)


class Scene:
    """A source for two A100 with these faults, the reader beside it, and a clock that sleeping moves on."""

    def __init__(self, *faults: str) -> None:
        lines = "".join(f"\n- {fault}" for fault in faults)
        self.model: NodeModel = parse_node_model(
            f"name: n\ngpus: [{{model: NVIDIA A100-SXM4-40GB, count: 2}}]\nfaults: {lines or '[]'}", "n"
        )
        self.now = 0.0
        self.first, self.second = (gpu.uuid for gpu in self.model.node.gpus)
        self.source = SimulatedSource(self.model, elapsed=self.elapsed, sleep=self.sleep)
        self.reader = SimulatedReader(self.model, elapsed=self.elapsed, sleep=self.sleep)

    def elapsed(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def watch(self) -> tuple[HealthEvent, ...]:
        return self.source.watch(self.reader.read())


def test_on_a_quiet_node_waiting_takes_its_time_and_tells_nothing() -> None:
    scene = Scene()
    assert scene.watch() == ()
    assert scene.source.wait(5.0) == ()
    assert scene.now == 5.0
    assert scene.source.proof(scene.first) == WELL


def test_an_xid_is_told_at_its_time_with_the_instance_that_it_names() -> None:
    scene = Scene("{fault: xid, after: 7s, gpu: 1, code: 31, gpuInstance: 2, computeInstance: 0}")
    scene.watch()
    assert scene.source.wait(5.0) == ()
    event = HealthEvent(EventKind.XID, scene.second, gpu_instance=2, compute_instance=0, xid=31)
    assert scene.source.wait(5.0) == (event,)
    assert scene.now == 7.0
    assert scene.source.wait(5.0) == ()
    assert scene.source.proof(scene.second) == WELL


def test_what_happens_at_once_is_told_together_in_the_order_of_time() -> None:
    scene = Scene(
        "{fault: xid, after: 2s, gpu: 0, code: 63}",
        "{fault: xid, after: 1s, gpu: 0, code: 48}",
        "{fault: xid, after: 2s, gpu: 1, code: 45}",
    )
    scene.watch()
    scene.now = 3.0
    assert [event.xid for event in scene.source.wait(5.0)] == [48, 63, 45]


def test_an_xid_from_before_the_first_watch_is_not_missed() -> None:
    scene = Scene("{fault: xid, after: 0s, gpu: 0, code: 79}")
    scene.now = 1.5
    assert scene.watch() == ()
    assert [event.xid for event in scene.source.wait(5.0)] == [79]
    assert scene.watch() == ()
    assert scene.source.wait(5.0) == ()


def test_a_gpu_that_is_lost_is_told_and_readable_only_when_it_is_back() -> None:
    scene = Scene("{fault: lost, after: 3s, gpu: 1, for: 10s}")
    scene.watch()
    [event] = scene.source.wait(5.0)
    assert (event.kind, event.gpu_uuid, event.detail) == (EventKind.LOST, scene.second, "GPU 1 is lost for 10 s")
    assert not scene.source.proof(scene.second).readable
    assert scene.source.proof(scene.first) == WELL
    scene.now = 13.0
    assert scene.source.proof(scene.second) == WELL


def test_a_gpu_that_was_lost_and_is_back_before_the_first_watch_is_not_told() -> None:
    scene = Scene("{fault: lost, after: 1s, gpu: 1, for: 2s}")
    scene.now = 4.0
    assert scene.watch() == ()
    assert scene.source.wait(1.0) == ()


def test_a_gpu_that_got_lost_after_it_was_read_is_told_when_it_is_to_be_watched() -> None:
    scene = Scene("{fault: lost, after: 3s, gpu: 1}")
    node = scene.reader.read()
    scene.now = 4.0
    assert [event.gpu_uuid for event in scene.source.watch(node)] == [scene.second]
    scene.watch()
    assert scene.source.wait(1.0) == ()


def test_what_happens_to_a_gpu_that_is_not_watched_is_not_told() -> None:
    scene = Scene("{fault: lost, after: 0s, gpu: 1}", "{fault: xid, after: 1s, gpu: 1, code: 79}")
    assert scene.watch() == ()
    assert scene.source.wait(2.0) == ()


def test_a_slow_driver_makes_watching_and_proving_slow_but_not_events() -> None:
    scene = Scene("{fault: slow, after: 0s, delay: 4s, for: 30s}", "{fault: xid, after: 20s, gpu: 0, code: 48}")
    node = scene.model.node
    scene.source.watch(node)
    assert scene.now == 4.0
    assert scene.source.proof(scene.first) == WELL
    assert scene.now == 8.0
    assert len(scene.source.wait(60.0)) == 1
    assert scene.now == 20.0


def test_a_source_that_watches_nothing_says_so_and_takes_its_time() -> None:
    scene = Scene()
    [event] = scene.source.wait(5.0)
    assert event.kind is EventKind.SOURCE_FAILED
    assert scene.now == 5.0
    scene.watch()
    scene.source.close()
    scene.source.close()
    assert scene.source.wait(1.0) == (event,)


@pytest.mark.parametrize("uuid", ["", "GPU-1"])
def test_a_gpu_that_the_model_does_not_have_proves_nothing(uuid: str) -> None:
    assert not Scene().source.proof(uuid).readable
