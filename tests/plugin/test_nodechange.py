from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.hardware.mig import MigProfile
from gpustow.hardware.node import Gpu, Node
from gpustow.plugin.nodechange import NodeChanges, node_changes
from tests.plugin.samples import gpu, node


def cut(index: int, **profiles: int) -> Gpu:
    """A GPU with so many devices of each profile: `_1g=4`."""
    found = [int(name[1]) for name, count in profiles.items() for _ in range(count)]
    plain = gpu(index, mig_devices=len(found))
    devices = tuple(
        replace(
            device,
            uuid=f"MIG-{index}-{slices}-{number}",
            profile=MigProfile(
                gpu_slices=slices, compute_slices=slices, memory_gb=5 * slices, memory_mib=4864 * slices
            ),
        )
        for number, (device, slices) in enumerate(zip(plain.mig_devices, found, strict=True))
    )
    return replace(plain, mig_enabled=True, mig_devices=devices)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (cut(3, _1g=4), cut(3, _3g=2), "GPU 3: 4 x 1g.5gb -> 2 x 3g.15gb"),
        (cut(3, _1g=4), cut(3, _3g=1, _1g=2), "GPU 3: 4 x 1g.5gb -> 2 x 1g.5gb + 1 x 3g.15gb"),
        (cut(0, _1g=1), cut(0), "GPU 0: 1 x 1g.5gb -> no MIG devices"),
        (cut(0, _1g=1), gpu(0), "GPU 0 is not in MIG mode any more"),
        (gpu(0), cut(0, _1g=2), "GPU 0 is in MIG mode now: 2 x 1g.5gb"),
        (gpu(0), cut(0), "GPU 0 is in MIG mode now: no MIG devices"),
        (replace(gpu(0), index=1), gpu(0), "GPU 0 (GPU-0) was GPU 1 before"),
    ],
)
def test_what_has_become_of_a_gpu_is_one_line(before: Gpu, after: Gpu, line: str) -> None:
    assert node_changes(node(before), node(after)) == (line,)


def test_devices_that_were_made_anew_are_not_the_same() -> None:
    before = cut(0, _1g=1)
    after = replace(before, mig_devices=(replace(before.mig_devices[0], uuid="MIG-new"),))
    assert node_changes(node(before), node(after)) == ("GPU 0: 1 x 1g.5gb, as before, but not the same devices",)


def test_gpus_go_and_come_back_or_are_new() -> None:
    changes = NodeChanges()
    lost = replace(node(gpu(0), gpu(1)), unreadable=(2,))
    assert changes.look(node(gpu(0), gpu(1), gpu(2))) == (), "at the first look nothing has changed"
    assert changes.look(lost) == ("GPU 2 (GPU-2) is gone: the driver lists it, and it is lost or cannot be read",)
    assert changes.look(lost) == ()
    assert changes.look(node(gpu(1), gpu(2))) == ("GPU 0 (GPU-0) is gone", "GPU 2 (GPU-2) is back")
    assert changes.look(node(gpu(1), gpu(2), gpu(3))) == ("GPU 3 (GPU-3) is new",)


def test_another_card_in_the_place_of_one_is_both() -> None:
    assert node_changes(node(gpu(1)), node(replace(gpu(1), uuid="GPU-x"))) == (
        "GPU 1 (GPU-1) is gone",
        "GPU 1 (GPU-x) is new",
    )


GPUS = st.integers(0, 3).flatmap(lambda i: st.builds(cut, st.just(i), _1g=st.integers(0, 3), _2g=st.integers(0, 2)))
NODES = st.lists(st.one_of(GPUS, st.integers(0, 3).map(gpu)), unique_by=lambda each: each.index).map(
    lambda gpus: node(*sorted(gpus, key=lambda each: each.index))
)


@given(NODES, NODES)
def test_there_is_one_line_for_each_gpu_that_differs(before: Node, after: Node) -> None:
    old, new = ({each.uuid: each for each in found.gpus} for found in (before, after))
    differing = [uuid for uuid in {**old, **new} if old.get(uuid) != new.get(uuid)]
    assert len(node_changes(before, after)) == len(differing)
