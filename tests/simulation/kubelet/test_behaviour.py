import dataclasses

import pytest

from gpustow.errors import UsageError
from gpustow.simulation.kubelet.behaviour import DEFAULT_BEHAVIOUR, NEWEST, OLDEST, Behaviour, Connections

FIRST: dict[str, int] = {
    "serves_allocatable": 23,
    "connects_in_register": 25,
    "empty_topology_is_none": 26,
    "checks_held_devices": 27,
    "trusts_running_containers": 28,
    "passes_cdi_devices": 29,
    "sidecars_keep_devices": 29,
    "lists_active_pods_only": 34,
    "serves_get": 34,
    "gets_active_pods_only": 35,
    "narrows_hint_scan": 36,
    "reports_device_health": 36,
    "tells_devices_by_resource": 37,
}

UNTIL_1_31 = ("readmits_finished_pods", "keeps_last_admitted_pod")


@pytest.mark.parametrize(("switch", "minor"), FIRST.items())
def test_a_switch_turns_with_its_version(switch: str, minor: int) -> None:
    assert getattr(Behaviour.of(f"1.{minor - 1}"), switch) is False
    assert getattr(Behaviour.of(f"1.{minor}"), switch) is True


@pytest.mark.parametrize("switch", UNTIL_1_31)
def test_a_habit_ends_with_1_32(switch: str) -> None:
    assert getattr(Behaviour.of("1.31"), switch) is True
    assert getattr(Behaviour.of("1.32"), switch) is False


def test_connections_are_told_apart_by_identity_then_by_resource_then_by_socket() -> None:
    kinds = {version: Behaviour.of(version).connections for version in ("1.24", "1.25", "1.36", "1.37")}
    assert kinds == {
        "1.24": Connections.BY_IDENTITY,
        "1.25": Connections.BY_RESOURCE,
        "1.36": Connections.BY_RESOURCE,
        "1.37": Connections.BY_SOCKET,
    }


def test_every_switch_is_tested_here() -> None:
    switches = {field.name for field in dataclasses.fields(Behaviour)}
    assert switches == {*FIRST, *UNTIL_1_31, "connections"}


def test_the_default_is_1_36() -> None:
    assert Behaviour.of("1.36") == Behaviour.of("v1.36") == DEFAULT_BEHAVIOUR == Behaviour()


def test_all_known_versions_have_a_behaviour() -> None:
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        Behaviour.of(f"1.{minor}")


@pytest.mark.parametrize("version", ["1.19", "1.38", "2.30", "1", "1.", "x.36", "1.36.2", ""])
def test_an_unknown_version_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match=r"is not known\n  Use one of 1\.20 to 1\.37"):
        Behaviour.of(version)
