"""All specifications of a node, by our own generator and by the toolkit."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpustow.config import Config, DeviceIdStrategy, MigStrategy
from gpustow.errors import HardwareError
from gpustow.hardware.node import Node, Platform
from gpustow.hardware.nodemodel import load_node_model, shipped_models
from gpustow.injection.cdi.generator import DriverRoot
from gpustow.injection.cdi.gpuclass import device_names
from gpustow.injection.cdi.specification import CdiDevice, CdiEdits, CdiSpec, parse_spec
from gpustow.injection.cdi.specs import CdiSpecs, cdi_specs
from gpustow.injection.cdi.toolkit import Toolkit
from gpustow.injection.hostdevices import HostDevices, simulated_host_devices
from tests.injection.cdi.samples import node_edits
from tests.injection.cdi.schema import faults

EVERYTHING = Config(gdrcopy_enabled=True, gds_enabled=True, mofed_enabled=True, imex_channel_ids=(0,))


def simulated(node: Node, config: Config) -> CdiSpecs:
    host = simulated_host_devices(config, node.platform)
    return cdi_specs(node, config, host, DriverRoot.of_simulated(config))


def model(name: str) -> Node:
    return load_node_model(name).node


def names(spec: CdiSpec) -> list[str]:
    return [device.name for device in spec.devices]


@pytest.mark.parametrize("id_strategy", DeviceIdStrategy)
@pytest.mark.parametrize("name", shipped_models())
def test_the_specifications_of_each_shipped_node_model_fit_the_schema(name: str, id_strategy: DeviceIdStrategy) -> None:
    config = replace(EVERYTHING, device_id_strategy=id_strategy)
    made = simulated(model(name), config)
    assert [spec.kind.partition("/")[2] for spec in made.specs] == ["gpu", "imex-channel", "gdrcopy", "gds", "mofed"]
    for spec in made.specs:
        assert faults(spec.to_json()) == []
        assert parse_spec(spec.to_json()) == spec
    assert set(names(made.specs[0])) == {*device_names(model(name), config), "all"}


@pytest.mark.parametrize(
    ("name", "mig_strategy", "id_strategy", "expected"),
    [
        ("t4-4", MigStrategy.NONE, DeviceIdStrategy.INDEX, ["0", "1", "2", "3", "all"]),
        ("wsl", MigStrategy.NONE, DeviceIdStrategy.UUID, ["all"]),
        ("wsl", MigStrategy.NONE, DeviceIdStrategy.INDEX, ["all"]),
        ("jetson-orin", MigStrategy.NONE, DeviceIdStrategy.UUID, ["all"]),
        ("jetson-orin", MigStrategy.NONE, DeviceIdStrategy.INDEX, ["all"]),
    ],
)
def test_devices_are_named_by_the_strategy_and_joint_ones_all(
    name: str, mig_strategy: MigStrategy, id_strategy: DeviceIdStrategy, expected: Sequence[str]
) -> None:
    config = Config(mig_strategy=mig_strategy, device_id_strategy=id_strategy)
    assert names(simulated(model(name), config).specs[0]) == expected


@pytest.mark.parametrize("mig_strategy", MigStrategy)
def test_mig_devices_are_there_whatever_the_strategy_and_their_gpu_where_it_is_served(
    mig_strategy: MigStrategy,
) -> None:
    config = Config(mig_strategy=mig_strategy, device_id_strategy=DeviceIdStrategy.INDEX)
    found = set(names(simulated(model("a100-4-mig-5"), config).specs[0]))
    mig_devices = {f"{gpu}:{number}" for gpu in range(4) for number in range(5)}
    gpus = {"0", "1", "2", "3"} if mig_strategy is MigStrategy.NONE else set()
    assert found == mig_devices | gpus | {"all"}


def test_the_version_is_low_where_nothing_new_is_used() -> None:
    by_uuid = simulated(model("t4-4"), Config()).specs[0]
    by_index = simulated(model("t4-4"), Config(device_id_strategy=DeviceIdStrategy.INDEX)).specs[0]
    assert [json.loads(spec.to_json())["cdiVersion"] for spec in (by_uuid, by_index)] == ["0.3.0", "0.5.0"]


def test_all_has_the_nodes_of_every_device() -> None:
    (spec,) = simulated(model("t4-4"), Config()).specs
    paths = {device.name: {node.path for node in device.edits.device_nodes} for device in spec.devices}
    assert paths.pop("all") == set().union(*paths.values()) == {f"/dev/nvidia{minor}" for minor in range(4)}


@pytest.mark.parametrize("id_strategy", DeviceIdStrategy)
def test_a_mig_device_of_an_old_driver_costs_only_itself(id_strategy: DeviceIdStrategy) -> None:
    node = model("a100-4-mig-5")
    first = node.gpus[0]
    old = replace(first.mig_devices[0], uuid=f"MIG-{first.uuid}/7/0")
    node = replace(node, gpus=(replace(first, mig_devices=(old, *first.mig_devices[1:])), *node.gpus[1:]))
    config = Config(mig_strategy=MigStrategy.MIXED, device_id_strategy=id_strategy)
    made = simulated(node, config)
    left_out = [each for each in made.warnings if "cannot be the name of a device" in each]
    if id_strategy is DeviceIdStrategy.INDEX:
        assert left_out == []
        assert len(made.specs[0].devices) == 21
    else:
        assert len(left_out) == 1
        assert old.uuid in left_out[0]
        assert len(made.specs[0].devices) == 20
        assert old.uuid not in device_names(node, config)


def test_a_gpu_that_the_configuration_leaves_out_is_no_device_and_not_in_all(tmp_path: Path) -> None:
    node = model("t4-4")
    config = Config(exclude_gpus=("1",), device_id_strategy=DeviceIdStrategy.INDEX)
    listed = tuple(CdiDevice(str(gpu.index), node_edits(*gpu.device_paths)) for gpu in node.gpus)
    made = CdiSpec("nvidia.com/gpu", (*listed, CdiDevice("all", node_edits("/dev/nvidia1"))))
    for specs in (simulated(node, config), by_toolkit(node, config, tmp_path, made)):
        (spec,) = specs.specs
        assert names(spec) == ["0", "2", "3", "all"]
        assert "/dev/nvidia1" not in spec.to_json()


def test_a_device_without_nodes_costs_only_itself() -> None:
    node = model("t4-4")
    node = replace(node, gpus=(replace(node.gpus[0], device_paths=()), *node.gpus[1:]))
    made = simulated(node, Config(device_id_strategy=DeviceIdStrategy.INDEX))
    assert names(made.specs[0]) == ["1", "2", "3", "all"]
    assert f"{node.gpus[0].uuid} has no device nodes" in made.warnings[0]


def test_a_board_without_lists_is_an_error_that_says_what_was_not_found(tmp_path: Path) -> None:
    node = model("jetson-orin")
    with pytest.raises(HardwareError, match=r"nothing that a container .* could be given by CDI\n.*lists for Tegra"):
        cdi_specs(node, Config(), HostDevices(), DriverRoot.of(Config(), tmp_path))


def toolkit(tmp_path: Path, made: CdiSpec | None) -> Toolkit:
    """A toolkit that prints a specification, or fails."""
    program = tmp_path / "nvidia-ctk"
    output = tmp_path / "output"
    output.write_text(made.to_json() if made is not None else "", encoding="utf-8")
    program.write_text(f"#!/bin/sh\n/bin/cat {output}\n", encoding="utf-8")
    program.chmod(0o755)
    return Toolkit(program, Path("/driver-root"), Path("/"), {})


def by_toolkit(node: Node, config: Config, tmp_path: Path, made: CdiSpec | None) -> CdiSpecs:
    root = DriverRoot.of_simulated(config)
    host = simulated_host_devices(config, node.platform)
    return cdi_specs(node, config, host, root, toolkit(tmp_path, made))


def test_what_the_toolkit_makes_is_taken_with_an_all_of_ours_and_the_word_that_keeps_its_runtime_out(
    tmp_path: Path,
) -> None:
    node = model("t4-4")
    made = CdiSpec(
        "nvidia.com/gpu",
        (
            *(CdiDevice(gpu.uuid, node_edits(f"/dev/nvidia{gpu.minor}", "/dev/nvidiactl")) for gpu in node.gpus),
            CdiDevice("all", node_edits("/dev/other")),
        ),
        CdiEdits(env=("NVIDIA_VISIBLE_DEVICES=none", "A=b")) + node_edits("/dev/nvidiactl"),
    )
    specs = by_toolkit(node, Config(), tmp_path, made)
    assert specs.left_out == specs.warnings == ()
    (spec,) = specs.specs
    assert spec.kind == "k8s.device-plugin.nvidia.com/gpu"
    assert spec.edits == CdiEdits(env=("A=b", "NVIDIA_VISIBLE_DEVICES=void")) + node_edits("/dev/nvidiactl")
    assert {device.name: device.edits for device in spec.devices} == {
        **{gpu.uuid: node_edits(f"/dev/nvidia{gpu.minor}") for gpu in node.gpus},
        "all": node_edits(*(f"/dev/nvidia{gpu.minor}" for gpu in node.gpus)),
    }


def test_what_is_wrong_with_the_host_is_told_also_where_the_toolkit_makes_the_specification(tmp_path: Path) -> None:
    node, host = model("t4-4"), HostDevices()
    made = CdiSpec("nvidia.com/gpu", tuple(CdiDevice(gpu.uuid, node_edits("/dev/a")) for gpu in node.gpus))
    (tmp_path / "driver-root").mkdir()
    root = DriverRoot.of(Config(), tmp_path)
    (warning,) = cdi_specs(node, Config(), host, root, toolkit(tmp_path, made)).warnings
    assert warning.startswith(f"the hook program /usr/bin/nvidia-ctk is not found below {tmp_path}/driver-root, where ")
    elsewhere = DriverRoot.of(Config(driver_root="/run/nvidia/driver", driver_root_ctr_path="/none"), tmp_path)
    (warning,) = cdi_specs(node, Config(), host, elsewhere, toolkit(tmp_path, made)).warnings
    assert warning.startswith("/none is not there")


def test_where_the_toolkit_fails_our_own_generator_is_taken_and_it_is_told(tmp_path: Path) -> None:
    node, config = model("t4-4"), Config()
    specs = by_toolkit(node, config, tmp_path, None)
    assert specs.specs == simulated(node, config).specs
    assert specs.warnings[0].startswith(
        f"{tmp_path}/nvidia-ctk gives no CDI specification, and our own generator makes it: "
    )


def test_a_gpu_in_mig_mode_that_is_served_whole_is_not_left_to_the_toolkit(tmp_path: Path) -> None:
    node = model("a100-4-mig-5")
    made = CdiSpec(
        "nvidia.com/gpu", tuple(CdiDevice(m.uuid, node_edits("/dev/a")) for g in node.gpus for m in g.mig_devices)
    )
    assert "it leaves out GPU-" in by_toolkit(node, Config(), tmp_path, made).warnings[0]
    mixed = by_toolkit(node, Config(mig_strategy=MigStrategy.MIXED), tmp_path, made)
    assert mixed.warnings == ()
    assert len(mixed.specs[0].devices) == 21


def test_a_node_under_wsl_is_asked_of_the_toolkit_as_one_device(tmp_path: Path) -> None:
    node = model("wsl")
    assert node.platform is Platform.WSL
    made = CdiSpec("nvidia.com/gpu", (CdiDevice("all", node_edits("/dev/dxg")),))
    assert names(by_toolkit(node, Config(), tmp_path, made).specs[0]) == ["all"]
