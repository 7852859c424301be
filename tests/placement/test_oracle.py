"""Every policy against brute force over all answers, on random nodes."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from gpustow.placement import Policy
from tests.placement import oracle
from tests.placement.scenes import Case, build, cases

THOUSANDS = settings(max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])

KEYS: dict[str, Callable[[oracle.Scene, oracle.Counts], oracle.Key | None]] = {
    "packed": oracle.packed,
    "distributed": oracle.distributed,
    "spread": oracle.spread,
    "packed-aligned": oracle.packed_aligned,
}


def runner_up(case: Case, policy: Policy) -> tuple[int, ...] | None:
    """New slots on each GPU of the next best answer."""
    other = case.place(policy).explanation().runner_up
    if other is None:
        return None
    order = sorted({device.gpu_index for device in case.devices})
    both = zip(order, case.scene.must, strict=True)
    return tuple(other.per_gpu.get(index, 0) - must for index, must in both)


@pytest.mark.slow
@THOUSANDS
@given(case=cases("shared", "mig"))
def test_the_answer_is_the_best_of_all_answers(case: Case) -> None:
    for name, key in KEYS.items():
        ranked = oracle.ranked(case.scene, key)
        if ranked:
            assert case.counts(case.place(Policy.named(name))) == ranked[0]
        else:  # no even division: as packed
            assert name == "packed-aligned"
            packed = oracle.ranked(case.scene, oracle.packed)[0]
            assert case.counts(case.place(Policy.named(name))) == packed


@pytest.mark.slow
@settings(THOUSANDS, max_examples=500)
@given(case=cases("shared", "mig"))
def test_the_answer_under_a_cap_is_the_best_that_keeps_the_cap(case: Case) -> None:
    for cap in (1, 2, 3):
        ranked = oracle.ranked(case.scene, oracle.packed, cap)
        assert case.counts(case.place(Policy.named("packed", cap=cap))) == ranked[0]


@pytest.mark.slow
@settings(THOUSANDS, max_examples=500)
@given(case=cases("shared", "mig", gpus=5, most=5))
def test_the_runner_up_is_the_second_best_of_all_answers(case: Case) -> None:
    for name, key in KEYS.items():
        ranked = oracle.ranked(case.scene, key)
        if len(ranked) > 1:
            assert runner_up(case, Policy.named(name)) == ranked[1]


@pytest.mark.slow
@settings(THOUSANDS, max_examples=1_000)
@given(case=cases("whole", gpus=7, most=1))
def test_the_whole_gpus_are_the_best_of_all_divisions(case: Case) -> None:
    ranked = oracle.aligned(case.scene)
    answer = case.counts(case.place(Policy.named("packed")))
    chosen = [gpu for gpu, count in enumerate(answer) if count or case.scene.must[gpu]]
    assert tuple(chosen) == ranked[0]
    other = runner_up(case, Policy.named("packed"))
    if len(ranked) == 1:
        assert other is None
    else:
        assert other is not None
        assert tuple(gpu for gpu in case.scene.gpus if other[gpu] or case.scene.must[gpu]) == ranked[1]


def test_the_random_cases_cover_what_they_should() -> None:
    built = [build(Random(seed), "shared", gpus=6, most=6) for seed in range(300)]
    scenes = [case.scene for case in built if case is not None]
    assert any(sum(scene.must) for scene in scenes)
    assert any(len(set(scene.share)) > 1 for scene in scenes)
    assert any(0 in scene.load for scene in scenes)
    assert any(max(scene.island.count(label) for label in scene.island) > 1 for scene in scenes)
    assert any(not device.healthy for case in built if case is not None for device in case.devices)
