import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.injection import DeviceNode, Mount
from gpustow.simulation.kubelet.answer import Conflict, ContainerAnswer, merge

WORD = st.text("abc/", max_size=3)
ANSWERS = st.builds(
    ContainerAnswer,
    st.dictionaries(WORD, WORD, max_size=3),
    st.lists(st.builds(Mount, WORD, WORD, st.booleans()), max_size=2).map(tuple),
    st.lists(st.builds(DeviceNode, WORD, WORD, st.sampled_from(["r", "rw", "rwm"])), max_size=2).map(tuple),
    st.dictionaries(WORD, WORD, max_size=2),
    st.lists(WORD, max_size=3).map(tuple),
)


@given(ANSWERS)
def test_an_answer_survives_the_wire(answer: ContainerAnswer) -> None:
    assert ContainerAnswer.of_message(answer.to_message()) == answer


@pytest.mark.parametrize(
    ("first", "second", "kind", "key"),
    [
        (ContainerAnswer(envs={"K": "1"}), ContainerAnswer(envs={"K": "2"}), "env", "K"),
        (ContainerAnswer(annotations={"k": "1"}), ContainerAnswer(annotations={"k": "2"}), "annotation", "k"),
        (ContainerAnswer(mounts=(Mount("/c", "/1"),)), ContainerAnswer(mounts=(Mount("/c", "/2"),)), "mount", "/c"),
        (
            ContainerAnswer(devices=(DeviceNode("/d", "/1"),)),
            ContainerAnswer(devices=(DeviceNode("/d", "/2"),)),
            "device",
            "/d",
        ),
    ],
)
def test_the_first_value_of_a_key_stays(first: ContainerAnswer, second: ContainerAnswer, kind: str, key: str) -> None:
    merged, conflicts = merge([first, second])
    assert merged == first
    assert [(conflict.kind, conflict.key) for conflict in conflicts] == [(kind, key)]


def test_equal_values_are_no_conflict() -> None:
    answer = ContainerAnswer({"K": "1"}, (Mount("/c", "/h"),))
    assert merge([answer, answer]) == (answer, ())


def test_a_conflict_tells_what_was_kept_and_what_was_dropped() -> None:
    _, conflicts = merge([ContainerAnswer(envs={"K": "1"}), ContainerAnswer(envs={"K": "2"})])
    assert conflicts == (Conflict("env", "K", "1", "2"),)


def test_of_mounts_and_device_nodes_only_host_paths_can_conflict() -> None:
    first = ContainerAnswer(mounts=(Mount("/c", "/h"),), devices=(DeviceNode("/d", "/h", "r"),))
    second = ContainerAnswer(mounts=(Mount("/c", "/h", read_only=True),), devices=(DeviceNode("/d", "/h", "rwm"),))
    assert merge([first, second]) == (first, ())


def test_a_target_that_comes_twice_in_one_answer_is_mounted_once() -> None:
    merged, conflicts = merge([ContainerAnswer(mounts=(Mount("/c", "/1"), Mount("/c", "/2")))])
    assert (merged.mounts, conflicts) == ((Mount("/c", "/1"),), (Conflict("mount", "/c", "/1", "/2"),))


def test_cdi_names_are_made_unique_in_their_order() -> None:
    merged, conflicts = merge([ContainerAnswer(cdi_devices=("b", "a", "b")), ContainerAnswer(cdi_devices=("a", "c"))])
    assert (merged.cdi_devices, conflicts) == (("b", "a", "c"), ())


def test_different_keys_add_up() -> None:
    merged, conflicts = merge([ContainerAnswer(envs={"A": "1"}), ContainerAnswer(envs={"B": "2"})])
    assert (merged.envs, conflicts) == ({"A": "1", "B": "2"}, ())
