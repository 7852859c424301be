import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.errors import UsageError
from gpustow.injection import DeviceNode, Mount
from gpustow.simulation.kubelet.answer import Conflict, ContainerAnswer
from gpustow.simulation.kubelet.pod import AdmittedContainer, AdmittedPod, Container, Pod, effective_limits
from tests.simulation.kubelet.core import THING


def app(size: int, name: str = "app") -> Container:
    return Container(name, {THING: size})


def init(size: int, name: str = "init") -> Container:
    return Container(name, {THING: size})


def sidecar(size: int, name: str = "sidecar") -> Container:
    return Container(name, {THING: size}, restartable=True)


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(UsageError, match=f"container 'app': the limit of {THING} is -1"):
        app(-1)


def test_a_pod_needs_a_container() -> None:
    with pytest.raises(UsageError, match="pod default/a has no containers"):
        Pod("a")


def test_names_of_containers_do_not_repeat() -> None:
    with pytest.raises(UsageError, match="the names of its containers repeat: init, app, app"):
        Pod("a", containers=(app(1), app(1)), init_containers=(init(1),))


def test_containers_come_init_containers_first() -> None:
    pod = Pod("a", "team", (app(1),), (init(1), sidecar(1)))
    assert pod.key == "team/a"
    assert [container.name for container in pod.in_order()] == ["init", "sidecar", "app"]
    assert [pod.is_init(name) for name in ("init", "sidecar", "app")] == [True, True, False]
    assert pod.lasting() == ("sidecar", "app")
    assert [pod.is_sidecar(name) for name in ("init", "sidecar", "app")] == [False, True, False]


@pytest.mark.parametrize(
    ("containers", "init_containers", "limit"),
    [
        ((app(2), app(1, "more")), (), 3),
        ((app(1),), (init(6),), 6),
        ((app(1),), (init(3), init(2, "later")), 3),
        ((app(2),), (sidecar(1),), 3),
        ((app(1),), (sidecar(1), init(4)), 5),
        ((app(1),), (init(4), sidecar(1)), 4),
        ((app(2), app(1, "more")), (init(3), sidecar(1), init(2, "later")), 4),
        ((Container("idle"),), (sidecar(2), sidecar(3, "more")), 5),
        ((Container("idle"),), (sidecar(2), init(1), sidecar(3, "more")), 5),
        ((app(0),), (), 0),
    ],
)
def test_the_effective_limit(
    containers: tuple[Container, ...], init_containers: tuple[Container, ...], limit: int
) -> None:
    assert effective_limits(Pod("a", "default", containers, init_containers)) == {THING: limit}


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=4),
)
def test_the_effective_limit_is_the_most_that_ever_runs_at_once(apps: list[int], inits: list[tuple[bool, int]]) -> None:
    pod = Pod(
        "a",
        containers=tuple(app(size, f"app{number}") for number, size in enumerate(apps)),
        init_containers=tuple(
            Container(f"init{number}", {THING: size}, restartable) for number, (restartable, size) in enumerate(inits)
        ),
    )
    moments, standing = [], 0
    for restartable, size in inits:
        moments.append(standing + size)
        standing += size if restartable else 0
    assert effective_limits(pod)[THING] == max([*moments, standing + sum(apps)])


def test_an_admitted_pod_tells_what_each_container_has() -> None:
    edits = ContainerAnswer({"A": "1"}, (Mount("/c", "/h"),), (DeviceNode("/dev/c", "/dev/h"),), {"n": "v"}, ("x/y=z",))
    conflict = Conflict("env", "A", "1", "2")
    main = AdmittedContainer("main", {THING: ("d1", "d0")}, edits, (conflict,))
    first = AdmittedContainer("first", {THING: ("d0",)}, ContainerAnswer())
    admitted = AdmittedPod(Pod("a", containers=(app(1),)), (main,), (first,))
    assert admitted.container("first") is first
    assert admitted.device_ids(THING) == ("d0", "d1")
    assert admitted.device_ids("example.com/other") == ()
    assert (main.envs, main.mounts, main.devices) == (edits.envs, edits.mounts, edits.devices)
    assert (main.annotations, main.cdi_devices) == ({"n": "v"}, ("x/y=z",))
    with pytest.raises(KeyError):
        admitted.container("nobody")
