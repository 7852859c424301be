"""The policy of a resource, from the setting for all and the section for one."""

from fractions import Fraction

import pytest

from gpustow.config import Config
from gpustow.config.placement import ResourcePlacement
from gpustow.placement import Policy
from gpustow.placement.policy import SHARED_POLICIES, Rule
from gpustow.plugin.placementpolicy import placement_notes, policy_of
from gpustow.resources.device import Device, Resource

NAME = "nvidia.com/gpu.shared"


@pytest.mark.parametrize(
    ("entry", "policy"),
    [
        (ResourcePlacement("nvidia.com/gpu", policy="packed"), Policy.named("spread")),
        (ResourcePlacement(NAME, policy="packed", cap=2), Policy.named("packed", cap=2)),
        (ResourcePlacement(NAME, distinct=True), Policy.named("spread", rule=Rule.DISTINCT)),
        (ResourcePlacement(NAME, together=True), Policy.named("spread", rule=Rule.TOGETHER)),
    ],
)
def test_an_entry_names_what_is_different_for_its_resource(entry: ResourcePlacement, policy: Policy) -> None:
    assert policy_of(NAME, Config(shared_devices_allocation_policy="spread", placement=(entry,))) == policy


def test_the_configuration_knows_the_policies_that_there_are() -> None:
    from gpustow.config.strategies import SHARED_POLICIES as CONFIGURED  # noqa: PLC0415 - two tables of one name

    assert CONFIGURED == SHARED_POLICIES


def resource(name: str, replica: int | None = None) -> Resource:
    return Resource(name, (Device("g", "g", 0, "0", Fraction(1), (), replica=replica),))


def test_a_resource_that_the_node_does_not_have_is_a_note() -> None:
    entries = (ResourcePlacement("nvidia.com/gpu"), ResourcePlacement("nvidia.com/mig-1g.5gb"))
    assert placement_notes([resource("nvidia.com/gpu")], Config(placement=entries)) == (
        "placement names nvidia.com/mig-1g.5gb, which this node does not have; it has nvidia.com/gpu",
    )


def test_whole_gpus_that_must_be_together_are_a_note() -> None:
    entries = (ResourcePlacement("nvidia.com/gpu", together=True),)
    (note,) = placement_notes([resource("nvidia.com/gpu")], Config(placement=entries))
    assert "one can be had at most" in note


@pytest.mark.parametrize(("replica", "told"), [(None, 1), (0, 0)])
def test_a_policy_for_whole_gpus_is_a_note(replica: int | None, told: int) -> None:
    entries = (ResourcePlacement("nvidia.com/gpu", policy="packed"),)
    notes = placement_notes([resource("nvidia.com/gpu", replica)], Config(placement=entries))
    assert len(notes) == told
    assert all("always placed by aligned" in note for note in notes)
