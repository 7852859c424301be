from gpustow.simulation.kubelet.topology.affinities import Affinities
from gpustow.simulation.kubelet.topology.hints import Hint
from gpustow.simulation.kubelet.topology.masks import Mask

ON_0 = Hint(Mask.of((0,)), preferred=True)


def test_an_unknown_container_has_the_empty_hint() -> None:
    affinities = Affinities()
    affinities.store("pod", "main", ON_0)
    assert affinities.of("pod", "other") == affinities.of("another", "main") == Hint(None, preferred=False)


def test_a_stored_hint_stays_until_its_pod_is_forgotten() -> None:
    affinities = Affinities()
    affinities.store("pod", "main", ON_0)
    assert affinities.of("pod", "main") == ON_0
    affinities.forget("pod")
    affinities.forget("never seen")
    assert affinities.of("pod", "main") == Hint()
