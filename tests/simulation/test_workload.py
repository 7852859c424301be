import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpustow.errors import WorkloadError
from gpustow.simulation.workload import MOST_PODS, Workload, load_workload, parse_workload


def parse(document: object) -> Workload:
    return parse_workload(yaml.safe_dump(document), "w.yaml")


def story(workload: Workload) -> list[str]:
    return [f"{action.kind} {action.pod.key}" for action in workload.actions]


def problems(document: object) -> list[str]:
    with pytest.raises(WorkloadError) as refused:
        parse(document)
    return [str(problem) for problem in refused.value.problems]


def pod(name: str = "train", **more: Any) -> dict[str, Any]:
    return {"name": name, "limits": {"nvidia.com/gpu": 1}} | more


def test_without_steps_every_pod_is_admitted_in_the_order_of_the_file() -> None:
    assert story(parse({"pods": [pod("b"), pod("a", namespace="ml")]})) == ["admit default/b", "admit ml/a"]


def test_a_count_makes_numbered_copies() -> None:
    assert story(parse({"pods": [pod(count=2)]})) == ["admit default/train-0", "admit default/train-1"]


def test_a_count_of_one_still_numbers_so_that_raising_it_keeps_the_name() -> None:
    assert story(parse({"pods": [pod(count=1)]})) == ["admit default/train-0"]


def test_steps_take_a_pod_one_copy_or_a_list() -> None:
    document = {
        "pods": [pod(count=2), pod("solo", namespace="ml")],
        "steps": [{"admit": "train"}, {"release": "train-1"}, {"admit": ["ml/solo", "train-1"]}],
    }
    assert story(parse(document)) == [
        "admit default/train-0",
        "admit default/train-1",
        "release default/train-1",
        "admit ml/solo",
        "admit default/train-1",
    ]


def test_a_name_that_only_one_namespace_has_needs_no_namespace() -> None:
    assert story(parse({"pods": [pod(namespace="ml")], "steps": [{"admit": "train"}]})) == ["admit ml/train"]


def test_a_name_that_two_other_namespaces_have_is_not_guessed() -> None:
    document = {"pods": [pod(namespace="a"), pod(namespace="b")], "steps": [{"admit": "train"}]}
    assert problems(document) == ["steps[0].admit: there is no pod 'train'; there are: a/train, b/train"]


def test_limits_stand_for_one_container_named_main() -> None:
    [action] = parse({"pods": [pod()]}).actions
    [container] = action.pod.containers
    assert (container.name, container.limits) == ("main", {"nvidia.com/gpu": 1})


def test_init_containers_and_sidecars_are_told_apart_as_in_manifests() -> None:
    entry = {
        "name": "p",
        "containers": [{"name": "app", "limits": {"nvidia.com/gpu": 2}}],
        "initContainers": [
            {"name": "prepare", "limits": {"nvidia.com/gpu": 1}},
            {"name": "proxy", "limits": {}, "restartPolicy": "Always"},
        ],
    }
    [action] = parse({"pods": [entry]}).actions
    assert [container.name for container in action.pod.in_order()] == ["prepare", "proxy", "app"]
    assert [container.restartable for container in action.pod.init_containers] == [False, True]


def test_a_quoted_amount_is_a_number_as_in_manifests() -> None:
    [action] = parse({"pods": [pod(limits={"nvidia.com/gpu": "3"})]}).actions
    assert action.pod.containers[0].limits == {"nvidia.com/gpu": 3}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (None, "this has to be a mapping of keys to values (found 'null')"),
        ({}, "pods: this key has to be given"),
        ({"pods": []}, "pods: this has to have at least one entry"),
        ({"pods": [pod(colour="red")]}, "pods[0].colour: there is no such key"),
        ({"pods": [pod("Train")]}, "pods[0].name: this is no name that Kubernetes takes"),
        ({"pods": [pod(count=0)]}, "pods[0].count: this has to be at least 1 (found '0')"),
        ({"pods": [pod(count=True)]}, "pods[0].count: this has to be a whole number (found 'true')"),
        ({"pods": [pod(limits={"gpu": 1})]}, "pods[0].limits.gpu: this is no extended resource"),
        ({"pods": [pod(limits={"nvidia.com/gpu": -1})]}, "pods[0].limits.nvidia.com/gpu: this has to be a whole"),
        ({"pods": [pod(limits={"nvidia.com/gpu": "many"})]}, "pods[0].limits.nvidia.com/gpu: this has to be a whole"),
        ({"pods": [pod(limits={"nvidia.com/gpu": 1000001})]}, "pods[0].limits.nvidia.com/gpu: this has to be at most"),
        ({"pods": [pod(limits=[])]}, "pods[0].limits: this has to be a mapping of keys to values"),
        ({"pods": "train"}, "pods: this has to be a list (found 'train')"),
        ({"pods": [pod(namespace="a" * 64)]}, "pods[0].namespace: this has to be at most 63 characters"),
        ({"pods": [{"name": {}, "limits": {}}]}, "pods[0].name: this has to be a name"),
        (
            {"pods": [pod(initContainers=[{"limits": {}, "restartPolicy": "Never"}])]},
            "pods[0].initContainers[0].restartPolicy: this has to be 'Always' (found 'Never')",
        ),
        ({"pods": [{"name": "p"}]}, "pods[0]: says either `limits`, for one container, or a list `containers`"),
        ({"pods": [pod(containers=[{"limits": {}}])]}, "pods[0]: says either `limits`"),
        ({"pods": [pod(count=MOST_PODS + 1)]}, f"{MOST_PODS + 1} pods are more than the {MOST_PODS}"),
        ({"pods": [pod(), pod()]}, "pods[1].name: there are two pods named default/train"),
        ({"pods": [pod(count=2), pod("train-1")]}, "pods[1].name: there are two pods named default/train-1"),
        ({"pods": [pod()], "steps": [{"admit": "tran"}]}, "steps[0].admit: there is no pod 'tran'"),
        ({"pods": [pod()], "steps": [{"release": "train"}]}, "steps[0].release: pod default/train is not on the node"),
        ({"pods": [pod()], "steps": [{"admit": ["train", "train"]}]}, "steps[0].admit: pod default/train is on the"),
        ({"pods": [pod()], "steps": [{}]}, "steps[0]: says either `admit` or `release`"),
        ({"pods": [pod()], "steps": [{"admit": "train", "release": "train"}]}, "steps[0]: says either `admit`"),
    ],
)
def test_a_fault_is_told_with_its_path(document: object, expected: str) -> None:
    [problem] = problems(document)
    assert problem.startswith(expected)


@pytest.mark.parametrize("name", ["web.prod", "a.b-c.d", "0", "a" * 253, "a" * 100 + ".x"])
def test_a_pod_has_the_names_that_kubernetes_takes(name: str) -> None:
    assert story(parse({"pods": [pod(name)]})) == [f"admit default/{name}"]


@pytest.mark.parametrize("name", ["a.", ".a", "a..b", "a.-b", "a_b", "", "a" * 254])
def test_other_names_of_a_pod_are_refused(name: str) -> None:
    [problem] = problems({"pods": [pod(name)]})
    assert problem.startswith(("pods[0].name: this is no name that", "pods[0].name: this has to be at most 253"))


def test_a_namespace_and_a_container_have_no_dots_in_their_names() -> None:
    assert problems({"pods": [pod(namespace="a.b")]})[0].startswith("pods[0].namespace: ")
    container = {"name": "a.b", "limits": {}}
    [problem] = problems({"pods": [{"name": "p", "containers": [container]}]})
    assert problem.startswith("pods[0].containers[0].name: ")


def test_the_number_of_a_copy_is_part_of_its_name() -> None:
    assert len(parse({"pods": [pod("a" * 251, count=10)]}).actions) == 10
    [problem] = problems({"pods": [pod("a" * 251, count=11)]})
    assert problem.startswith("pods[0]: has copies with names of 254 characters, such as 'aaa")


def test_two_containers_of_one_name_are_refused() -> None:
    twin = {"name": "a", "limits": {}}
    [problem] = problems({"pods": [{"name": "p", "containers": [twin, twin]}]})
    assert problem == "pods[0]: has two containers named 'a'; give each a name of its own"


def test_a_limit_of_0_is_taken_and_told_with_its_path() -> None:
    nothing = {"nvidia.com/gpu": 0}
    entry = {
        "name": "p",
        "initContainers": [{"name": "prepare", "limits": nothing}],
        "containers": [{"name": "app", "limits": {"nvidia.com/gpu": 1}}, {"name": "log", "limits": nothing}],
    }
    assert parse({"pods": [pod(limits=nothing), entry]}).warnings == (
        "w.yaml: pods[0].limits.nvidia.com/gpu: 0 asks for nothing",
        "w.yaml: pods[1].initContainers[0].limits.nvidia.com/gpu: 0 asks for nothing",
        "w.yaml: pods[1].containers[1].limits.nvidia.com/gpu: 0 asks for nothing",
    )


def test_every_fault_is_told_at_once() -> None:
    assert len(problems({"pods": [pod("A"), pod("B", count="x")]})) == 3


def test_a_step_that_names_no_pod_is_told_beside_faults_of_other_kinds() -> None:
    document = {
        "pods": [pod("notebook"), pod("train", namespace="ml", count=0), "nothing", {"name": ["list"], "limits": {}}],
        "steps": [
            {"admit": "trian"},
            {"admit": ["ml/train-0", "train", "notebook", ["list"]]},
            {"release": "notebook-1"},
            {"wait": "long"},
            "later",
        ],
    }
    told = problems(document)
    assert "pods[1].count: this has to be at least 1 (found '0')" in told
    assert [problem for problem in told if "there is no pod" in problem] == [
        "steps[0].admit: there is no pod 'trian'; there are: notebook, train",
        "steps[2].release: there is no pod 'notebook-1'; there are: notebook, train",
    ]


def test_many_pods_are_not_all_named() -> None:
    [problem] = problems({"pods": [pod(count=20)], "steps": [{"admit": "tran"}]})
    assert problem.endswith("default/train-15, default/train-16, ...")


@pytest.mark.parametrize("steps", [None, "all", [{"admit": {"name": "train"}}]])
def test_steps_that_are_none_bring_no_names(steps: object) -> None:
    assert not [problem for problem in problems({"pods": [pod("A")], "steps": steps}) if "no pod" in problem]


def test_a_file_that_is_not_there_is_refused_with_its_path(tmp_path: Path) -> None:
    path = str(tmp_path / "none.yaml")
    with pytest.raises(WorkloadError, match=r"workload .*none\.yaml is refused:\n  it cannot be read: No such file"):
        load_workload(path)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkloadError, match="it is not a text file"):
        load_workload(str(path))


def test_a_file_that_is_not_yaml_is_refused_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("pods: [\n", encoding="utf-8")
    with pytest.raises(WorkloadError, match=r"it is not YAML: line 2, column 1: a value is missing"):
        load_workload(str(path))


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(WorkloadError, match="line 2: the key 'pods' stands twice"):
        parse_workload("pods: []\npods: []\n", "w.yaml")


def test_names_that_look_like_other_types_are_names() -> None:
    [action] = parse_workload("pods: [{name: 010, limits: {nvidia.com/gpu: 010}}]", "w.yaml").actions
    assert (action.pod.key, action.pod.containers[0].limits) == ("default/010", {"nvidia.com/gpu": 10})


def test_a_file_that_nests_without_end_is_refused() -> None:
    with pytest.raises(WorkloadError, match="it is not YAML"):
        parse_workload("[" * 3_000, "w.yaml")


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump({"pods": [pod()]}), encoding="utf-8")
    assert load_workload(str(path)).source == str(path)


_SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.dates()
_DOCUMENTS = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["pods", "steps", "name", "count", "limits", "containers", "admit", "release"])
            | st.text(max_size=4),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(_DOCUMENTS)
def test_any_document_is_a_workload_or_a_workload_error(document: object) -> None:
    with contextlib.suppress(WorkloadError):
        assert parse(document).source == "w.yaml"


@given(st.text(max_size=40))
def test_any_text_is_a_workload_or_a_workload_error(text: str) -> None:
    with contextlib.suppress(WorkloadError):
        assert parse_workload(text, "w.yaml").source == "w.yaml"
