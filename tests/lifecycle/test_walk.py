"""Random walks through the life of a node, in a time that is not real: nothing that must never be ever is."""

import asyncio
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from gpustow.config import load_config
from gpustow.kubelet.devicefeed import DeviceFeed
from gpustow.kubelet.server import PluginServer
from gpustow.plugin import Supervisor
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.resource import ResourcePlugin
from gpustow.plugin.roster import Roster
from gpustow.resources import build_catalog
from gpustow.resources.device import Resource
from gpustow.simulation.kubelet.state import DeviceState
from tests.lifecycle import __main__ as command
from tests.lifecycle.machine import LAYOUTS, Machine, Place
from tests.lifecycle.settings import BAD, SETTINGS, HealthTimes, Setting
from tests.lifecycle.walk import Outcome, shortest, walk

STEPS = 20_000
AT_ONCE = 2
WALKS, LENGTH = 6, 200
"""Within so many walks of this length each sabotage is found."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of lines of the daemon's log say nothing that the story of a walk does not."""
    logger = logging.getLogger("gpustow")
    logging.disable(logging.INFO)
    logger.propagate = False
    yield
    logger.propagate = True
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_whatever_happens_no_device_is_given_twice_nor_a_sick_one_and_kubelet_knows_what_there_is() -> None:
    """Beside each other in processes of their own, which are not measured for coverage: that doubles what it takes."""
    share = STEPS // AT_ONCE
    walks = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.lifecycle", f"--steps={share}", f"--seed={1 + share * number}"),
            env={},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        for number in range(AT_ONCE)
    ]
    for each in walks:
        told = (await each.communicate())[0].decode()
        assert each.returncode == 0, told
        found = re.search(r"(\d+) steps in .* (\d+) admissions, (\d+) comparisons in quiet", told)
        assert found is not None, told
        steps, admitted, compared = map(int, found.groups())
        assert steps >= share
        assert admitted > share / 10, told
        assert compared > share / 5, told


@pytest.mark.parametrize("seed", [1, 2])
def test_a_walk_in_this_process(seed: int) -> None:
    outcome = walk(seed, steps=150)
    assert outcome.violation is None, outcome.told()
    assert len(outcome.deeds) == 150


def test_a_seed_always_makes_the_same_story_and_so_do_its_deeds() -> None:
    outcome = walk(3, steps=80)
    assert walk(3, steps=80) == outcome
    assert walk(3, deeds=outcome.deeds) == outcome


def _is_always(value: object) -> Callable[..., object]:
    return lambda *_args, **_kwargs: value


def _leave_a_task(usage: NodeUsage, resources: Iterable[Resource]) -> None:
    usage._resources = tuple(resources)
    asyncio.create_task(asyncio.sleep(1e6)).add_done_callback(lambda _: None)


def _never_wake(feed: DeviceFeed, message: bytes) -> None:
    feed._message = message


SABOTAGE: dict[str, dict[tuple[object, str], Any]] = {
    "unfit devices stay healthy": {(Roster, "_is_sick"): _is_always(False)},
    "what is gone leaves while it is held": {("gpustow.plugin.roster", "successor"): lambda _old, new, _stays: new},
    "what is gone never leaves": {(Roster, "_stays"): _is_always(True)},
    "kubelet is not told of changes": {(DeviceFeed, "publish"): _never_wake},
    "a restart of kubelet is not noticed": {
        (PluginServer, "intact"): _is_always(True),
        (ResourcePlugin, "_lost"): _is_always(None),
    },
    "a device is given to two pods": {(DeviceState, "free"): lambda state, name: state.table.healthy.get(name, set())},
    "nothing recovers": {("gpustow.health.nodehealth", "proven"): lambda condition, *_: condition},
    "what recovers is not held": {("gpustow.health.condition", "hold_time"): _is_always(0.0)},
    "containers see other devices": {("gpustow.injection.allocation", "_runtime_name"): lambda device, _: device.index},
    "sockets of the dead stay": {("gpustow.plugin.serving", "remove_stale_sockets"): _is_always(())},
    "tasks are left behind": {(NodeUsage, "serve"): _leave_a_task},
    "it is always ready": {(Supervisor, "not_ready"): None},
}


def _violated() -> Outcome | None:
    outcomes = (walk(seed, steps=LENGTH) for seed in range(1, WALKS + 1))
    return next((outcome for outcome in outcomes if outcome.violation is not None), None)


def _do(sabotage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for (where, name), what in SABOTAGE[sabotage].items():
        if isinstance(where, str):
            monkeypatch.setattr(f"{where}.{name}", what)
        else:
            monkeypatch.setattr(where, name, what)


@pytest.mark.parametrize("sabotage", SABOTAGE)
def test_each_sabotage_is_found(sabotage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _do(sabotage, monkeypatch)
    assert _violated() is not None


def test_a_story_is_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    _do("unfit devices stay healthy", monkeypatch)
    outcome = _violated()
    assert outcome is not None
    short = shortest(outcome, 60)
    assert short.violation is not None
    assert len(short.deeds) <= 3
    assert walk(short.seed, deeds=short.deeds).told() == short.told()


def test_the_command_tells_what_it_has_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--steps=30", "--seed=4"]) == 0
    assert "30 steps in 1 walks, seeds 4 to 4:" in capsys.readouterr().out


def test_the_command_tells_the_shortest_story_that_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _do("nothing recovers", monkeypatch)
    assert command.main(["--seconds=60", "--shorten=2"]) == 1
    told = capsys.readouterr().out
    assert "VIOLATION: " in told
    assert "deeds=[Deed(kind=" in told


def test_the_command_wants_to_know_for_how_long(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main([])
    assert "--seconds or --steps" in capsys.readouterr().err


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_what_the_model_says_a_configuration_offers_is_what_the_catalog_has(setting: Setting) -> None:
    machine = Machine()
    for card, layout in zip(machine.cards, (LAYOUTS[1], LAYOUTS[3], None, None), strict=True):
        machine.cut(card, layout)
    machine.move(machine.cards[3], Place.LOST)
    config = load_config({"config-file": "file"}, {}, lambda _path: setting.text(HealthTimes())).config
    catalog = build_catalog(machine.read(), config)
    found = {resource.name: {device.id: device.uuid for device in resource.devices} for resource in catalog.resources}
    assert setting.offered(card for card in machine.cards if card.here) == found


def test_the_bad_configuration_is_refused() -> None:
    with pytest.raises(Exception, match="no-such-policy"):
        load_config({"config-file": "file"}, {}, lambda _path: BAD.text(HealthTimes()))
