import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.simulation.kubelet.answer import ContainerAnswer
from gpustow.simulation.kubelet.checkpoint import Checkpoint, Remembered, _checksum
from gpustow.simulation.kubelet.holdings import Entry, Held, Holdings
from gpustow.simulation.kubelet.state import DeviceState
from tests.simulation.kubelet.core import THING, listed

ENTRY = Entry("uid-a", "main", THING, Held({0: ("d0",), -1: ("d1",)}, ContainerAnswer({"IDS": "d0,d1"})))

RAW = {
    "PodUID": "uid-a",
    "ContainerName": "main",
    "ResourceName": THING,
    "DeviceIDs": {"0": ["d0"]},
    "AllocResp": "",
}


def state(*entries: Entry) -> DeviceState:
    made = DeviceState(holdings=Holdings(entries))
    made.table.replace(THING, listed("d1 d0") + listed("d2", None, "Unhealthy"))
    return made


def same(remembered: Remembered, *entries: Entry) -> bool:
    return [*remembered.holdings.entries()] == [*entries]


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    assert not checkpoint.exists()
    checkpoint.save(state(ENTRY))
    assert checkpoint.exists()
    remembered = checkpoint.load()
    assert same(remembered, ENTRY)
    assert remembered.resources == (THING,)


def test_the_file_has_kubelets_name_and_shape(tmp_path: Path) -> None:
    Checkpoint(tmp_path).save(state(ENTRY))
    (path,) = tmp_path.iterdir()
    assert path.name == "kubelet_internal_checkpoint"
    data = json.loads(path.read_text())["Data"]
    (entry,) = data["PodDeviceEntries"]
    answer = wire.ContainerAllocateResponse.FromString(base64.b64decode(entry.pop("AllocResp")))
    assert dict(answer.envs) == {"IDS": "d0,d1"}
    assert entry == {
        "PodUID": "uid-a",
        "ContainerName": "main",
        "ResourceName": THING,
        "DeviceIDs": {"0": ["d0"], "-1": ["d1"]},
    }
    assert data["RegisteredDevices"] == {THING: ["d0", "d1"]}


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"Data": {}}', '{"Data": {}, "Checksum": 1}', '{"Data": {"PodDeviceEntries": 7}, "Checksum": 0}'],
)
def test_a_damaged_file_counts_for_nothing(tmp_path: Path, text: str) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.path.write_text(text)
    assert same(checkpoint.load())


def test_a_changed_file_counts_for_nothing(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save(state(ENTRY))
    checkpoint.path.write_text(checkpoint.path.read_text().replace("uid-a", "uid-b"))
    assert same(checkpoint.load())


def test_a_missing_file_counts_for_nothing(tmp_path: Path) -> None:
    assert same(Checkpoint(tmp_path).load())


@pytest.mark.parametrize(
    "wrong",
    [
        {"PodDeviceEntries": None},
        {"PodDeviceEntries": [{}]},
        {"PodDeviceEntries": [{**RAW, "AllocResp": "?"}]},
        {"PodDeviceEntries": [{**RAW, "AllocResp": "/w=="}]},
        {"PodDeviceEntries": [{**RAW, "DeviceIDs": {"node": ["d0"]}}]},
        {"RegisteredDevices": 3},
    ],
)
def test_wrong_content_counts_for_nothing_even_with_the_right_checksum(tmp_path: Path, wrong: object) -> None:
    assert isinstance(wrong, dict)
    data = {"PodDeviceEntries": [RAW], "RegisteredDevices": {}, **wrong}
    checkpoint = Checkpoint(tmp_path)
    text = json.dumps(data)
    checkpoint.path.write_text(f'{{"Data":{text},"Checksum":{_checksum(text)}}}')
    assert same(checkpoint.load())


WORD = st.text(min_size=1, max_size=4)
ENTRIES = st.lists(
    st.builds(
        Entry,
        WORD,
        WORD,
        WORD,
        st.builds(
            Held,
            st.dictionaries(st.integers(-1, 9), st.lists(WORD, min_size=1, max_size=3).map(tuple), max_size=2),
            st.builds(ContainerAnswer, st.dictionaries(WORD, WORD, max_size=2)),
        ),
    ),
    max_size=4,
    unique_by=lambda entry: (entry.pod_uid, entry.container, entry.resource),
)


@given(ENTRIES)
def test_any_books_survive(tmp_path_factory: pytest.TempPathFactory, entries: list[Entry]) -> None:
    checkpoint = Checkpoint(tmp_path_factory.mktemp("checkpoint"))
    books = Holdings(entries)
    checkpoint.save(DeviceState(holdings=books))
    assert same(checkpoint.load(), *books.entries())
