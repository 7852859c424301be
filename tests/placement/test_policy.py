import pytest

from gpustow.errors import UsageError
from gpustow.placement import Policy
from gpustow.placement.policy import SHARED_POLICIES, PolicyName


def test_the_policies_for_shared_devices_are_four_and_distributed_is_first() -> None:
    assert SHARED_POLICIES == ("distributed", "packed", "spread", "packed-aligned")


@pytest.mark.parametrize("name", SHARED_POLICIES)
def test_a_policy_is_found_by_its_name(name: str) -> None:
    assert Policy.named(name).name is PolicyName(name)


@pytest.mark.parametrize("name", ["aligned", "Packed", ""])
def test_another_name_is_refused_with_those_that_exist(name: str) -> None:
    with pytest.raises(UsageError, match="distributed, packed, spread, packed-aligned"):
        Policy.named(name)


def test_only_packed_takes_a_cap() -> None:
    assert Policy.named("packed", cap=2).cap == 2
    with pytest.raises(UsageError, match="spread takes no cap"):
        Policy.named("spread", cap=2)
    with pytest.raises(UsageError, match="cap 0 is below 1"):
        Policy.named("packed", cap=0)
