"""Our files in the directory of CDI: what is written and when, what is left alone, and what no failure can do."""

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gpustow.errors import CdiDirectoryError, CdiSpecError
from gpustow.injection.cdi.atomicfiles import LOCK_TRIES, Surroundings
from gpustow.injection.cdi.directory import CdiDirectory, Publication, file_name
from gpustow.injection.cdi.filecalls import FileCalls
from gpustow.injection.cdi.names import CLASSES
from gpustow.injection.cdi.specification import CdiSpec, parse_spec
from tests.injection.cdi.failingcalls import CALLS, FailingCalls, Killed, contents, numbers_of_calls
from tests.injection.cdi.samples import spec

GPU, GDS = file_name("gpu"), file_name("gds")
NOBODY: frozenset[str] = frozenset()


def publish(directory: Path, *specs: CdiSpec, held: frozenset[str] | None = None) -> Publication:
    return CdiDirectory(directory).publish(specs, held)


def names(directory: Path, name: str = GPU) -> list[str]:
    return [device.name for device in parse_spec((directory / name).read_text(encoding="utf-8")).devices]


def test_each_class_has_a_file_that_all_can_read_in_a_directory_that_is_made(tmp_path: Path) -> None:
    directory = tmp_path / "run" / "cdi"
    publication = publish(directory, spec("GPU-1"), spec("all", class_="gds"))
    assert publication == Publication(written=[GPU, GDS])
    assert contents(directory) == {GPU: spec("GPU-1").to_json(), GDS: spec("all", class_="gds").to_json()}
    assert GPU == "k8s.device-plugin.nvidia.com-gpu.json"
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o644}


def test_a_file_is_whole_open_to_all_and_on_the_disk_before_it_gets_its_name(tmp_path: Path) -> None:
    calls = FailingCalls()
    CdiDirectory(tmp_path, Surroundings(calls)).publish([spec("GPU-1")], None)
    made = calls.made[calls.made.index("create") :]
    assert made == ["create", "write", "set_mode", "sync", "close", "rename", *made[6:-2], "sync", "close"]
    assert made[6:-2] == ["open_file"] * (len(CLASSES) - 1)


def test_a_file_whose_content_is_right_is_left_alone(tmp_path: Path) -> None:
    publish(tmp_path, spec("GPU-1"))
    before = (tmp_path / GPU).stat()
    assert publish(tmp_path, spec("GPU-1")) == Publication()
    after = (tmp_path / GPU).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_that_a_runtime_may_not_read_is_written_anew(tmp_path: Path) -> None:
    publish(tmp_path, spec("GPU-1"))
    (tmp_path / GPU).chmod(0o600)
    assert publish(tmp_path, spec("GPU-1")).written == [GPU]
    assert stat.S_IMODE((tmp_path / GPU).stat().st_mode) == 0o644


def test_old_names_stay_until_it_is_known_that_nobody_has_them(tmp_path: Path) -> None:
    publish(tmp_path, spec("GPU-1", "GPU-2", "GPU-3"), spec("all", class_="gds"))
    publication = publish(tmp_path, spec("GPU-1"))
    assert publication.old_names == ["gpu=GPU-2", "gpu=GPU-3", "gds=all"]
    assert names(tmp_path) == ["GPU-1", "GPU-2", "GPU-3"]
    publication = publish(tmp_path, spec("GPU-1"), held=frozenset({"GPU-3"}))
    assert publication == Publication(written=[GPU], old_names=["gpu=GPU-3", "gds=all"])
    assert names(tmp_path) == ["GPU-1", "GPU-3"]
    assert publish(tmp_path, spec("GPU-1"), held=NOBODY) == Publication(written=[GPU], removed=[GDS])
    assert contents(tmp_path) == {GPU: spec("GPU-1").to_json()}


def test_only_names_that_may_go_are_removed_each_in_its_class(tmp_path: Path) -> None:
    publish(tmp_path, spec("GPU-1", "all"), spec("all", class_="gds"), spec("all", class_="mofed"))
    publication = CdiDirectory(tmp_path).publish([], NOBODY, {"gpu=GPU-1", "gds=all"})
    assert (publication.old_names, publication.removed) == (["gpu=all", "mofed=all"], [GDS])
    assert names(tmp_path) == ["all"]


def test_the_old_names_of_another_process_stay_as_well(tmp_path: Path) -> None:
    (tmp_path / GPU).write_text(spec("MIG-1").to_json(), encoding="utf-8")
    assert publish(tmp_path, spec("GPU-1")).old_names == ["gpu=MIG-1"]


def test_files_of_others_are_never_touched(tmp_path: Path) -> None:
    others = {
        "nvidia.yaml": "---\n",
        "k8s.device-plugin.nvidia.com-other.json": "{}",
        "k8s.device-plugin.nvidia.com-gpu.yaml": "",
        "spec.1234.tmp": "",
        "k8s.device-plugin.nvidia.com-gpu.json.tmp": "",
    }
    for name, text in others.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    publish(tmp_path, spec("GPU-1"))
    publish(tmp_path, held=NOBODY)
    assert contents(tmp_path) == others


def test_where_nothing_is_wanted_a_file_that_is_no_specification_stays(tmp_path: Path) -> None:
    (tmp_path / GPU).write_text("{", encoding="utf-8")
    assert publish(tmp_path, held=NOBODY).removed == []
    assert contents(tmp_path) == {GPU: "{"}


def rubbish(path: Path) -> None:
    path.write_text('{"kind": "ve/cl"}', encoding="utf-8")


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # the whole path may be too long


def link_to_a_file(path: Path) -> None:
    target = path.with_name("target")
    target.write_text(spec("GPU-9").to_json(), encoding="utf-8")
    path.symlink_to(target)


def dangling_link(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


@pytest.mark.parametrize("make", [rubbish, no_text, fifo, a_socket, link_to_a_file, dangling_link])
def test_what_is_no_specification_is_told_and_replaced_and_no_link_is_followed(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / GPU)
    before = {path: path.read_text(encoding="utf-8") for path in tmp_path.glob("target")}
    (note,) = publish(tmp_path, spec("GPU-1")).notes
    assert GPU in note
    assert "lost" in note
    assert not (tmp_path / GPU).is_symlink()
    assert (tmp_path / GPU).read_text(encoding="utf-8") == spec("GPU-1").to_json()
    assert {path: path.read_text(encoding="utf-8") for path in before} == before


def test_a_specification_that_breaks_the_rules_stops_all_from_being_written(tmp_path: Path) -> None:
    with pytest.raises(CdiSpecError):
        publish(tmp_path / "cdi", spec("GPU-1"), spec("a/b", class_="gds"))
    assert not (tmp_path / "cdi").exists()


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "k8s.device-plugin.nvidia.com.0123456789abcdef.tmp").write_text("{", encoding="utf-8")
    publish(tmp_path, spec("GPU-1"))
    assert list(contents(tmp_path)) == [GPU]


def test_a_leftover_that_cannot_be_removed_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "k8s.device-plugin.nvidia.com.0.tmp").mkdir()
    publish(tmp_path, spec("GPU-1"))
    assert names(tmp_path) == ["GPU-1"]


def test_a_directory_that_cannot_be_made_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(
        CdiDirectoryError, match=r"into .*/file/cdi: Not a directory\n  Mount .* --cdi-directory"
    ) as told:
        publish(tmp_path / "file" / "cdi", spec("GPU-1"))
    assert told.value.exit_code == 7
    assert told.value.directory == str(tmp_path / "file" / "cdi")


def test_a_directory_in_the_place_of_our_file_is_told(tmp_path: Path) -> None:
    (tmp_path / GPU).mkdir()
    with pytest.raises(CdiDirectoryError, match="directory"):
        publish(tmp_path, spec("GPU-1"))


def test_a_read_only_directory_is_told(tmp_path: Path) -> None:
    calls = FailingCalls()
    publish_with(calls, tmp_path)
    calls = FailingCalls(calls.made.index("create"), OSError(errno.EROFS, os.strerror(errno.EROFS)))
    (tmp_path / GPU).unlink()
    with pytest.raises(CdiDirectoryError, match="Read-only file system"):
        publish_with(calls, tmp_path)


def publish_with(
    calls: FileCalls, directory: Path, *specs: CdiSpec, pause: Callable[[float], None] = lambda _: None
) -> None:
    CdiDirectory(directory, Surroundings(calls, pause=pause)).publish(specs or (spec("GPU-1"),), None)


def test_a_writer_waits_until_another_one_is_done(tmp_path: Path) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            os.close(other)

    publish_with(FileCalls(), tmp_path, pause=pause)
    assert len(pauses) == 3
    assert names(tmp_path) == ["GPU-1"]


def test_a_writer_does_not_wait_for_ever(tmp_path: Path) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    pauses: list[float] = []
    with pytest.raises(CdiDirectoryError, match="unavailable"):
        publish_with(FileCalls(), tmp_path, pause=pauses.append)
    os.close(other)
    assert len(pauses) == LOCK_TRIES


def test_a_write_that_is_cut_short_goes_on(tmp_path: Path) -> None:
    class ByteByByte(FileCalls):
        def write(self, descriptor: int, data: bytes) -> int:
            return super().write(descriptor, data[:1])

        def read(self, descriptor: int) -> bytes:
            return os.read(descriptor, 1)

    publish_with(ByteByByte(), tmp_path)
    assert names(tmp_path) == ["GPU-1"]
    publish_with(ByteByByte(), tmp_path, spec("GPU-2"))
    assert names(tmp_path) == ["GPU-2", "GPU-1"]


OLD = {GPU: spec("GPU-1"), GDS: spec("all", class_="gds")}
WANTED = (spec("GPU-2"), spec("0", class_="imex-channel"))
AFTERWARDS = {
    GPU: spec("GPU-2", "GPU-1").to_json(),
    GDS: spec("all", class_="gds").to_json(),
    file_name("imex-channel"): spec("0", class_="imex-channel").to_json(),
}
FINALLY = {
    GPU: spec("GPU-2").to_json(),
    file_name("imex-channel"): spec("0", class_="imex-channel").to_json(),
}
ALLOWED: Mapping[str, set[str | None]] = {
    GPU: {OLD[GPU].to_json(), AFTERWARDS[GPU], FINALLY[GPU]},
    GDS: {None, AFTERWARDS[GDS]},
    file_name("imex-channel"): {None, FINALLY[file_name("imex-channel")]},
}


def old_state(directory: Path) -> None:
    directory.mkdir()
    for name, old in OLD.items():
        (directory / name).write_text(old.to_json(), encoding="utf-8")
        (directory / name).chmod(0o644)
    (directory / "k8s.device-plugin.nvidia.com.dead.tmp").write_text("{", encoding="utf-8")


def change(calls: FileCalls, directory: Path) -> None:
    """Adds a file, changes one, and removes one."""
    writer = CdiDirectory(directory, Surroundings(calls, pause=lambda _: None))
    writer.publish(WANTED, None)
    writer.publish(WANTED, NOBODY)


def in_a_new_place(calls: FileCalls, place: Path) -> None:
    old_state(place)
    change(calls, place)


def test_a_change_makes_every_call_to_the_file_system_that_there_is(tmp_path: Path) -> None:
    calls = FailingCalls()
    in_a_new_place(calls, tmp_path / "cdi")
    assert contents(tmp_path / "cdi") == FINALLY
    assert set(calls.made) == set(CALLS)


def check_whole(directory: Path) -> None:
    """Each file is as it was, as it should be, or as it is between the two."""
    there = contents(directory)
    for class_ in CLASSES:
        name = file_name(class_)
        assert there.get(name) in ALLOWED.get(name, {None})
    assert {name for name in there if not name.endswith(".tmp")} <= set(ALLOWED)


@pytest.mark.parametrize("wrote", [0, 1, 100])
def test_a_process_that_is_killed_at_any_call_leaves_each_file_old_or_new_and_nothing_for_ever(
    wrote: int, tmp_path: Path
) -> None:
    for number in numbers_of_calls(lambda calls: in_a_new_place(calls, tmp_path / "counted")):
        place = tmp_path / str(number)
        calls = FailingCalls(number, wrote=wrote)
        with pytest.raises(Killed):
            in_a_new_place(calls, place)
        check_whole(place)
        calls.bury()
        change(FailingCalls(), place)
        assert contents(place) == FINALLY


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
def test_a_call_that_fails_leaves_each_file_old_or_new_and_no_other(code: int, tmp_path: Path) -> None:
    for number in numbers_of_calls(lambda calls: in_a_new_place(calls, tmp_path / "counted")):
        place = tmp_path / str(number)
        calls = FailingCalls(number, OSError(code, os.strerror(code)), wrote=7)
        try:
            in_a_new_place(calls, place)
        except CdiDirectoryError as error:
            assert error.reason == os.strerror(code)
        check_whole(place)
        calls.bury()
        change(FailingCalls(), place)
        assert contents(place) == FINALLY


def test_a_file_that_cannot_be_finished_is_removed_at_once(tmp_path: Path) -> None:
    calls = FailingCalls()
    publish_with(calls, tmp_path)
    (tmp_path / GPU).unlink()
    for number, call in enumerate(calls.made):
        if call in {"write", "set_mode", "rename"}:
            with pytest.raises(CdiDirectoryError):
                publish_with(FailingCalls(number, OSError(errno.ENOSPC, "full")), tmp_path)
            assert contents(tmp_path) == {}
