from gpustow.config import Config
from gpustow.hardware.node import Platform
from gpustow.injection.devicenodes import device_nodes
from gpustow.injection.hostdevices import CONTROL_NODES, HostDevices, simulated_host_devices
from tests.injection.samples import gpu, mig


def test_the_path_in_the_container_never_has_the_root_and_that_on_the_host_always_has() -> None:
    config = Config(dev_root="/home/driver", imex_channel_ids=(0,))
    nodes = device_nodes([gpu("a", 0), mig("m", 1, 0)], config, simulated_host_devices(config, Platform.NVML))
    assert all(node.host_path == f"/home/driver{node.container_path}" for node in nodes)
    assert {node.permissions for node in nodes} == {"rw"}
    assert len(nodes) == len(CONTROL_NODES) + 1 + 3 + 1


def test_only_control_nodes_that_are_there_are_passed() -> None:
    nodes = device_nodes([gpu("a", 0)], Config(), HostDevices(control=("/dev/nvidiactl", "/dev/nvidia-uvm")))
    assert [node.container_path for node in nodes] == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"]


def test_the_card_of_two_mig_devices_is_passed_once() -> None:
    nodes = device_nodes([mig("b", 0, 1), mig("a", 0, 0)], Config(), HostDevices())
    assert [node.container_path.rpartition("/")[2] for node in nodes] == [
        "nvidia0",
        "nvidia-cap101",
        "nvidia-cap201",
        "nvidia-cap100",
        "nvidia-cap200",
    ]
