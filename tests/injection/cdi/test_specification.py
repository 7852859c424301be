"""What a CDI file holds: its text, its version, and what a runtime refuses."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.errors import CdiSpecError
from gpustow.injection.cdi.specification import (
    CdiDevice,
    CdiDeviceNode,
    CdiEdits,
    CdiHook,
    CdiMount,
    CdiSpec,
    parse_spec,
)
from tests.injection.cdi.samples import FINE, HOOK, WILD, node_edits, spec
from tests.injection.cdi.schema import faults

FULL = CdiSpec(
    "k8s.device-plugin.nvidia.com/gpu",
    (
        CdiDevice(
            "GPU-1",
            CdiEdits(device_nodes=(CdiDeviceNode("/dev/nvidia0", "/host/dev/nvidia0", "c", 195, 0, 438, "rw", 0, 44),)),
            {"gpu.nvidia.com/coherent": "true"},
        ),
        CdiDevice("1:0", node_edits("/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap21")),
    ),
    CdiEdits(
        env=("NVIDIA_VISIBLE_DEVICES=void", "A="),
        mounts=(CdiMount("/driver/lib/libcuda.so.1", "/lib/libcuda.so.1", ("ro", "nosuid"), "bind"),),
        hooks=(replace(HOOK, env=("NVIDIA_CTK_DEBUG=false",), timeout=10),),
        additional_gids=(44,),
    ),
    {"example.org/made-by": "test"},
)


def test_a_file_has_every_field_where_cdi_has_it() -> None:
    assert json.loads(FULL.to_json()) == {
        "cdiVersion": "0.7.0",
        "kind": "k8s.device-plugin.nvidia.com/gpu",
        "annotations": {"example.org/made-by": "test"},
        "devices": [
            {
                "name": "GPU-1",
                "annotations": {"gpu.nvidia.com/coherent": "true"},
                "containerEdits": {
                    "deviceNodes": [
                        {
                            "path": "/dev/nvidia0",
                            "hostPath": "/host/dev/nvidia0",
                            "type": "c",
                            "major": 195,
                            "minor": 0,
                            "fileMode": 438,
                            "permissions": "rw",
                            "uid": 0,
                            "gid": 44,
                        }
                    ]
                },
            },
            {
                "name": "1:0",
                "containerEdits": {
                    "deviceNodes": [{"path": "/dev/nvidia1"}, {"path": "/dev/nvidia-caps/nvidia-cap21"}]
                },
            },
        ],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void", "A="],
            "mounts": [
                {
                    "hostPath": "/driver/lib/libcuda.so.1",
                    "containerPath": "/lib/libcuda.so.1",
                    "options": ["ro", "nosuid"],
                    "type": "bind",
                }
            ],
            "hooks": [
                {
                    "hookName": "createContainer",
                    "path": "/usr/bin/nvidia-cdi-hook",
                    "args": ["nvidia-cdi-hook", "update-ldcache"],
                    "env": ["NVIDIA_CTK_DEBUG=false"],
                    "timeout": 10,
                }
            ],
            "additionalGids": [44],
        },
    }
    assert faults(FULL.to_json()) == []


def test_edits_that_are_shared_by_all_may_be_empty_and_are_then_left_out() -> None:
    assert "containerEdits" not in json.loads(spec("GPU-1").to_json())
    assert parse_spec(text(containerEdits={})) == CdiSpec("ve/cl", (CdiDevice("a", CdiEdits(env=("A=b",))),))


@given(FINE.specs())
def test_what_a_runtime_takes_comes_back_from_its_text_and_fits_the_schema(made: CdiSpec) -> None:
    made.check()
    assert parse_spec(made.to_json()) == made
    assert faults(made.to_json()) == []


@given(WILD.specs())
def test_what_the_check_accepts_is_what_is_read(made: CdiSpec) -> None:
    written = made.to_json()
    if made.problems:
        with pytest.raises(CdiSpecError):
            parse_spec(written)
    else:
        assert parse_spec(written) == made
        assert faults(written) == []


@pytest.mark.parametrize(
    ("change", "version"),
    [
        (lambda fine: fine, "0.3.0"),
        (lambda fine: with_edits(fine, CdiEdits(mounts=(CdiMount("/a", "/b", type="bind"),))), "0.4.0"),
        (lambda fine: with_edits(fine, CdiEdits(device_nodes=(CdiDeviceNode("/a", "/a"),))), "0.5.0"),
        (lambda _: spec("GPU-1", "1:0"), "0.5.0"),
        (lambda fine: replace(fine, annotations={"a": "b"}), "0.6.0"),
        (lambda fine: replace(fine, devices=(replace(fine.devices[0], annotations={"a": "b"}),)), "0.6.0"),
        (lambda fine: replace(fine, kind="vendor.com/gpu.coherent"), "0.6.0"),
        (lambda fine: with_edits(fine, CdiEdits(additional_gids=(44,))), "0.7.0"),
    ],
)
def test_the_version_is_the_lowest_that_the_content_needs(change: Callable[[CdiSpec], CdiSpec], version: str) -> None:
    fine = spec("GPU-1")
    assert change(fine).version == version
    assert json.loads(change(fine).to_json())["cdiVersion"] == version
    # Wherever the feature is used.
    assert change(replace(fine, edits=node_edits("/dev/nvidiactl"))).version == version


def with_edits(fine: CdiSpec, edits: CdiEdits) -> CdiSpec:
    return replace(fine, devices=(replace(fine.devices[0], edits=edits),))


def in_common(**parts: Any) -> CdiSpec:
    return replace(spec("GPU-1"), edits=CdiEdits(**parts))


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (replace(spec("GPU-1"), kind="v/gpu"), "kind"),
        (replace(spec("GPU-1"), kind="vendor.com/gp=u"), "kind"),
        (replace(spec("GPU-1"), annotations={"a b": "c"}), "annotations"),
        (replace(spec("GPU-1"), annotations={"a": "b" * (256 << 10)}), "annotations"),
        (spec(), "devices"),
        (spec("GPU-1", "GPU-1"), "devices[1].name"),
        (spec("MIG-GPU-1/0/0"), "devices[0].name"),
        (CdiSpec("ve/cl", (CdiDevice("a", CdiEdits()),)), "devices[0].containerEdits"),
        (in_common(env=("A=b", "=b")), "containerEdits.env[1]"),
        (in_common(device_nodes=(CdiDeviceNode(""),)), "containerEdits.deviceNodes[0].path"),
        (in_common(device_nodes=(CdiDeviceNode("/a", type="x"),)), "containerEdits.deviceNodes[0].type"),
        (
            in_common(device_nodes=(CdiDeviceNode("/a", permissions="none"),)),
            "containerEdits.deviceNodes[0].permissions",
        ),
        (in_common(device_nodes=(CdiDeviceNode("/a", major=1 << 63),)), "containerEdits.deviceNodes[0].major"),
        (in_common(device_nodes=(CdiDeviceNode("/a", uid=-1),)), "containerEdits.deviceNodes[0].uid"),
        (in_common(mounts=(CdiMount("", "/a"),)), "containerEdits.mounts[0].hostPath"),
        (in_common(mounts=(CdiMount("/a", ""),)), "containerEdits.mounts[0].containerPath"),
        (in_common(hooks=(CdiHook("never", "/a"),)), "containerEdits.hooks[0].hookName"),
        (in_common(hooks=(CdiHook("prestart", "a"),)), "containerEdits.hooks[0].path"),
        (in_common(hooks=(CdiHook("prestart", "/a", timeout=0),)), "containerEdits.hooks[0].timeout"),
        (in_common(hooks=(CdiHook("prestart", "/a", env=("A",)),)), "containerEdits.hooks[0].env[0]"),
        (in_common(additional_gids=(1 << 32,)), "containerEdits.additionalGids[0]"),
        (in_common(mounts=(CdiMount("/\udcff", "/a"),)), ""),
    ],
)
def test_each_fault_is_told_with_its_place(wrong: CdiSpec, path: str) -> None:
    with pytest.raises(CdiSpecError) as refusal:
        wrong.check()
    assert [problem.path for problem in refusal.value.problems] == [path]
    assert str(refusal.value).startswith(f"CDI specification {wrong.kind} is refused:")


def test_all_faults_are_told_at_once() -> None:
    wrong = CdiSpec("x", (CdiDevice("", node_edits("")),))
    assert [problem.path for problem in wrong.problems] == [
        "kind",
        "devices[0].name",
        "devices[0].containerEdits.deviceNodes[0].path",
    ]


def text(**parts: object) -> str:
    """A small file, with some parts of it in another way; None leaves one out."""
    small = {"cdiVersion": "0.3.0", "kind": "ve/cl", "devices": [{"name": "a", "containerEdits": {"env": ["A=b"]}}]}
    return json.dumps({key: value for key, value in (small | parts).items() if value is not None})


@pytest.mark.parametrize(
    ("wrong", "path", "message"),
    [
        ("", "", "is not JSON"),
        ("[]", "", "should be an object, and is a list"),
        ("NaN", "", "is not JSON: NaN"),
        ("[" * 100_000, "", "is nested too deeply"),
        ('{"kind": 1}', "kind", "should be a text, and is a number"),
        ('{"kind": null}', "kind", "should be a text, and is null"),
        ('{"kind": "a", "kind": "b"}', "kind", "is there twice"),
        ('{"devices": {}}', "devices", "should be a list, and is an object"),
        ('{"devices": [null]}', "devices[0]", "should be an object, and is null"),
        ('{"devices": [{"nmae": "a"}]}', "devices[0].nmae", "is not known"),
        ('{"cdi": "0.3.0"}', "cdi", "is not known"),
        ('{"annotations": {"a": true}}', "annotations.a", "should be a text, and is a boolean"),
        ('{"containerEdits": {"netDevices": []}}', "containerEdits.netDevices", "is not known"),
        ('{"containerEdits": {"env": [1.5]}}', "containerEdits.env[0]", "should be a text, and is a number"),
        ('{"containerEdits": {"mounts": [{"x": 1}]}}', "containerEdits.mounts[0].x", "is not known"),
        ('{"containerEdits": {"hooks": [{"x": 1}]}}', "containerEdits.hooks[0].x", "is not known"),
        (
            '{"containerEdits": {"deviceNodes": [{"path": "/a", "major": true}]}}',
            "containerEdits.deviceNodes[0].major",
            "should be a whole number, and is a boolean",
        ),
        ('{"containerEdits": {"deviceNodes": [{"x": 1}]}}', "containerEdits.deviceNodes[0].x", "is not known"),
        (text(cdiVersion="0.5.1"), "cdiVersion", "should be one of"),
        (text(cdiVersion=None), "cdiVersion", "should be one of"),
        (
            text(cdiVersion="0.4.0", kind="ve/cl.a"),
            "cdiVersion",
            "should be 0.6.0 or higher for the content, and is 0.4.0",
        ),
    ],
)
def test_a_text_is_read_as_strictly_as_by_the_library(wrong: str, path: str, message: str) -> None:
    with pytest.raises(CdiSpecError, match=r"^CDI specification file.json is refused:") as refusal:
        parse_spec(wrong, "file.json")
    (problem,) = refusal.value.problems
    assert problem.path == path
    assert message in problem.message


@pytest.mark.parametrize("version", ["0.3.0", "v0.3.0", "1.1.0"])
def test_a_version_may_be_higher_than_needed_and_have_a_v(version: str) -> None:
    assert parse_spec(text(cdiVersion=version)) == CdiSpec("ve/cl", (CdiDevice("a", CdiEdits(env=("A=b",))),))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["kind", "devices", "containerEdits", "env"]), inner)
        ),
    )
)
def test_any_json_is_read_or_refused(value: object) -> None:
    with pytest.raises(CdiSpecError):  # never enough for a specification, which needs its version
        parse_spec(json.dumps(value))


def test_edits_add_up_in_their_order() -> None:
    one = CdiEdits(("A=1",), (CdiDeviceNode("/a"),), (CdiMount("/a", "/a"),), (HOOK,), (1,))
    other = CdiEdits(("B=2",), (CdiDeviceNode("/b"),), (CdiMount("/b", "/b"),), (), (2,))
    both = one + other
    assert (both.env, both.additional_gids, both.hooks) == (("A=1", "B=2"), (1, 2), (HOOK,))
    assert [node.path for node in both.device_nodes] == ["/a", "/b"]
    assert [mount.host_path for mount in both.mounts] == ["/a", "/b"]
    assert CdiEdits().is_empty
    assert not one.is_empty
