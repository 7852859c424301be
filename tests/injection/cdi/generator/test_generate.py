"""The specification of class `gpu`: a whole one, what every one of them keeps to, and what is told with it."""

import json
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import Config, DeviceIdStrategy, MigStrategy
from gpustow.hardware.nodemodel import load_node_model, shipped_models
from gpustow.injection.cdi.edits import CdiEdits
from gpustow.injection.cdi.generator import DriverRoot, generate, host_warnings
from gpustow.injection.cdi.names import device_name
from gpustow.injection.cdi.specification import parse_spec
from gpustow.injection.hostdevices import HostDevices, simulated_host_devices
from gpustow.resources import build_catalog
from tests.injection.cdi.generator.drivertree import Tree
from tests.injection.cdi.generator.nodes import CONTROL, GLIBC, GPU_0, GPU_1, MIG_10, VERSION, gpu, mig_device, node

_NODE = node(gpu(0, GPU_0, "00000000:3B:00.0"), gpu(1, GPU_1, mig=(mig_device(MIG_10),)))
_DRIVER = "/run/nvidia/driver"
_HOST = HostDevices(control=CONTROL)


def _example(tree: Tree) -> Tree:
    """A driver container's root, with one library, beside the host's device nodes."""
    tree.library(f"{GLIBC}/libcuda.so.{VERSION}", "libcuda.so.1").directory("/sys/bus/pci/devices/0000:3b:00.0/drm")
    tree.directory("/sys/bus/pci/devices/0000:3b:00.0/drm/renderD128").device("/dev/dri/renderD128")
    tree.link("/dev/dri/by-path/pci-0000:3b:00.0-render", "../renderD128")
    for path in (
        "nvidia0",
        "nvidia1",
        "nvidiactl",
        "nvidia-uvm",
        "nvidia-caps/nvidia-cap21",
        "nvidia-caps/nvidia-cap22",
    ):
        tree.device(f"/dev/{path}")
    return tree


def _hook(*args: str) -> dict[str, object]:
    return {
        "hookName": "createContainer",
        "path": "/usr/bin/nvidia-cdi-hook",
        "args": ["nvidia-cdi-hook", *args],
        "env": ["NVIDIA_CTK_DEBUG=false"],
    }


def _device_nodes(*paths: str) -> list[dict[str, str]]:
    return [{"path": path, "permissions": "rwm"} for path in paths]


@pytest.mark.parametrize(
    ("strategy", "names", "version"),
    [(DeviceIdStrategy.UUID, (GPU_0, MIG_10), "0.3.0"), (DeviceIdStrategy.INDEX, ("0", "1:0"), "0.5.0")],
)
def test_a_node_with_a_gpu_and_a_mig_device_is_specified(
    tmp_path: Path, strategy: DeviceIdStrategy, names: tuple[str, str], version: str
) -> None:
    config = Config(
        mig_strategy=MigStrategy.MIXED,
        device_id_strategy=strategy,
        driver_root=_DRIVER,
        nvidia_cdi_hook_path="/usr/bin/nvidia-cdi-hook",
        cdi_disable_hooks=("enable-cuda-compat", "disable-device-node-modification", "update-application-profile"),
    )
    generated = generate(_NODE, config, _example(Tree(tmp_path)).root(_DRIVER), _HOST)
    generated.spec.check()
    assert json.loads(generated.spec.to_json()) == {
        "cdiVersion": version,
        "kind": "k8s.device-plugin.nvidia.com/gpu",
        "devices": [
            {
                "name": names[0],
                "containerEdits": {
                    "deviceNodes": _device_nodes("/dev/nvidia0", "/dev/dri/renderD128"),
                    "hooks": [
                        _hook("create-symlinks", "--link", "../renderD128::/dev/dri/by-path/pci-0000:3b:00.0-render")
                    ],
                },
            },
            {
                "name": names[1],
                "containerEdits": {
                    "deviceNodes": _device_nodes(
                        "/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22"
                    ),
                },
            },
        ],
        "containerEdits": {
            "env": [f"NVIDIA_CTK_LIBCUDA_DIR={GLIBC}", "NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": _device_nodes("/dev/nvidiactl", "/dev/nvidia-uvm"),
            "mounts": [
                {
                    "hostPath": f"{_DRIVER}{GLIBC}/libcuda.so.{VERSION}",
                    "containerPath": f"{GLIBC}/libcuda.so.{VERSION}",
                    "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"],
                }
            ],
            "hooks": [
                _hook("create-symlinks", "--link", f"libcuda.so.1::{GLIBC}/libcuda.so"),
                _hook("update-ldcache", "--folder", GLIBC),
            ],
        },
    }
    assert len(generated.left_out) < 12


def test_the_hooks_run_in_the_order_in_which_they_need_each_other(tmp_path: Path) -> None:
    tree = _example(Tree(tmp_path)).library(f"{GLIBC}/libnvidia-allocator.so.{VERSION}")
    hooks = generate(_NODE, Config(), tree.root(), _HOST).spec.edits.hooks
    assert [hook.args[2] for hook in hooks] == [
        "create-symlinks",
        "create-symlinks",
        "enable-cuda-compat",
        "update-ldcache",
        "disable-device-node-modification",
        "update-application-profile",
    ]
    assert hooks[0].args[3:] == ("--link", f"../libnvidia-allocator.so.1::{GLIBC}/gbm/nvidia-drm_gbm.so")
    assert hooks[2].args[3:] == (f"--host-driver-version={VERSION}",)


def test_two_directories_of_libraries_are_named_in_the_environment_and_to_the_loader(tmp_path: Path) -> None:
    tree = _example(Tree(tmp_path)).library(f"/usr/lib64/libnvidia-ml.so.{VERSION}")
    tree.library(f"/usr/lib64/vdpau/libvdpau_nvidia.so.{VERSION}")
    edits = generate(_NODE, Config(), tree.root(), _HOST).spec.edits
    assert edits.env[0] == f"NVIDIA_CTK_LIBCUDA_DIR=/usr/lib64:{GLIBC}"
    assert edits.hooks[2].args[3:] == ("--folder", "/usr/lib64", "--folder", "/usr/lib64/vdpau", "--folder", GLIBC)


def test_a_gpu_in_mig_mode_is_a_device_only_where_it_is_served_whole(tmp_path: Path) -> None:
    root = _example(Tree(tmp_path)).root()
    names = {
        strategy: [device.name for device in generate(_NODE, Config(mig_strategy=strategy), root, _HOST).spec.devices]
        for strategy in MigStrategy
    }
    assert names[MigStrategy.NONE] == [GPU_0, GPU_1, MIG_10]
    assert names[MigStrategy.SINGLE] == names[MigStrategy.MIXED] == [GPU_0, MIG_10]


@pytest.mark.parametrize(("attribute", "draws"), [("", False), ("+me", False), ("+gfx", True)])
def test_a_mig_device_draws_where_its_profile_allows_it(tmp_path: Path, attribute: str, *, draws: bool) -> None:
    cut = gpu(0, GPU_0, "00000000:3B:00.0", mig=(mig_device(MIG_10, attribute, parent=0),))
    config = Config(mig_strategy=MigStrategy.MIXED)
    (device,) = generate(node(cut), config, _example(Tree(tmp_path)).root(), _HOST).spec.devices
    assert ("/dev/dri/renderD128" in [each.path for each in device.edits.device_nodes]) is draws
    assert bool(device.edits.hooks) is draws


@pytest.mark.parametrize(
    ("model", "coherent"),
    [("NVIDIA GH200 480GB", "true"), ("NVIDIA GB200", "true"), ("NVIDIA B200", "false"), ("NVIDIA H200", "false")],
)
def test_coherent_memory_is_an_annotation_of_whole_gpus_if_asked_for(tmp_path: Path, model: str, coherent: str) -> None:
    root = _example(Tree(tmp_path)).root()
    machine = node(gpu(0, GPU_0, model=model), gpu(1, GPU_1, model=model, mig=(mig_device(MIG_10),)))
    config = Config(mig_strategy=MigStrategy.MIXED, cdi_feature_flags=("enable-coherent-annotations",))
    spec = generate(machine, config, root, _HOST).spec
    assert [device.annotations for device in spec.devices] == [{"gpu.nvidia.com/coherent": coherent}, {}]
    assert spec.version == "0.6.0"
    plain = generate(machine, replace(config, cdi_feature_flags=()), root, _HOST).spec
    assert not any(device.annotations for device in plain.devices)


def test_sockets_are_left_out_if_asked_for(tmp_path: Path) -> None:
    root = _example(Tree(tmp_path)).file("/run/nvidia-persistenced/socket").root()
    wanted = Config(cdi_feature_flags=("disable-ipc-discoverer",))
    assert "/run/nvidia-persistenced/socket" in _containers(generate(_NODE, Config(), root, _HOST).spec.edits)
    assert "/run/nvidia-persistenced/socket" not in _containers(generate(_NODE, wanted, root, _HOST).spec.edits)


def test_explicit_libraries_are_added_if_asked_for(tmp_path: Path) -> None:
    root = (
        _example(Tree(tmp_path)).library(f"{GLIBC}/libGL.so.1.7.0").link(f"{GLIBC}/libGL.so", "libGL.so.1.7.0").root()
    )
    wanted = Config(cdi_feature_flags=("enable-explicit-driver-libraries",))
    assert f"{GLIBC}/libGL.so.1.7.0" not in _containers(generate(_NODE, Config(), root, _HOST).spec.edits)
    edits = generate(_NODE, wanted, root, _HOST).spec.edits
    assert f"{GLIBC}/libGL.so.1.7.0" in _containers(edits)
    assert f"libGL.so.1.7.0::{GLIBC}/libGL.so" in edits.hooks[0].args


def test_a_node_without_a_driver_has_its_devices_all_the_same(tmp_path: Path) -> None:
    generated = generate(node(gpu(0, GPU_0), driver=""), Config(), Tree(tmp_path).device("/dev/nvidia0").root(), _HOST)
    generated.spec.check()
    assert generated.spec.edits.env == ("NVIDIA_VISIBLE_DEVICES=void",)
    assert [hook.args[2] for hook in generated.spec.edits.hooks] == [
        "disable-device-node-modification",
        "update-application-profile",
    ]
    assert generated.warnings[0].startswith("the driver's version is not known")


def test_words_of_the_configuration_that_mean_nothing_are_told_once(tmp_path: Path) -> None:
    config = Config(cdi_feature_flags=("enable-magic", "enable-magic"), cdi_disable_hooks=("update-ldcach", "all"))
    told = generate(_NODE, config, Tree(tmp_path).root(), _HOST).warnings
    assert told[0].startswith("--cdi-feature-flags: enable-magic not known and ignored; known are enable-explicit")
    assert told[1].startswith("--cdi-disable-hooks: update-ldcach not known and ignored; known are create-symlinks")


def test_a_hook_program_that_the_host_does_not_have_is_told(tmp_path: Path) -> None:
    def told(config: Config, driver_root: str = "/") -> bool:
        told = host_warnings(config, tree.root(driver_root))
        return any(each.startswith("the hook program /usr/bin/nvidia-ctk is not found below /, ") for each in told)

    tree = Tree(tmp_path)
    assert told(Config())
    assert not told(Config(), _DRIVER)  # what the host itself has cannot be seen
    assert not told(Config(cdi_disable_hooks=("all",)))
    tree.program("/usr/bin/nvidia-ctk")
    assert not told(Config())


@pytest.mark.parametrize("name", shipped_models())
@pytest.mark.parametrize("strategy", [DeviceIdStrategy.UUID, DeviceIdStrategy.INDEX])
def test_every_name_that_allocate_answers_with_is_there_for_every_shipped_model(
    name: str, strategy: DeviceIdStrategy
) -> None:
    machine = load_node_model(name).node
    for mig_strategy in (MigStrategy.NONE, MigStrategy.MIXED):
        config = Config(mig_strategy=mig_strategy, device_id_strategy=strategy)
        host = simulated_host_devices(config, machine.platform)
        generated = generate(machine, config, DriverRoot.of_simulated(config), host)
        generated.spec.check()
        assert parse_spec(generated.spec.to_json()) == generated.spec
        there = {device.name for device in generated.spec.devices}
        for resource in build_catalog(machine, config).resources:
            assert {device_name(device, strategy) for device in resource.devices} <= there
        assert generated.left_out == (
            "the node is simulated: there are no libraries, programs and sockets of a driver to give to containers",
        )


_ROOTS = st.sampled_from(["/run/nvidia/driver", "/driver", "/home/kubernetes/bin/nvidia", "/run/nvidia/driver/"])
_FILES = st.lists(
    st.sampled_from(
        [
            f"/usr/lib64/libcuda.so.{VERSION}",
            f"/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.{VERSION}",
            "/usr/lib64/libnvidia-egl-gbm.so.1.1.0",
            "/usr/bin/nvidia-smi",
            "/usr/share/nvidia/nvoptix.bin",
            "/vulkan/icd.d/nvidia_icd.json",
            f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin",
            "/run/nvidia-persistenced/socket",
            "/usr/lib/xorg/modules/drivers/nvidia_drv.so",
        ]
    ),
    unique=True,
)
_TARGETS = st.sampled_from(["", "/driver-backup/x", "../../../../../etc/shadow", "/etc/shadow", "{outside}/etc/shadow"])


@given(_ROOTS, st.sampled_from(["/", "/run/nvidia/driver", "/driver-backup"]), _FILES, st.data())
def test_hosts_paths_are_below_their_root_and_containers_paths_are_not(
    driver_root: str, dev_root: str, paths: list[str], data: st.DataObject
) -> None:
    with TemporaryDirectory() as directory:
        outside = Tree(Path(directory)).file("/etc/shadow", "outside")
        tree = Tree(Path(directory) / "root").file("/driver-backup/x", mode=0o755).device("/dev/nvidia0")
        for path in paths:
            text = data.draw(_TARGETS).format(outside=outside.path)
            if text:
                tree.link(path, text)
            else:
                tree.file(path, mode=0o755)
        edits = generate(_NODE, Config(), tree.root(driver_root, dev_root), _HOST).spec
        prefix = driver_root.rstrip("/")
        for mount in edits.edits.mounts:
            below = mount.host_path.removeprefix(prefix)
            assert below.startswith("/")
            assert below != mount.host_path
            assert tree.files().resolve(below) == below  # nothing on the way that the host's kernel would follow
            assert "shadow" not in below
            assert not PurePosixPath(mount.container_path).is_relative_to(prefix)
            assert mount.container_path in {*paths, "/driver-backup/x", "/etc/vulkan/icd.d/nvidia_icd.json"}
        for each in (edits.edits, *(device.edits for device in edits.devices)):
            for made in each.device_nodes:
                assert made.path.startswith("/dev/")
                assert made.host_path == ("" if dev_root == "/" else dev_root + made.path)
        assert directory not in edits.to_json()


def _containers(edits: CdiEdits) -> list[str]:
    return [mount.container_path for mount in edits.mounts]
