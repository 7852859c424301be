"""Sets with one form are one set in all that links can tell."""

from collections.abc import Callable
from itertools import permutations

import pytest

from gpustow.hardware.links import Link
from gpustow.placement.forms import forms_of
from tests.placement.fabrics import BRIDGED, DGX1_V100, dgx2, islands, links_of
from tests.placement.test_fabric import random_matrix


def matrix_of(count: int, link: Callable[[int, int], Link]) -> tuple[tuple[int, ...], ...]:
    return links_of(count, link).scores(range(count))


@pytest.mark.parametrize(
    ("link", "most"),
    [
        (lambda _a, _b: Link(None, 6), 17),
        (lambda a, b: Link(None, 4 if a // 2 == b // 2 else 0), 45),
        (islands, 120),
        (dgx2, 231),
    ],
)
def test_sixteen_gpus_of_a_real_fabric_have_few_forms(link: Callable[[int, int], Link], most: int) -> None:
    assert len(set(forms_of(matrix_of(16, link)))) <= most


def test_gpus_that_are_all_different_have_a_form_for_each_set_of_two_or_more() -> None:
    forms = forms_of(random_matrix(7))
    assert len(set(forms)) == 2**7 - 7 + 1
    assert forms[0] == 0
    assert {forms[1 << at] for at in range(7)} == {1}


def _isomorphic(matrix: tuple[tuple[int, ...], ...], one: list[int], other: list[int]) -> bool:
    return any(
        all(matrix[one[a]][one[b]] == matrix[image[a]][image[b]] for a in range(len(one)) for b in range(a))
        for image in permutations(other)
    )


@pytest.mark.parametrize(
    "matrix",
    [
        BRIDGED.scores(range(6)),
        DGX1_V100.scores(range(6)),
        matrix_of(6, dgx2),
        matrix_of(6, islands),
        # Only the lowest of the links is missing inside a module: it falls apart by its highest score.
        matrix_of(6, lambda a, b: Link(None, 0 if a // 2 == b // 2 else 2)),
        matrix_of(6, lambda a, b: Link(None, 1 if (a + b) % 2 else 3)),
        random_matrix(5),
    ],
)
def test_sets_of_one_form_can_be_mapped_onto_each_other(matrix: tuple[tuple[int, ...], ...]) -> None:
    count = len(matrix)
    by_form: dict[int, list[list[int]]] = {}
    for mask, form in enumerate(forms_of(matrix)):
        members = [position for position in range(count) if mask >> (count - 1 - position) & 1]
        by_form.setdefault(form, []).append(members)
    for first, *others in by_form.values():
        for other in others:
            assert len(first) == len(other)
            assert _isomorphic(matrix, first, other)


def test_no_gpus_have_the_empty_form() -> None:
    assert forms_of(()) == [0]
    assert forms_of(((0,),)) == [0, 1]
