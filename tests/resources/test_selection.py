"""Selecting and excluding GPUs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import Config, ReplicatedResource, ReplicatedResources
from gpustow.resources import build_catalog, select_gpus
from tests.resources.machines import gpu, node

MACHINE = node(gpu(0), gpu(1), gpu(2, model="NVIDIA A30"), gpu(3, model="NVIDIA A30"))


def indices(config: Config) -> list[int]:
    ours, _ = select_gpus(MACHINE, config)
    return [each.index for each in ours.gpus]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("1",), [1]),
        (("2", "0"), [0, 2]),
        (("GPU-3",), [3]),
        (("gpu-3",), [3]),
        (("00000000:02:00.0",), [1]),
        (("0000:02:00.0",), [1]),
        (("02:00.0",), [1]),
        (("NVIDIA A30",), [2, 3]),
        (("*T4",), [0, 1]),
        (("*",), [0, 1, 2, 3]),
        (("1", "*A30"), [1, 2, 3]),
    ],
)
def test_gpus_are_named_by_index_uuid_bus_id_or_model(names: tuple[str, ...], found: list[int]) -> None:
    assert indices(Config(select_gpus=names)) == found
    assert indices(Config(exclude_gpus=names)) == [index for index in range(4) if index not in found]


@pytest.mark.parametrize("name", ["7", "GPU-9", "0000:99:00.0", "*H100*"])
def test_case_c34_a_name_that_no_gpu_has_is_told(name: str) -> None:
    _, warnings = select_gpus(MACHINE, Config(exclude_gpus=("0", name)))
    assert warnings == (f"exclude GPUs: this node has no GPU {name!r}",)


def test_case_c34_gpus_are_excluded_before_sharing() -> None:
    machine = node(*(gpu(index) for index in range(8)))
    config = Config(
        exclude_gpus=("0", "GPU-1"), time_slicing=ReplicatedResources((ReplicatedResource("nvidia.com/gpu", 4),))
    )
    (resource,) = build_catalog(machine, config).resources
    assert len(resource.devices) == 24


def test_case_c34_where_all_are_excluded_there_is_nothing_to_serve() -> None:
    assert build_catalog(MACHINE, Config(exclude_gpus=("*",))).resources == ()


def test_a_node_of_which_nothing_is_left_out_stays_itself() -> None:
    assert select_gpus(MACHINE, Config()) == (MACHINE, ())


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("0", "2"), [0, 2]),
        (("GPU-1",), [1]),
        (("GPU-9",), []),
        (("4", "5", "6", "7"), [0, 1, 2, 3]),
        (("0:1",), [0, 1, 2, 3]),
        (("MIG-1",), [0, 1, 2, 3]),
        ((), [0, 1, 2, 3]),
    ],
)
def test_what_our_own_container_was_given_counts_where_more_is_seen(names: tuple[str, ...], found: list[int]) -> None:
    assert indices(Config(visible_devices=names)) == found


def test_selecting_goes_on_from_what_is_visible() -> None:
    assert indices(Config(visible_devices=("0", "2"), exclude_gpus=("*A30",))) == [0]


@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_names_select_some_gpus_and_exclude_the_others(names: list[str]) -> None:
    used = [name for name in names if name]
    selected = indices(Config(select_gpus=tuple(used)))
    excluded = indices(Config(exclude_gpus=tuple(used)))
    assert sorted(selected + excluded) == ([0, 1, 2, 3] if used else sorted(2 * [0, 1, 2, 3]))
