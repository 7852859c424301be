from gpustow.placement import Inventory, Request, place
from gpustow.telemetry.decisions import ONLY_ANSWER, Decisions
from tests.telemetry.samples import facts


def test_the_newest_are_kept_with_their_reasons() -> None:
    known = facts("t4-4", replicas=4, shared_devices_allocation_policy="packed")
    assert known.node is not None
    [served] = known.served
    inventory = Inventory.of(served.resource.devices, known.node.links)
    times = iter(range(10))
    decisions = Decisions(2, clock=lambda: next(times))
    for size in (1, 2, 16):
        placement = place(Request(inventory.ids, (), size), inventory, served.policy)
        decisions.add("nvidia.com/gpu", placement, placement.explanation(), 0.25)
    newest, older = decisions
    assert (newest.at, older.at) == (2, 1)
    assert newest.decided_by == ONLY_ANSWER
    assert len(newest.ids) == 16
    assert older.policy == "packed"
    assert older.devices_by_gpu == {"0": 2}
    assert older.decided_by == "GPU index"
    assert older.sentence.startswith("packed takes 2 on GPU 0")
    assert (older.seconds, older.exact, older.hurried) == (0.25, True, False)
