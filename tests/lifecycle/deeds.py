"""What can happen in a world, and how it is written down: a deed has a kind, two numbers and a pause.

The numbers choose among what is there (which card, which pod, how many), so that any part of a story is a story.
A deed that is not possible does nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.lifecycle import carddeeds
from tests.lifecycle.pods import Violation
from tests.lifecycle.settings import BAD, SETTINGS, Setting
from tests.lifecycle.world import World
from tests.plugin.samples import our_sockets

QUIET = -1.0
"""The pause of a deed after which one waits until all is quiet."""

HIGHEST = 1 << 16


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that happens. After it `pause` seconds pass, or QUIET."""

    kind: str
    a: int
    b: int
    pause: float

    def __str__(self) -> str:
        return f"Deed({self.kind!r}, {self.a}, {self.b}, {self.pause})"


async def admit(world: World, a: int, b: int) -> str | None:
    """A pod that the scheduler would send here, or now and then one that it would not; one time in four beside what
    comes next."""
    if not world.kubelet_up:
        return None
    free = {name: number for name, number in world.pods.free().items() if number > 0}
    names = sorted(free)
    if not names:
        return None
    first = names[a % len(names)]
    parts = 1 + (b % 7 == 0 and free[first] > 1)
    wants = {first: 1 + (b // 7) % (free[first] // parts)}
    if len(names) > 1 and parts == 1 and (a // 8) % 3 == 0:
        second = names[(a // 24) % len(names)]
        wants.setdefault(second, 1 + (b // 64) % free[second])
    if b % 31 == 0:
        wants[first] += free[first]
    task = asyncio.create_task(world.pods.admit(wants, parts), name="admission")
    world.admissions[task] = None
    what = f"a pod with {parts} x {wants}"
    if a % 4 == 0:
        return f"{what} comes"
    await asyncio.wait([task])
    return what


async def release(world: World, a: int, _b: int) -> str | None:
    names = sorted(world.pods.running)
    if not names:
        return None
    name = names[a % len(names)]
    world.pods.release(name)
    return f"{name} is deleted"


async def release_most(world: World, a: int, _b: int) -> str | None:
    names = sorted(world.pods.running)
    for name in names[a % 3 :]:
        world.pods.release(name)
    return f"all pods but {a % 3} are deleted" if names[a % 3 :] else None


async def configure(world: World, a: int, b: int) -> str | None:
    """Another good configuration, with SIGHUP or left to be seen."""
    setting = SETTINGS[a % len(SETTINGS)]
    if not setting.offered(card for card in world.machine.cards if card.here):
        return None
    return _reload(world, setting, b)


async def configure_badly(world: World, _a: int, b: int) -> str | None:
    if not world.daemon.up or world.clock() < world.loaded_by:
        return None
    return _reload(world, BAD, b)


def _reload(world: World, setting: Setting, b: int) -> str:
    world.write(setting)
    world.takes(world.pace.look)
    if b % 2 and world.daemon.up:
        world.daemon.sighup()
        return f"configuration {setting.name!r}, and SIGHUP"
    return f"configuration {setting.name!r}"


async def hup(world: World, _a: int, _b: int) -> str | None:
    if not world.daemon.up:
        return None
    world.daemon.sighup()
    world.takes(world.pace.reload)
    return "SIGHUP"


async def restart_kubelet(world: World, a: int, b: int) -> str | None:
    """Stopped or killed, and started again soon."""
    if not world.kubelet_up:
        return None
    await _stop_kubelet(world, killed=bool(a % 2))
    await asyncio.sleep((0.05, 0.4, 1.5)[b % 3])
    await _start_kubelet(world)
    return f"kubelet is {'killed' if a % 2 else 'stopped'} and started again"


async def stop_kubelet(world: World, a: int, _b: int) -> str | None:
    if not world.kubelet_up:
        return None
    await _stop_kubelet(world, killed=bool(a % 2))
    return f"kubelet is {'killed' if a % 2 else 'stopped'}"


async def start_kubelet(world: World, _a: int, _b: int) -> str | None:
    if world.kubelet_up:
        return None
    await _start_kubelet(world)
    return "kubelet starts"


async def _stop_kubelet(world: World, *, killed: bool) -> None:
    world.comes_or_goes()
    world.kubelet_up = False
    await world.kubelet.stop(killed=killed)
    if killed:
        world.bury(world.kubelet.registration_socket)
        world.bury(world.kubelet.pod_resources_socket)


async def _start_kubelet(world: World) -> None:
    world.comes_or_goes()
    refused = [each for each in await world.kubelet.start() if each.refusal is not None]
    world.kubelet_up = True
    world.comes_or_goes()
    if refused:
        raise Violation(f"pods that run are refused by the kubelet that starts: {refused}")


async def kill(world: World, _a: int, _b: int) -> str | None:
    if not world.daemon.up:
        return None
    await world.daemon.kill()
    world.expectation.daemon_ended()
    world.comes_or_goes()
    return "the daemon is killed"


async def stop(world: World, _a: int, _b: int) -> str | None:
    if not world.daemon.up:
        return None
    world.comes_or_goes()
    await world.daemon.stop()
    world.expectation.daemon_ended()
    world.comes_or_goes()
    return "the daemon is stopped"


async def start(world: World, a: int, _b: int) -> str | None:
    """A good configuration is what it starts with; a bad one would end it."""
    if world.daemon.up:
        return None
    if world.file_is.bad:
        world.write(SETTINGS[a % len(SETTINGS)])
    world.expectation.daemon_ended()
    await asyncio.sleep(0.5)  # an interpreter starts
    await world.daemon.start()
    world.loaded_by = world.clock() + world.pace.look
    world.comes_or_goes()
    return f"the daemon starts with configuration {world.file_is.name!r}"


async def kill_and_start(world: World, a: int, b: int) -> str | None:
    if await kill(world, a, b) is None:
        return None
    await start(world, a, b)
    return "the daemon is killed and started again"


async def delete_socket(world: World, a: int, _b: int) -> str | None:
    """Somebody deletes one of our sockets."""
    sockets = our_sockets(world.kubelet.plugin_directory)
    if not sockets or not world.daemon.up or not world.is_quiet():
        return None
    name = sockets[a % len(sockets)]
    (world.kubelet.plugin_directory / name).unlink()
    world.comes_or_goes()
    return f"{name} is deleted"


async def wait(_world: World, a: int, _b: int) -> str | None:
    seconds = (2.0, 5.0, 15.0, 30.0, 5.0, 15.0, 30.0, 100.0)[a % 8]
    await asyncio.sleep(seconds)
    return f"{seconds:g} s pass"


DEEDS: dict[str, Callable[[World, int, int], Awaitable[str | None]]] = {
    function.__name__: function
    for function in (
        admit,
        release,
        release_most,
        carddeeds.xid,
        carddeeds.xid_of_nobody,
        carddeeds.need_repair,
        carddeeds.repair,
        carddeeds.lose,
        carddeeds.remove,
        carddeeds.bring_back,
        carddeeds.cut,
        configure,
        configure_badly,
        hup,
        restart_kubelet,
        stop_kubelet,
        start_kubelet,
        kill,
        stop,
        start,
        kill_and_start,
        delete_socket,
        carddeeds.break_source,
        carddeeds.mend_source,
        wait,
    )
}

WEIGHTS = {
    "admit": 60,
    "release": 28,
    "release_most": 2,
    "xid": 8,
    "xid_of_nobody": 1,
    "need_repair": 2,
    "repair": 4,
    "lose": 3,
    "remove": 1,
    "bring_back": 16,
    "cut": 5,
    "configure": 5,
    "configure_badly": 1,
    "hup": 2,
    "restart_kubelet": 4,
    "stop_kubelet": 1,
    "start_kubelet": 12,
    "kill": 1,
    "stop": 1,
    "start": 12,
    "kill_and_start": 3,
    "delete_socket": 1,
    "break_source": 1,
    "mend_source": 8,
    "wait": 4,
}
"""How often each is tried. Those that mend something are tried often, since they are possible seldom."""
