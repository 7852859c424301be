"""CDI specifications through the life of the daemon: there before kubelet hears of a device, and as long as needed."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gpustow.config import Config, DeviceIdStrategy, DeviceListStrategy
from gpustow.errors import CdiDirectoryError, CdiSpecError, HardwareError, Problem
from gpustow.hardware.node import Node
from gpustow.injection.cdi.specification import parse_spec
from gpustow.injection.cdi.specs import CdiSpecs
from gpustow.injection.hostdevices import HostDevices, simulated_host_devices
from gpustow.plugin.cdispecs import SpecFiles, SpecKeeper, machine_specs, no_specs, simulated_specs
from gpustow.simulation.kubelet import Container, EmbeddedKubelet, Pod
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, SHORT, gpu, node, random

SOON = replace(SHORT, usage_every=0.05, usage_settles=0.01, kubelet_settles=0.0)
"""Kubelet is believed at once."""


def names(directory: Path) -> set[str]:
    """All names that a runtime finds in a directory."""
    found: set[str] = set()
    for path in directory.glob("*.json"):
        with suppress(FileNotFoundError):  # removed meanwhile
            spec = parse_spec(path.read_text(encoding="utf-8"), path.name)
            found.update(f"{spec.kind}={device.name}" for device in spec.devices)
    return found


def texts(directory: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in directory.iterdir()]


def ours(*short: str) -> set[str]:
    return {f"k8s.device-plugin.nvidia.com/{name}" for name in short}


class Kept:
    """A keeper with a clock that a test sets, and what kubelet says."""

    def __init__(self, directory: Path) -> None:
        self.now = 0.0
        self.directory = directory
        self.config = Config(device_list_strategies=(DeviceListStrategy.CDI_CRI,), cdi_directory=str(directory))
        self.held: frozenset[str] | None = None
        self.asked: list[float] = []
        self.keeper = SpecKeeper(simulated_specs, lambda: self.now)

    def publish(self, found: Node, **changes: object) -> SpecFiles:
        config = replace(self.config, **changes)  # type: ignore[arg-type] # of any field
        return self.keeper.publish(found, config, simulated_host_devices(config, found.platform))

    def held_uuids(self, since: float) -> frozenset[str] | None:
        self.asked.append(since)
        return self.held

    async def tidy(self, *held: str) -> set[str]:
        self.held = frozenset(held)
        await self.keeper.tidy(self)
        return names(self.directory)


ONE, TWO = node(gpu(0)), node(gpu(0), gpu(1))


async def test_old_names_go_when_kubelet_has_listed_after_the_new_ones_took_over(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.keeper.serving(kept.publish(TWO, gdrcopy_enabled=True))
    assert names(tmp_path) == ours("gpu=GPU-0", "gpu=GPU-1", "gpu=all", "gdrcopy=all")
    files = kept.publish(ONE)
    everything = ours("gpu=GPU-0", "gpu=GPU-1", "gpu=all", "gdrcopy=all")
    assert await kept.tidy() == everything, "the old names are still served"
    assert kept.asked == []
    kept.now = 7.0
    kept.keeper.serving(files)
    kept.held = None
    await kept.keeper.tidy(kept)
    assert (kept.asked, names(tmp_path)) == ([7.0], everything)
    assert await kept.tidy("GPU-1") == everything
    assert await kept.tidy("GPU-0") == ours("gpu=GPU-0", "gpu=all", "gdrcopy=all")
    assert await kept.tidy() == ours("gpu=GPU-0", "gpu=all")
    kept.asked.clear()
    await kept.tidy()
    assert kept.asked == [], "nothing is left to remove"


async def test_a_gpu_that_is_left_out_keeps_its_name_while_a_container_has_it_and_leaves_all_at_once(
    tmp_path: Path,
) -> None:
    kept = Kept(tmp_path)
    kept.keeper.serving(kept.publish(TWO))
    kept.keeper.serving(kept.publish(TWO, exclude_gpus=("GPU-1",)))
    assert await kept.tidy("GPU-1") == ours("gpu=GPU-0", "gpu=GPU-1", "gpu=all")
    (text,) = texts(tmp_path)
    spec = parse_spec(text)
    nodes = {device.name: [each.path for each in device.edits.device_nodes] for device in spec.devices}
    assert nodes == {"GPU-0": ["/dev/nvidia0"], "GPU-1": ["/dev/nvidia1"], "all": ["/dev/nvidia0"]}
    assert await kept.tidy("GPU-0") == ours("gpu=GPU-0", "gpu=all")


async def test_what_is_served_no_more_when_something_else_has_been_published_is_not_tidied(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    files = kept.publish(TWO)
    kept.publish(ONE)
    kept.keeper.serving(files)
    assert await kept.tidy() == ours("gpu=GPU-0", "gpu=GPU-1", "gpu=all")


async def test_a_publication_while_old_names_are_removed_wins(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.publish(TWO)
    kept.keeper.serving(kept.publish(ONE))
    published: list[SpecFiles] = []

    class Meanwhile(Kept):
        def held_uuids(self, since: float) -> frozenset[str] | None:
            published.append(kept.publish(TWO))
            return super().held_uuids(since)

    meanwhile = Meanwhile(tmp_path)
    meanwhile.held = frozenset()
    await kept.keeper.tidy(meanwhile)
    assert len(published) == 1
    assert names(tmp_path) == ours("gpu=GPU-0", "gpu=GPU-1", "gpu=all")


def test_what_somebody_removed_is_restored_and_nothing_else_is_written(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    files = kept.publish(TWO)
    (path,) = tmp_path.iterdir()
    before = path.stat()
    kept.keeper.restore(files)
    assert path.stat().st_ino == before.st_ino
    path.unlink()
    kept.keeper.restore(files)
    assert names(tmp_path) == ours("gpu=GPU-0", "gpu=GPU-1", "gpu=all")


async def test_what_comes_out_the_same_is_tidied_as_before(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.publish(TWO)
    files = kept.publish(ONE)
    kept.keeper.serving(files)
    assert kept.publish(ONE) is files
    assert await kept.tidy() == ours("gpu=GPU-0", "gpu=all")


async def test_what_another_instance_has_written_is_left_to_it(tmp_path: Path) -> None:
    kept, other = Kept(tmp_path), Kept(tmp_path)
    files = kept.publish(TWO)
    kept.keeper.serving(files)
    other.keeper.serving(other.publish(ONE, device_id_strategy=DeviceIdStrategy.INDEX))
    kept.keeper.restore(files)
    both = ours("gpu=GPU-0", "gpu=GPU-1", "gpu=0", "gpu=all")
    assert await kept.tidy() == both
    kept.keeper.serving(kept.publish(ONE))
    assert await kept.tidy("GPU-0") == ours("gpu=GPU-0", "gpu=0", "gpu=all")
    assert await other.tidy() == ours("gpu=0", "gpu=all")


def test_what_was_published_too_late_gives_way_to_what_is_served(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    served = kept.publish(ONE)
    kept.publish(node(replace(gpu(0), device_paths=("/dev/other",))))
    kept.keeper.restore(served)
    assert "/dev/other" not in next(tmp_path.iterdir()).read_text(encoding="utf-8")


def test_a_restoration_that_fails_is_told_and_no_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept(tmp_path / "cdi")
    files = kept.publish(ONE)
    (tmp_path / "cdi").rename(tmp_path / "away")
    (tmp_path / "cdi").write_text("", encoding="utf-8")
    kept.keeper.restore(files)
    assert "cannot write CDI specifications into" in caplog.text


async def test_a_removal_that_fails_is_told_once_and_leaves_the_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(tmp_path / "cdi")
    kept.publish(TWO)
    kept.keeper.serving(kept.publish(ONE))
    (tmp_path / "cdi").rename(tmp_path / "away")
    (tmp_path / "cdi").write_text("", encoding="utf-8")
    kept.held = frozenset()
    await kept.keeper.tidy(kept)
    await kept.keeper.tidy(kept)
    assert caplog.text.count("old names of CDI devices stay") == 1


async def test_without_cdi_no_file_is_touched(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    (tmp_path / "k8s.device-plugin.nvidia.com-gpu.json").write_text("{", encoding="utf-8")
    kept.keeper.serving(kept.publish(TWO, device_list_strategies=(DeviceListStrategy.ENVVAR,)))
    kept.held = frozenset()
    await kept.keeper.tidy(kept)
    assert texts(tmp_path) == ["{"]


async def test_files_go_when_cdi_is_not_asked_for_any_more_and_nobody_holds_a_device(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.keeper.serving(kept.publish(ONE))
    kept.keeper.serving(kept.publish(ONE, device_list_strategies=(DeviceListStrategy.ENVVAR,)))
    assert await kept.tidy("GPU-0") == ours("gpu=GPU-0", "gpu=all")
    assert await kept.tidy() == set()
    assert texts(tmp_path) == []


async def test_files_in_a_former_directory_go_as_well(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "old")
    kept.keeper.serving(kept.publish(ONE))
    kept.keeper.serving(kept.publish(ONE, cdi_directory=str(tmp_path / "new")))
    assert names(tmp_path / "old") == names(tmp_path / "new") == ours("gpu=GPU-0", "gpu=all")
    assert await kept.tidy() == set()
    assert names(tmp_path / "new") == ours("gpu=GPU-0", "gpu=all")


def test_what_a_generator_says_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    kept = Kept(tmp_path)
    kept.publish(ONE)
    kept.publish(TWO)
    assert caplog.text.count("CDI: the node is simulated") == 1
    (tmp_path / "k8s.device-plugin.nvidia.com-gpu.json").write_text("{", encoding="utf-8")
    kept.publish(ONE)
    assert caplog.text.count("names that only this file had are lost") == 1


def test_what_somebody_should_mend_is_a_warning_and_what_is_left_out_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    kept = Kept(tmp_path)
    kept.publish(ONE, cdi_disable_hooks=("nonsense",))
    told = {record.getMessage()[:27]: record.levelname for record in caplog.records if "CDI: " in record.getMessage()}
    assert told == {"CDI: --cdi-disable-hooks: n": "WARNING", "CDI: the node is simulated:": "INFO"}
    assert f"wrote {tmp_path}/k8s.device-plugin.nvidia.com-gpu.json" in caplog.messages


def failing(error: Exception) -> Callable[[Node, Config, HostDevices], CdiSpecs]:
    def make(_node: Node, _config: Config, _host: HostDevices) -> CdiSpecs:
        raise error

    return make


WRONG = CdiSpecError("k/gpu", [Problem("devices", "should be one or more")])


def test_a_failure_leaves_what_was_published(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.publish(ONE)
    before = names(tmp_path)
    kept.keeper._make = failing(WRONG)
    with pytest.raises(CdiSpecError):
        kept.publish(TWO)
    assert names(tmp_path) == before


def test_without_a_maker_there_are_no_files(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "cdi")
    kept.keeper = SpecKeeper(no_specs, lambda: 0.0)
    assert kept.publish(ONE) == SpecFiles(None)
    assert not (tmp_path / "cdi").exists()


def test_a_machine_without_a_driver_gives_its_device_nodes(tmp_path: Path) -> None:
    config = Config(driver_root_ctr_path=str(tmp_path))
    (spec,) = machine_specs(TWO, config, HostDevices()).specs
    assert {device.name for device in spec.devices} == {"GPU-0", "GPU-1", "all"}


def daemon(home: Path, found: Node | None = None, **flags: str) -> Daemon:
    made = Daemon(home / "k", found, timing=SOON, make_specs=simulated_specs)
    made.flags |= {"cdi_directory": str(home / "cdi"), "device_list_strategy": "cdi-cri", **flags}
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Has a directory for kubelet."""
    (tmp_path / "k").mkdir()
    return tmp_path


async def test_the_files_are_there_before_a_plugin_is(home: Path) -> None:
    async with FakeKubelet(home / "k") as kubelet, daemon(home).running():
        await until(lambda: kubelet.live(GPU))
        assert names(home / "cdi") == ours("gpu=GPU-0", "gpu=GPU-1", "gpu=all")


async def test_a_directory_that_cannot_be_written_ends_the_daemon(home: Path) -> None:
    (home / "cdi").write_text("", encoding="utf-8")
    with pytest.raises(CdiDirectoryError, match=r"--cdi-directory"):
        await daemon(home).supervisor.run()


async def test_with_fail_on_init_error_off_it_is_not_ready_until_the_directory_can_be_written(home: Path) -> None:
    (home / "cdi").write_text("", encoding="utf-8")
    async with (
        FakeKubelet(home / "k") as kubelet,
        daemon(home, fail_on_init_error="false").running() as supervisor,
    ):
        await until(lambda: "cannot write CDI specifications" in str(supervisor.not_ready))
        assert "goes on" not in str(supervisor.not_ready)
        (home / "cdi").unlink()
        await until(lambda: kubelet.live(GPU) and supervisor.not_ready is None)
        assert names(home / "cdi") == ours("gpu=GPU-0", "gpu=GPU-1", "gpu=all")


@pytest.mark.parametrize("error", [WRONG, HardwareError("nothing to give")])
async def test_a_reload_that_cannot_make_the_files_leaves_all_as_it_is(home: Path, error: Exception) -> None:
    running = daemon(home)
    async with FakeKubelet(home / "k") as kubelet, running.running() as supervisor:
        await until(lambda: kubelet.live(GPU))
        before = names(home / "cdi")
        supervisor._specs._make = failing(error)
        running.flags["device_id_strategy"] = "index"
        supervisor.reload()
        await until(lambda: str(error).partition("\n")[0] in str(supervisor.not_ready))
        assert "what ran before goes on" in str(supervisor.not_ready)
        assert names(home / "cdi") == before
        assert kubelet.live(GPU)


async def test_a_pod_starts_again_whatever_happens(home: Path) -> None:
    """Its answer names what a runtime finds, through a reload, a change of the node, and a new daemon."""
    running = daemon(home, gdrcopy_enabled="true")
    async with EmbeddedKubelet(home / "k", random=random()) as kubelet:
        running.flags["kubelet_socket"] = str(kubelet.registration_socket)

        async def starts() -> set[str]:
            answer = await kubelet.start_container("default", "pod", "main")
            assert set(answer.cdi_devices) <= names(home / "cdi")
            return set(answer.cdi_devices)

        async with running.running() as supervisor:
            await kubelet.wait_for(GPU, at_least=2)
            await kubelet.admit(Pod("pod", containers=(Container("main", {GPU: 2}),)))
            answered = await starts()
            assert answered == ours("gpu=GPU-0", "gpu=GPU-1", "gdrcopy=all")
            running.flags |= {"device_id_strategy": "index", "gdrcopy_enabled": "false"}
            supervisor.reload()
            await until(lambda: ours("gpu=0", "gpu=1") <= names(home / "cdi"))
            await supervisor.read_usage()
            assert await starts() == answered
            running.reader.answer = node(gpu(0), gpu(2))
            supervisor.rescan()
            await until(lambda: ours("gpu=2") <= names(home / "cdi"))
            await supervisor.read_usage()
            assert await starts() == answered
        again = daemon(home, node(gpu(0), gpu(2)))
        again.flags["kubelet_socket"] = str(kubelet.registration_socket)
        async with again.running() as supervisor:
            await until(lambda: supervisor.not_ready is None or "unhealthy" in supervisor.not_ready)
            await supervisor.read_usage()
            assert await starts() == answered
            kubelet.remove("default", "pod")
            await until(lambda: names(home / "cdi") == ours("gpu=GPU-0", "gpu=GPU-2", "gpu=all"))
