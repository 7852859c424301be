"""The specifications of the classes beside `gpu`."""

import json
from pathlib import Path

import pytest

from gpustow.config import Config
from gpustow.hardware.node import Platform
from gpustow.injection.cdi.generator import DriverRoot, generate_other_classes
from gpustow.injection.cdi.generator.mounts import READ_ONLY
from gpustow.injection.hostdevices import HostDevices, simulated_host_devices
from tests.injection.cdi.generator.drivertree import Tree

_VENDOR = "k8s.device-plugin.nvidia.com"
_CONFIG = Config(imex_channel_ids=(0,), gdrcopy_enabled=True, gds_enabled=True, mofed_enabled=True)


def test_a_node_without_such_devices_has_no_such_classes() -> None:
    assert generate_other_classes(Config(), DriverRoot.of_simulated(Config()), HostDevices()) == ()


def test_imex_channels_are_devices_by_their_numbers(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for number in (0, 2047):
        tree.device(f"/dev/nvidia-caps-imex-channels/channel{number}")
    (generated,) = generate_other_classes(_CONFIG, tree.root(), HostDevices(imex_channels=(0, 2047)))
    generated.spec.check()
    assert json.loads(generated.spec.to_json()) == {
        "cdiVersion": "0.5.0",
        "kind": f"{_VENDOR}/imex-channel",
        "devices": [
            {
                "name": str(number),
                "containerEdits": {
                    "deviceNodes": [
                        {
                            "path": f"/dev/nvidia-caps-imex-channels/channel{number}",
                            "hostPath": f"/dev/nvidia-caps-imex-channels/channel{number}",
                            "permissions": "rwm",
                        }
                    ]
                },
            }
            for number in (0, 2047)
        ],
    }
    assert generated.left_out == ()


@pytest.mark.parametrize(
    ("class_", "host", "paths"),
    [
        ("gdrcopy", HostDevices(gdrcopy=("/dev/gdrdrv",)), ["/dev/gdrdrv"]),
        (
            "mofed",
            HostDevices(mofed=("/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm")),
            ["/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"],
        ),
    ],
)
def test_devices_of_another_driver_are_one_device(
    tmp_path: Path, class_: str, host: HostDevices, paths: list[str]
) -> None:
    tree = Tree(tmp_path)
    for path in paths:
        tree.device(path)
    (generated,) = generate_other_classes(_CONFIG, tree.root("/driver", "/host"), host)
    generated.spec.check()
    assert json.loads(generated.spec.to_json()) == {
        "cdiVersion": "0.5.0",
        "kind": f"{_VENDOR}/{class_}",
        "devices": [
            {
                "name": "all",
                "containerEdits": {
                    "deviceNodes": [{"path": path, "hostPath": f"/host{path}", "permissions": "rwm"} for path in paths]
                },
            }
        ],
        "containerEdits": {"env": ["NVIDIA_VISIBLE_DEVICES=void"]},
    }


def test_direct_storage_needs_two_files_beside_its_nodes(tmp_path: Path) -> None:
    tree = Tree(tmp_path).device("/dev/nvidia-fs0").directory("/run/udev").file("/etc/cufile.json")
    (generated,) = generate_other_classes(_CONFIG, tree.root("/driver"), HostDevices(gds=("/dev/nvidia-fs0",)))
    (device,) = generated.spec.devices
    assert [(mount.host_path, mount.container_path, mount.options) for mount in device.edits.mounts] == [
        (f"/driver{path}", path, READ_ONLY) for path in ("/run/udev", "/etc/cufile.json")
    ]
    assert generated.left_out == ()


def test_files_of_direct_storage_that_are_not_there_are_told(tmp_path: Path) -> None:
    tree = Tree(tmp_path).device("/dev/nvidia-fs0")
    (generated,) = generate_other_classes(_CONFIG, tree.root(), HostDevices(gds=("/dev/nvidia-fs0",)))
    assert generated.spec.devices[0].edits.mounts == ()
    assert generated.left_out == ("not found below /: files of GPUDirect Storage /run/udev, /etc/cufile.json",)


def test_a_simulated_node_has_every_class_that_is_asked_for() -> None:
    host = simulated_host_devices(_CONFIG, Platform.NVML)
    generated = generate_other_classes(_CONFIG, DriverRoot.of_simulated(_CONFIG), host)
    for each in generated:
        each.spec.check()
    assert [each.spec.kind.partition("/")[2] for each in generated] == ["imex-channel", "gdrcopy", "gds", "mofed"]
