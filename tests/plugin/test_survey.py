"""One look at the node at a time, and what is made of it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpustow.config import Config
from gpustow.errors import CdiDirectoryError, ConfigError, GpustowError, HardwareError, NoDevicesError, Problem
from gpustow.hardware.node import Node, Platform
from gpustow.injection.cdi.directory import CdiDirectory
from gpustow.injection.cdi.specification import CdiEdits, CdiMount
from gpustow.injection.cdi.specs import CdiSpecs
from gpustow.injection.hostdevices import HostDevices
from gpustow.plugin.cdispecs import SpecKeeper, no_specs, simulated_specs
from gpustow.plugin.hostreading import HostReader, simulated_host
from gpustow.plugin.survey import Survey, Surveyor
from tests.kubelet.fakekubelet import until
from tests.plugin.samples import Reader, config, gpu, node
from tests.plugin.test_cdispecs import texts


def surveyor(reader: Reader, host: HostReader = simulated_host, limit: float = 10) -> Surveyor:
    return Surveyor(reader.make, host, SpecKeeper(no_specs, lambda: 0.0, CdiDirectory), limit)


async def test_an_unchanged_node_gives_the_survey_that_is_known() -> None:
    reader = Reader(node(gpu(0)))
    maker = surveyor(reader)
    first = await maker.survey(config())
    reader.answer = node(gpu(0))
    assert await maker.survey(config(), first) is first
    assert await maker.survey(config(mig_strategy="mixed"), first) is not first
    reader.answer = node(gpu(0), gpu(1))
    second = await maker.survey(config(), first)
    assert len(second.accepted().served[0].resource.devices) == 2


async def test_a_reload_makes_the_specifications_anew_and_a_rescan_does_not(tmp_path: Path) -> None:
    made = 0
    mounts: list[str] = []

    def make(found: Node, given: Config, host: HostDevices) -> CdiSpecs:
        nonlocal made
        made += 1
        specs = simulated_specs(found, given, host)
        edits = CdiEdits(mounts=tuple(CdiMount(path, path) for path in mounts))
        return replace(specs, specs=tuple(replace(spec, edits=spec.edits + edits) for spec in specs.specs))

    flags = {"device_list_strategy": "cdi-cri", "cdi_directory": str(tmp_path)}
    maker = Surveyor(Reader(node(gpu(0))).make, simulated_host, SpecKeeper(make, lambda: 0.0), 10)
    given = config(**flags)
    first = await maker.survey(given)
    assert (await maker.survey(given, first), made) == (first, 1)
    again = config(**flags)
    assert await maker.survey(again, first) is first, "the same came out"
    assert await maker.survey(again, first) is first
    assert made == 2
    mounts.append("/usr/lib64/libcuda.so.999.1")
    other = await maker.survey(config(**flags), first)
    assert other.offer is first.offer
    assert other.files is not None
    (spec,) = other.files.specs
    assert spec.edits.mounts
    assert texts(tmp_path) == [spec.to_json()]


async def test_a_reload_that_cannot_make_the_specifications_anew_is_refused(tmp_path: Path) -> None:
    flags = {"device_list_strategy": "cdi-cri", "cdi_directory": str(tmp_path / "cdi")}
    maker = Surveyor(Reader(node(gpu(0))).make, simulated_host, SpecKeeper(simulated_specs, lambda: 0.0), 10)
    given = config(**flags)
    first = await maker.survey(given)
    (tmp_path / "cdi").rename(tmp_path / "away")
    (tmp_path / "cdi").touch()
    with pytest.raises(CdiDirectoryError):
        (await maker.survey(config(**flags), first)).accepted()
    assert await maker.survey(given, first) is first


async def test_other_host_devices_are_a_change() -> None:
    found = HostDevices(gds=())

    def host(_config: Config, _platform: Platform) -> HostDevices:
        return found

    maker = surveyor(Reader(node(gpu(0))), host)
    first = await maker.survey(config())
    found = HostDevices(gds=("/dev/nvidia-fs0",))
    assert (await maker.survey(config(), first)).host == found


def bad_host(_config: Config, _platform: Platform) -> HostDevices:
    raise HardwareError("the IMEX channel 0 is required and not there")


@pytest.mark.parametrize(
    ("found", "host", "refusal"),
    [
        (node(), simulated_host, NoDevicesError),
        (node(gpu(0), gpu(1, mig_devices=1)), simulated_host, HardwareError),
        (node(gpu(0)), bad_host, HardwareError),
    ],
)
async def test_a_node_that_does_not_go_with_the_configuration_is_read_nevertheless(
    found: Node, host: HostReader, refusal: type[GpustowError]
) -> None:
    maker = surveyor(Reader(found), host)
    survey = await maker.survey(config(mig_strategy="single"))
    assert survey.node == found
    with pytest.raises(refusal):
        survey.accepted()
    assert await maker.survey(config(mig_strategy="single"), survey) is not survey, "what is refused is tried again"


async def test_a_driver_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(HardwareError, match="no driver"):
        await surveyor(Reader(HardwareError("no driver"))).survey(config())


def test_a_survey_without_offer_and_reason_is_an_error() -> None:
    with pytest.raises(HardwareError):
        Survey(Config(), node(), None, None).accepted()
    with pytest.raises(ConfigError):
        Survey(Config(), node(), None, None, ConfigError("f", [Problem("p", "m")])).accepted()


class Hanging(Reader):
    """Reads only when it is let."""

    def __init__(self, answer: Node | Exception) -> None:
        super().__init__(answer)
        self.gate = threading.Event()

    def read(self) -> Node:
        self.gate.wait()
        return super().read()


@contextmanager
def hanging(answer: Node | Exception) -> Iterator[Hanging]:
    reader = Hanging(answer)
    try:
        yield reader
    finally:
        reader.gate.set()


def threads() -> int:
    return sum(thread.name == "read node" for thread in threading.enumerate())


@pytest.mark.parametrize("answer", [node(gpu(0)), HardwareError("too late")])
async def test_a_driver_that_hangs_costs_one_thread_until_it_comes_back(answer: Node | Exception) -> None:
    with hanging(answer) as reader:
        maker = surveyor(reader, limit=0.05)
        with pytest.raises(HardwareError, match=r"has not answered for 0\.05 s"):
            await maker.survey(config())
        for _ in range(3):
            with pytest.raises(HardwareError, match="has not answered an earlier reading yet"):
                await maker.survey(config())
        assert threads() == 1
        reader.gate.set()
        await until(lambda: maker._under_way is not None and maker._under_way.done())
        reader.answer = node(gpu(0), gpu(1))
        maker._limit = 10
        assert len((await maker.survey(config())).node.gpus) == 2


async def test_a_survey_that_is_cancelled_is_left_to_itself() -> None:
    with hanging(node(gpu(0))) as reader:
        task = asyncio.create_task(surveyor(reader).survey(config()))
        await until(lambda: threads() == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
