from dataclasses import replace

import pytest

from gpustow.errors import AdmissionError, UsageError
from gpustow.simulation.kubelet import podbook
from gpustow.simulation.kubelet.podbook import Phase, PodBook, PodStatus, refused
from tests.simulation.kubelet.core import THING, wanting

A, B = wanting("a", 1), wanting("b", 2)
DONE = PodStatus(Phase.SUCCEEDED)


def book_with_both() -> PodBook:
    book = PodBook()
    for pod in (A, B):
        book.create(pod)
        book.run(pod)
    return book


def test_a_pod_is_active_from_its_admission_to_its_end() -> None:
    book = PodBook()
    book.create(A)
    assert book.record("default", "a").status == PodStatus(Phase.PENDING)
    assert book.active() == book.pods() == [A]
    book.run(A)
    assert book.active() == book.pods() == [A]
    assert book.active_uids() == ["uid-a"]
    book.end(A, DONE)
    assert (book.active(), book.pods()) == ([], [A])
    assert book.remove("default", "a") == A
    assert book.pods() == []


def test_a_pod_of_the_same_name_has_to_end_first() -> None:
    book = PodBook()
    book.create(A)
    with pytest.raises(UsageError, match="pod default/a is there already"):
        book.create(A)
    book.run(A)
    with pytest.raises(UsageError, match="pod default/a is there already"):
        book.create(A)
    book.end(A, DONE)
    book.create(A)
    assert book.record("default", "a").status.phase is Phase.PENDING


def test_a_pod_of_the_same_name_is_not_that_very_pod() -> None:
    book = book_with_both()
    assert book.has(A)
    assert not book.has(replace(A, uid="another"))
    assert not book.has(wanting("c", 1))


def test_an_unknown_pod_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        PodBook().remove("default", "a")


def test_what_the_other_active_pods_want() -> None:
    book = book_with_both()
    assert book.used(THING, A) == 2
    assert book.used("example.com/other", A) == 0
    book.end(B, DONE)
    assert book.used(THING, A) == 0


def test_of_too_many_ended_pods_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podbook, "ENDED_KEPT", 1)
    book = book_with_both()
    book.end(A, DONE)
    book.end(B, DONE)
    assert book.pods() == [B]


def test_a_refused_pod_has_failed_with_kubelets_reason_and_message() -> None:
    status = refused(AdmissionError("default/a", "TopologyAffinityError", "no locality"))
    assert status == PodStatus(Phase.FAILED, "TopologyAffinityError", "Pod was rejected: no locality")
