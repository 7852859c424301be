import pytest

from gpustow.errors import InfeasibleRequest
from gpustow.placement import Request
from tests.placement.cards import ask, replicas, whole


def test_a_negative_size_is_infeasible() -> None:
    with pytest.raises(InfeasibleRequest, match="the size cannot be negative"):
        Request(["a"], [], -1).check_form()


def test_more_must_include_than_the_size_is_infeasible() -> None:
    with pytest.raises(InfeasibleRequest, match="2 devices must be included in an answer of 1"):
        Request(["a", "b"], ["a", "b"], 1).check_form()


def test_a_must_include_that_is_not_offered_is_infeasible() -> None:
    with pytest.raises(InfeasibleRequest, match=r"not offered: b, c$"):
        Request(["a"], ["a", "c", "b"], 3).check_form()


def test_a_must_include_named_twice_counts_once() -> None:
    Request(["a"], ["a", "a"], 1).check_form()
    placement = ask("packed", replicas([2]), 1, must_include=["gpu0::1", "gpu0::1"])
    assert placement.device_ids == ("gpu0::1",)


def test_ids_offered_twice_count_once() -> None:
    with pytest.raises(InfeasibleRequest, match="2 devices are asked for, but only 1 are offered"):
        ask("packed", whole(2), 2, available=["gpu0", "gpu0"])


def test_ids_that_the_resource_does_not_have_are_not_offers() -> None:
    with pytest.raises(InfeasibleRequest, match="only 1 are offered"):
        ask("packed", whole(2), 2, available=["gpu0", "gpu9"])
