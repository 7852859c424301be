"""What shows from outside that something has changed."""

import hashlib
import os
from collections.abc import Hashable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import load_config
from gpustow.plugin.lookout import Change, ConfigWatch, device_traces


@given(st.lists(st.integers(0, 3)))
def test_a_change_is_noticed_once_it_has_rested_and_once(seen: list[int]) -> None:
    change = Change()
    known: int | None = None
    for number, now in enumerate(seen):
        noticed = change.look(now)
        rested = number > 0 and seen[number - 1] == now
        assert noticed == (rested and now != known)
        known = now if number == 0 or noticed else known


def looks(change: Change, *values: Hashable) -> list[bool]:
    return [change.look(value) for value in values]


def test_what_goes_and_comes_back_at_once_is_no_change() -> None:
    assert looks(Change(), "a", "b", "a", "a") == [False] * 4
    assert looks(Change(), None, "a", "a", None, None, None) == [False, False, True, False, True, False]


def name_in(root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).touch()


def paths(root: Path) -> list[str]:
    return sorted(path.removeprefix(f"{root}/") for path, _ in device_traces([root]))


def test_device_nodes_and_the_drivers_own_list_are_traces_and_others_are_not(tmp_path: Path) -> None:
    traces = [
        "dev/nvidia-caps",
        "dev/nvidia-caps/nvidia-cap1",
        "dev/nvidia0",
        "dev/nvidiactl",
        "proc/driver/nvidia/capabilities/gpu0/mig/gi7",
        "proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0",
        "proc/driver/nvidia/gpus/0000:07:00.0",
    ]
    others = ["dev/sda", "proc/driver/nvidia/capabilities/gpu0/mig/gi7/access", "proc/driver/nvidia/capabilities/mig/x"]
    for name in ("dev/nvidia-caps", "proc/driver/nvidia/capabilities/gpu0/mig/gi7"):
        (tmp_path / name).mkdir(parents=True)
    for name in [*traces, *others]:
        if not (tmp_path / name).exists():
            name_in(tmp_path, name)
    assert paths(tmp_path) == traces


def test_what_cannot_be_looked_into_has_no_traces(tmp_path: Path) -> None:
    name_in(tmp_path, "dev")
    assert device_traces([tmp_path, tmp_path / "none"]) == frozenset()


def test_a_device_node_that_is_made_anew_is_another(tmp_path: Path) -> None:
    name_in(tmp_path, "dev/nvidia0")
    before = device_traces([tmp_path, tmp_path])
    assert before == device_traces([tmp_path])
    name_in(tmp_path, "dev/next")
    (tmp_path / "dev/next").rename(tmp_path / "dev/nvidia0")
    assert paths(tmp_path) == ["dev/nvidia0"]
    assert device_traces([tmp_path]) != before


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def watch_of(path: Path, text: str) -> ConfigWatch:
    path.write_text(text)
    watch = ConfigWatch(str(path))
    watch.loaded(sha256(text))
    assert looks_at(watch) == [False] * 3
    return watch


def looks_at(watch: ConfigWatch, times: int = 3) -> list[bool]:
    return [bool(watch.look()) for _ in range(times)]


def test_without_a_file_nothing_is_looked_at() -> None:
    assert looks_at(ConfigWatch("")) == [False] * 3


def test_another_content_is_noticed_once_case_c17(tmp_path: Path) -> None:
    watch = watch_of(tmp_path / "config.yaml", "replicas: 8")
    (tmp_path / "config.yaml").write_text("replicas: 4")
    assert looks_at(watch) == [False, True, False]


def test_the_same_bytes_in_another_file_are_no_change_case_c17(tmp_path: Path) -> None:
    watch = watch_of(tmp_path / "config.yaml", "replicas: 8")
    (tmp_path / "next").write_text("replicas: 8")
    (tmp_path / "next").rename(tmp_path / "config.yaml")
    assert looks_at(watch) == [False] * 3


def test_a_file_that_differs_from_what_was_loaded_by_then_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("replicas: 4")
    watch = ConfigWatch(str(tmp_path / "config.yaml"))
    watch.loaded(sha256("replicas: 8"))
    assert looks_at(watch) == [False, True, False]


def test_a_content_that_was_loaded_otherwise_meanwhile_is_known(tmp_path: Path) -> None:
    watch = watch_of(tmp_path / "config.yaml", "replicas: 8")
    (tmp_path / "config.yaml").write_text("replicas: 4")
    watch.loaded(sha256("replicas: 4"))
    assert looks_at(watch) == [False] * 3


def test_what_takes_the_place_of_a_refused_content_is_noticed_be_it_the_one_in_force_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    for next_one in ("replicas: 8", None):
        watch = watch_of(path, "replicas: 8")
        path.write_text("replicas: bad")
        watch.refused()
        if next_one is None:
            path.unlink()
        else:
            path.write_text(next_one)
        assert looks_at(watch) == [False, True, False]


def test_a_file_that_goes_and_comes_back_as_it_was_is_noticed_if_it_stays_away(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    watch = watch_of(path, "replicas: 8")
    path.rename(tmp_path / "away")
    assert looks_at(watch, 1) == [False]
    (tmp_path / "away").rename(path)
    assert looks_at(watch) == [False] * 3
    path.rename(tmp_path / "away")
    assert looks_at(watch) == [False, True, False]
    (tmp_path / "away").rename(path)
    assert looks_at(watch) == [False, True, False]


def test_what_has_become_of_the_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    watch = watch_of(path, "replicas: 8")

    def news() -> str:
        return "".join(watch.look() for _ in range(3))

    path.write_text("replicas: 4")
    assert news() == f"the configuration file {path} has another content"
    path.unlink()
    assert news() == f"the configuration file {path} is gone"
    path.write_text("replicas: 4")
    assert news() == f"the configuration file {path} is there again"
    path.unlink()
    path.mkdir()
    assert news() == f"the configuration file {path} cannot be read any more"


def test_a_config_map_that_swaps_its_links_is_seen(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"..{number}").mkdir()
        (tmp_path / f"..{number}" / "config.yaml").write_text(f"replicas: {number}")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    watch = ConfigWatch(str(tmp_path / "config.yaml"))
    watch.loaded(sha256("replicas: 1"))
    assert looks_at(watch) == [False] * 3
    (tmp_path / "..data_tmp").symlink_to("..2")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    assert looks_at(watch) == [False, True, False]


def test_a_file_that_can_be_seen_and_not_read_is_noticed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watch_of(tmp_path / "config.yaml", "replicas: 8")

    def refuse(_path: Path) -> bytes:
        raise PermissionError

    os.utime(tmp_path / "config.yaml", (1, 1))
    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert looks_at(watch) == [False, True, False]


@pytest.mark.parametrize("ends", [["\n"], ["\r\n"], ["\r", "\n", "\r\n"]])
def test_the_content_is_compared_as_it_is_loaded_whatever_its_line_ends(tmp_path: Path, ends: Sequence[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes("".join(f"# line{end}" for end in ends).encode() + b"version: v1\n")
    loaded = load_config({"config-file": str(path)}, {})
    assert loaded.file is not None
    watch = ConfigWatch(str(path))
    watch.loaded(loaded.file.sha256)
    assert looks_at(watch) == [False] * 3
