import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.hardware.links import Link, Links, PcieLevel

_LINK = st.builds(Link, st.none() | st.sampled_from(PcieLevel), st.integers(0, 40))


@pytest.mark.parametrize(
    ("link", "score", "label"),
    [
        (Link(), 0, "?"),
        (Link(PcieLevel.SYSTEM), 10, "SYS"),
        (Link(PcieLevel.NUMA_NODE), 20, "NODE"),
        (Link(PcieLevel.HOST_BRIDGE), 30, "PHB"),
        (Link(PcieLevel.MULTIPLE_SWITCHES), 40, "PXB"),
        (Link(PcieLevel.SINGLE_SWITCH), 50, "PIX"),
        (Link(PcieLevel.SAME_BOARD), 60, "PSB"),
        (Link(PcieLevel.SYSTEM, 2), 210, "NV2"),
        (Link(None, 1), 100, "NV1"),
        (Link(PcieLevel.NUMA_NODE, 18), 1820, "NV18"),
        (Link(PcieLevel.NUMA_NODE, 19), 1820, "NV19"),
    ],
)
def test_a_link_has_the_score_and_the_label_of_its_kind(link: Link, score: int, label: str) -> None:
    assert (link.score, link.label) == (score, label)


def test_a_pair_that_is_read_differently_counts_as_the_lower() -> None:
    links = Links((((0, 1), Link(PcieLevel.SYSTEM, 4)), ((1, 0), Link(PcieLevel.SYSTEM, 2))))
    assert links.scores([0, 1]) == ((0, 210), (210, 0))


def test_a_pair_that_only_one_end_reports_counts_as_unknown() -> None:
    assert Links((((0, 1), Link(PcieLevel.SYSTEM)),)).scores([0, 1]) == ((0, 0), (0, 0))


def test_links_from_pairs_are_reported_by_both_ends() -> None:
    link = Link(PcieLevel.SINGLE_SWITCH, 2)
    assert Links.symmetric([(3, 1, link)]).table() == {(1, 3): link, (3, 1): link}


@given(st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 4)), _LINK), st.permutations(range(5)))
def test_scores_are_symmetric_and_follow_the_order_of_the_gpus(
    readings: dict[tuple[int, int], Link], order: list[int]
) -> None:
    links = Links(tuple(readings.items()))
    plain, moved = links.scores(range(5)), links.scores(order)
    for row in range(5):
        assert plain[row][row] == 0
        for column in range(5):
            assert plain[row][column] == plain[column][row]
            assert moved[row][column] == plain[order[row]][order[column]]
