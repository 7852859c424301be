"""Every combination of what decides about an answer: the table is current, and v0.20.0's rules say the same."""

import pytest

from gpustow.config import DeviceListStrategy
from gpustow.injection import ContainerEdits, container_edits
from tests.injection.oracle import OURS, UPSTREAM, Difference, Oracle
from tests.injection.samples import REQUESTS, RESPONSE_ID, STRATEGIES, Scene, scenes
from tests.injection.tables import FILE, table

ALL_SCENES = [scene for strategies in STRATEGIES for scene in scenes(strategies)]


def edits(scene: Scene) -> ContainerEdits:
    return container_edits(scene.resource, scene.ids, scene.config, scene.host, RESPONSE_ID)


def oracle(scene: Scene, differences: frozenset[Difference]) -> ContainerEdits:
    return Oracle(scene, RESPONSE_ID, differences).answer()


def differs(scene: Scene) -> frozenset[Difference]:
    """The differences from v0.20.0 that show in the answer to a scene."""
    strategies = set(scene.config.device_list_strategies)
    listed = {DeviceListStrategy.ENVVAR, DeviceListStrategy.VOLUME_MOUNTS}
    shows = set()
    if listed <= strategies:
        shows.add(Difference.VARIABLE_KEEPS_THE_IDS)
    if scene.config.pass_device_specs and listed & strategies and scene.kind != "GPU":
        shows.add(Difference.NODES_ONCE)
    return frozenset(shows)


def test_every_combination_is_there_once() -> None:
    assert len(STRATEGIES) == 15
    assert len(ALL_SCENES) == 15 * 2 * len(REQUESTS) * 2 * 2 == 480
    assert len({repr((scene.kind, scene.config)) for scene in ALL_SCENES}) == 480


def test_the_table_is_current() -> None:
    assert table() == FILE.read_text(encoding="utf-8"), "python -m tests.injection.tables writes it anew"


@pytest.mark.parametrize("strategies", STRATEGIES, ids=lambda each: "+".join(strategy.value for strategy in each))
def test_every_answer_is_that_of_the_rules(strategies: tuple[DeviceListStrategy, ...]) -> None:
    for scene in scenes(strategies):
        assert edits(scene) == oracle(scene, OURS)


def test_where_no_difference_shows_the_answer_is_that_of_the_original() -> None:
    for scene in ALL_SCENES:
        assert edits(scene) == oracle(scene, differs(scene))
        assert (edits(scene) == oracle(scene, UPSTREAM)) == (not differs(scene))


def test_no_annotation_is_ever_empty() -> None:
    for scene in ALL_SCENES:
        annotated = DeviceListStrategy.CDI_ANNOTATIONS in scene.config.device_list_strategies
        assert len(edits(scene).annotations) == annotated
        assert all(edits(scene).annotations.values())
