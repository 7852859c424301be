import json

from gpustow.simulation.report import render_json
from tests.simulation.samples import outcome, refused, running, unschedulable


def test_the_report_is_by_policy_with_what_each_pod_got() -> None:
    report = json.loads(render_json([outcome("packed", [running("a", "MIG-0-0"), refused("b")])]))
    assert report["packed"]["resources"] == {"nvidia.com/gpu": {"capacity": 6, "allocatable": 6}}
    assert (report["packed"]["wholly_free_gpus"], report["packed"]["unusable_gpus"]) == (1, 0)
    [a, b] = report["packed"]["pods"]
    assert a == {
        "namespace": "default",
        "name": "a",
        "phase": "running",
        "device_ids": ["MIG-0-0"],
        "envs": {"NVIDIA_VISIBLE_DEVICES": "MIG-0-0"},
        "containers": [
            {
                "name": "main",
                "device_ids": {"nvidia.com/gpu": ["MIG-0-0"]},
                "envs": {"NVIDIA_VISIBLE_DEVICES": "MIG-0-0"},
                "annotations": {},
                "cdi_devices": [],
            }
        ],
        "refusals": [],
    }
    assert (b["phase"], b["reason"], b["message"]) == ("refused", "UnexpectedAdmissionError", "no room")
    assert b["refusals"] == [{"reason": "UnexpectedAdmissionError", "message": "no room"}]
    assert b["device_ids"] == []
    assert b["envs"] == {}


def test_an_unschedulable_pod_is_reported_with_its_reason() -> None:
    [pod] = json.loads(render_json([outcome("packed", [unschedulable("a")])]))["packed"]["pods"]
    assert (pod["phase"], pod["reason"], pod["message"]) == ("unschedulable", "Unschedulable", "no such resource")


def test_the_report_shows_each_gpu_and_who_holds_what() -> None:
    report = json.loads(render_json([outcome("packed", [running("a", "MIG-0-1")], slots=2)]))
    [first, second] = report["packed"]["gpus"]
    assert first["wholly_free"] is False
    assert first["devices"] == [
        {"id": "MIG-0-0", "resource": "nvidia.com/gpu", "pod": None},
        {"id": "MIG-0-1", "resource": "nvidia.com/gpu", "pod": "default/a"},
    ]
    assert second["wholly_free"] is True


def test_policies_stand_beside_each_other_in_the_order_asked_for() -> None:
    assert list(json.loads(render_json([outcome("distributed", []), outcome("packed", [])]))) == [
        "distributed",
        "packed",
    ]
