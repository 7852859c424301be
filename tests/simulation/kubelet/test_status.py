"""Device health in pod status: when it is written, what it says, and where it says nothing."""

from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.status import QUEUE, HealthUpdates, ResourceStatus, device_health
from tests.simulation.kubelet.core import THING, Core, listed, wanting


async def holding(names: str = "d0") -> Core:
    core = Core()
    core.plug(listed(names))
    await core.admit(wanting("a", len(names.split())))
    core.manager.health_updates.take()
    return core


def health(core: Core) -> dict[str, tuple[ResourceStatus, ...]]:
    return device_health(core.manager.state, wanting("a", 1))


async def test_the_status_names_each_device_with_its_health() -> None:
    core = await holding("d0 d1")
    core.manager.listed(THING, listed("d0") + listed("d1", None, "Sick"))
    assert health(core) == {"main": (ResourceStatus(THING, {"d0": "Healthy", "d1": "Unhealthy"}),)}


async def test_a_list_that_changes_the_health_of_a_held_device_has_the_status_written() -> None:
    core = await holding()
    core.manager.listed(THING, listed("d0", None, "Unhealthy"))
    assert core.manager.health_updates.take() == {"uid-a"}


async def test_a_list_without_change_has_nothing_written() -> None:
    core = await holding()
    core.manager.listed(THING, listed("d0"))
    assert core.manager.health_updates.take() == set()


async def test_a_change_of_a_device_that_nobody_holds_has_nothing_written() -> None:
    core = await holding()
    core.manager.listed(THING, listed("d0") + listed("free", None, "Unhealthy"))
    assert core.manager.health_updates.take() == set()


async def test_a_device_that_leaves_the_list_triggers_nothing_and_reads_healthy() -> None:
    core = await holding()
    core.manager.listed(THING, listed("d0", None, "Unhealthy"))
    core.manager.health_updates.take()
    core.manager.listed(THING, [])
    assert core.manager.health_updates.take() == set()
    assert health(core) == {"main": (ResourceStatus(THING, {"d0": "Healthy"}),)}


async def test_a_device_that_comes_back_has_the_status_written() -> None:
    core = await holding()
    core.manager.listed(THING, [])
    core.manager.listed(THING, listed("d0"))
    assert core.manager.health_updates.take() == {"uid-a"}


async def test_the_loss_of_a_plugin_does_not_show() -> None:
    core = await holding()
    core.lose()
    assert core.manager.health_updates.take() == set()
    assert health(core) == {"main": (ResourceStatus(THING, {"d0": "Healthy"}),)}


async def test_only_app_containers_are_covered() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2"))
    pod = Pod(
        "a",
        containers=(Container("app", {THING: 1}), Container("idle")),
        init_containers=(Container("init", {THING: 1}), Container("sidecar", {THING: 2}, restartable=True)),
    )
    await core.admit(pod)
    assert set(device_health(core.manager.state, pod)) == {"app"}


def test_a_hundred_updates_wait_and_what_comes_on_top_is_dropped() -> None:
    updates = HealthUpdates()
    for number in range(QUEUE + 3):
        updates.offer([f"uid-{number}"])
    assert updates.dropped == 3
    assert updates.take() == {f"uid-{number}" for number in range(QUEUE)}
    assert updates.take() == set()
