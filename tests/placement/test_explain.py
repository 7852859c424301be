"""The reasons for a placement, in numbers and in a sentence."""

from collections.abc import Sequence

import pytest

from gpustow.hardware.links import Links
from gpustow.placement import Placement
from tests.placement.cards import NO_LINKS, ask, free_after, linked, replicas, whole
from tests.placement.fabrics import DGX1_V100


def shared(policy: str, totals: Sequence[int], used: Sequence[int], size: int, links: Links = NO_LINKS) -> Placement:
    devices = replicas(totals, numa=[gpu % 2 for gpu in range(len(totals))])
    return ask(policy, devices, size, available=free_after(devices, dict(enumerate(used))), links=links)


@pytest.mark.parametrize(
    ("placement", "decided_by", "takes", "next_best"),
    [
        (
            shared("packed", [4, 4], [1, 0], 2),
            "idle GPUs opened",
            "packed takes 2 on GPU 0, which opens 0 idle GPUs",
            "2 on GPU 1, opens 1 idle GPU",
        ),
        (
            shared("packed", [4, 4], [3, 2], 2),
            "GPUs touched",
            "packed takes 2 on GPU 1, which touches 1 GPU",
            "1 on GPU 0 and 1 on GPU 1, touches 2 GPUs",
        ),
        (
            shared("packed", [8, 8], [5, 3], 2),
            "best fit",
            "packed takes 2 on GPU 0, which leaves 1/8 of a GPU free where it lies",
            "2 on GPU 1, leaves 3/8 of a GPU free where it lies",
        ),
        (
            ask(
                "packed",
                replicas([6, 6]),
                3,
                available=free_after(replicas([6, 6]), {1: 2}),
                must_include=["gpu0::0", "gpu1::5"],
            ),
            "biggest hole",
            "packed takes 1 on GPU 0 and 2 on GPU 1, which keeps a hole of 5/6 of a GPU",
            "2 on GPU 0 and 1 on GPU 1, keeps a hole of 2/3 of a GPU",
        ),
        (
            shared("packed", [4] * 4, [0] * 4, 8, linked(4, [(0, 1, 1), (2, 3, 1)])),
            "GPU index",
            "packed takes 4 on GPU 0 and 4 on GPU 1",
            "4 on GPU 2 and 4 on GPU 3, is equal but for the GPU index",
        ),
        (
            shared("distributed", [8, 8], [5, 3], 2),
            "load levels",
            "distributed takes 2 on GPU 1, which brings a GPU to a load of 5/8",
            "1 on GPU 0 and 1 on GPU 1, brings a GPU to a load of 3/4",
        ),
        (
            shared("spread", [8, 8], [5, 3], 2),
            "distinct GPUs",
            "spread takes 1 on GPU 0 and 1 on GPU 1, which uses 2 GPUs",
            "2 on GPU 1, uses 1 GPU",
        ),
        (
            shared("spread", [4, 4, 4], [0, 0, 0], 2),
            "NUMA nodes",
            "spread takes 1 on GPU 0 and 1 on GPU 2, which spans 1 NUMA node",
            "1 on GPU 0 and 1 on GPU 1, spans 2 NUMA nodes",
        ),
        (
            shared("packed-aligned", [10] * 4, [0] * 4, 16, linked(4, [(0, 1, 1), (1, 2, 2)])),
            "link score",
            "packed-aligned takes 8 on GPU 1 and 8 on GPU 2, which has a link score of 210",
            "8 on GPU 0 and 8 on GPU 1, has a link score of 110",
        ),
        (
            shared("packed-aligned", [2, 2, 2], [0, 0, 0], 4, linked(3, [(1, 2, 1)])),
            "domain",
            "packed-aligned takes 2 on GPU 1 and 2 on GPU 2, which lies in one NVLink island",
            "2 on GPU 0 and 2 on GPU 2, lies in one NUMA node",
        ),
        (
            ask("packed", whole(8), 2, links=DGX1_V100),
            "GPU index",
            "aligned takes GPUs 0 and 3",
            "GPUs 1 and 2, is equal but for the GPU index",
        ),
        (
            ask("packed", whole(3), 1, links=linked(3, [(0, 1, 2)])),
            "links given up",
            "aligned takes GPU 2, which gives up links worth 20",
            "GPU 0, gives up links worth 220",
        ),
        (
            ask("packed", whole(3), 2, links=linked(3, [(0, 1, 2)])),
            "partition score",
            "aligned takes GPUs 0 and 1, which divides the GPUs offered into sets worth 210",
            "GPUs 0 and 2, divides the GPUs offered into sets worth 10",
        ),
    ],
)
def test_the_sentence_names_the_line_that_decided(
    placement: Placement, decided_by: str, takes: str, next_best: str
) -> None:
    explanation = placement.explanation()
    assert explanation.decided_by == decided_by
    assert explanation.sentence == f"{takes}; the next best, {next_best}."


def test_values_are_shown_as_people_read_them() -> None:
    placement = shared("packed-aligned", [4, 4], [0, 2], 2)
    assert placement.explanation().winner.objective == {
        "domain": "in one NVLink island",
        "GPUs": 1,
        "link score": 0,
        "idle GPUs opened": 0,
        "best fit": "0",
        "NUMA nodes": 1,
    }
    objective = shared("distributed", [4, 4], [0, 2], 2).explanation().winner.objective
    assert objective["load levels"] == ["1/2", "1/4"]
    assert shared("spread", [4, 4], [0, 2], 3).explanation().winner.objective["own slots"] == [2, 1]


def test_parts_that_cannot_be_even_are_explained_as_packed() -> None:
    explanation = shared("packed-aligned", [1, 5], [0, 0], 6).explanation()
    assert explanation.sentence == "packed-aligned takes 1 on GPU 0 and 5 on GPU 1; no other answer is possible."
    assert "GPUs touched" in explanation.winner.objective


def test_an_uneven_division_loses_against_an_even_one() -> None:
    explanation = shared("packed-aligned", [3, 3], [0, 0], 4).explanation()
    assert explanation.sentence == (
        "packed-aligned takes 2 on GPU 0 and 2 on GPU 1, which lies across the node; "
        "the next best, 3 on GPU 0 and 1 on GPU 1, lies in uneven parts."
    )


def test_nothing_asked_for_is_explained_too() -> None:
    explanation = shared("packed", [2], [0], 0).explanation()
    assert explanation.sentence == "packed takes nothing; no other answer is possible."


def test_must_include_is_part_of_what_is_shown() -> None:
    explanation = ask("packed", replicas([4, 4]), 2, must_include=["gpu1::0"]).explanation()
    assert explanation.winner.per_gpu == {1: 2}
    assert explanation.runner_up is not None
    assert explanation.runner_up.per_gpu == {0: 1, 1: 1}


@pytest.mark.parametrize(
    "placement",
    [
        shared("packed", [2, 2], [1, 1], 2),
        shared("spread", [4], [0], 2),
        ask("packed", whole(2), 2),
        ask("packed", whole(2), 1, must_include=["gpu1"]),
    ],
)
def test_the_only_answer_has_no_runner_up(placement: Placement) -> None:
    explanation = placement.explanation()
    assert explanation.runner_up is None
    assert explanation.decided_by is None
    assert explanation.sentence.endswith("; no other answer is possible.")


def test_a_request_for_no_whole_gpu_is_explained() -> None:
    explanation = ask("packed", whole(3), 0).explanation()
    assert explanation.winner.per_gpu == {}
    assert explanation.sentence == "aligned takes nothing; no other answer is possible."
