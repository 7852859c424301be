"""The size of the list that kubelet gets."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.errors import ConfigError
from gpustow.kubelet.devicefeed import device_list
from gpustow.resources.device import Device, Resource
from gpustow.resources.listsize import LIMIT, WARN_ABOVE, check_list, largest_list


def replicas(gpus: int, count: int, *, length: int = 40, numa_node: int | None = 0) -> Resource:
    devices = tuple(
        Device(
            id=f"{gpu:0{length}d}::{number}",
            uuid=f"{gpu:0{length}d}",
            gpu_index=gpu,
            index=str(gpu),
            share=Fraction(1, count),
            paths=(),
            numa_node=numa_node,
            replica=number,
        )
        for gpu in range(gpus)
        for number in range(count)
    )
    return Resource("nvidia.com/gpu", devices)


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=300), st.none() | st.integers(-1, 2**31)), max_size=5),
)
def test_the_size_is_that_of_the_message_with_all_devices_unhealthy(entries: list[tuple[str, int | None]]) -> None:
    devices = [
        Device(name, name, 0, "0", Fraction(1), (), numa_node=node, healthy=False)
        for name, node in entries
        if name.isprintable()
    ]
    assert largest_list(devices) == len(device_list(devices))


def test_a_list_of_ordinary_size_is_not_worth_a_word() -> None:
    assert check_list(replicas(8, 100)) == ()


@pytest.mark.parametrize("numa_node", [None, 0, 3])
@pytest.mark.parametrize(("gpus", "length"), [(1, 4000), (3, 1500), (2, 30000)])
def test_case_c43_the_highest_number_of_replicas_that_is_told_fits_and_one_more_does_not(
    gpus: int, length: int, numa_node: int | None
) -> None:
    with pytest.raises(ConfigError) as refusal:
        check_list(replicas(gpus, 1200, length=length, numa_node=numa_node))
    (problem,) = refusal.value.problems
    assert problem.path == "nvidia.com/gpu"
    assert problem.message.startswith(f"{gpus} devices x 1200 replicas = {gpus * 1200} entries make a list of up to ")
    highest = int(problem.message.rpartition(" ")[2])
    fitting = replicas(gpus, highest, length=length, numa_node=numa_node)
    assert WARN_ABOVE < largest_list(fitting.devices) <= LIMIT
    (warning,) = check_list(fitting)
    assert "close to kubelet's limit" in warning
    assert warning.endswith(f"the highest number of replicas that fits is {highest}")
    with pytest.raises(ConfigError):
        check_list(replicas(gpus, highest + 1, length=length, numa_node=numa_node))


def test_devices_that_are_no_replicas_are_refused_without_a_hint_about_replicas() -> None:
    devices = tuple(replace(device, replica=None) for device in replicas(1200, 1, length=4000).devices)
    with pytest.raises(ConfigError, match=r"1200 devices make a list of up to \d+ bytes, more than [^;]*$"):
        check_list(Resource("nvidia.com/gpu", devices))
