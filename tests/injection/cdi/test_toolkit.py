"""The specification as nvidia-ctk makes it, by a script in its place that does what a test says."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpustow.config import Config, DeviceIdStrategy
from gpustow.hardware.node import Platform
from gpustow.injection.cdi.specification import CdiDevice, CdiDeviceNode, CdiEdits, CdiHook, CdiMount, CdiSpec
from gpustow.injection.cdi.toolkit import Toolkit, ToolkitFailed

CONFIG = Config(driver_root="/run/nvidia/driver", dev_root="/", nvidia_cdi_hook_path="/usr/bin/nvidia-cdi-hook")
HOOK = "/usr/bin/nvidia-cdi-hook"


def hook(name: str) -> CdiHook:
    return CdiHook("createContainer", HOOK, ("nvidia-cdi-hook", name), ("NVIDIA_CTK_DEBUG=false",))


class FakeToolkit:
    """A machine with nvidia-ctk in its PATH, which prints `made`; `behaviour` are lines of shell before that."""

    def __init__(self, root: Path, *, has_dev: bool = False) -> None:
        self.root = root
        self.driver = root / "driver-root"
        self.driver.mkdir()
        if has_dev:
            (self.driver / "dev").mkdir()
        self.output = root / "output"
        self.words_file = root / "words"
        self.program = root / "bin" / "nvidia-ctk"
        self.program.parent.mkdir()
        self.behave("")

    def behave(self, behaviour: str) -> None:
        self.program.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" -- >> {self.words_file}\n{behaviour}\n/bin/cat {self.output}\n',
            encoding="utf-8",
        )
        self.program.chmod(0o755)

    def generate(
        self,
        config: Config = CONFIG,
        names: Sequence[str] = ("GPU-1",),
        platform: Platform = Platform.NVML,
        made: CdiSpec | str | None = None,
        seconds: float = 60,
    ) -> CdiSpec:
        made = self.made() if made is None else made
        self.output.write_text(made if isinstance(made, str) else made.to_json(), encoding="utf-8")
        toolkit = Toolkit.find(config, self.root, {"PATH": str(self.program.parent)})
        assert toolkit is not None
        return replace(toolkit, seconds=seconds).generate(config, platform, names)

    def made(self, *names: str) -> CdiSpec:
        """What a toolkit of today prints, with paths as it sees them."""
        devices = self.root if not (self.driver / "dev").is_dir() else self.driver
        node = CdiDeviceNode("/dev/nvidia0", f"{devices}/dev/nvidia0", "", 195, 0, 438, "rwm", gid=44)
        control = CdiDeviceNode("/dev/nvidia-uvm", f"{devices}/dev/nvidia-uvm", "", 508, 0, 438, "rwm")
        return CdiSpec(
            "k8s.device-plugin.nvidia.com/gpu",
            tuple(CdiDevice(name, CdiEdits(device_nodes=(node,))) for name in names or ("GPU-1", "all")),
            CdiEdits(
                env=("NVIDIA_VISIBLE_DEVICES=void",),
                device_nodes=(control,),
                mounts=(CdiMount(f"{self.driver}/lib/libcuda.so.1", "/lib/libcuda.so.1", ("ro",)),),
                hooks=(hook("create-symlinks"), hook("update-ldcache")),
            ),
        )

    def runs(self) -> list[list[str]]:
        """The words of each run."""
        runs = self.words_file.read_text(encoding="utf-8").split("\n--\n")
        return [run.split("\n") for run in runs if run]


def test_the_driver_is_looked_for_where_we_see_it_and_named_as_the_host_does(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    assert fake.generate() == CdiSpec(
        "k8s.device-plugin.nvidia.com/gpu",
        (CdiDevice("GPU-1", CdiEdits(device_nodes=(CdiDeviceNode("/dev/nvidia0", permissions="rwm", gid=44),))),),
        CdiEdits(
            env=("NVIDIA_VISIBLE_DEVICES=void",),
            device_nodes=(CdiDeviceNode("/dev/nvidia-uvm", permissions="rwm"),),
            mounts=(CdiMount("/run/nvidia/driver/lib/libcuda.so.1", "/lib/libcuda.so.1", ("ro",)),),
            hooks=(hook("create-symlinks"), hook("update-ldcache")),
        ),
    )
    assert fake.runs() == [
        [
            "cdi",
            "generate",
            "--format=json",
            "--mode=nvml",
            "--device-name-strategy=uuid",
            "--vendor=k8s.device-plugin.nvidia.com",
            "--class=gpu",
            f"--driver-root={fake.driver}",
            "--nvidia-ctk-path=/usr/bin/nvidia-cdi-hook",
            f"--dev-root={fake.root}",
        ]
    ]


def test_device_nodes_of_the_drivers_root_are_found_there_and_named_by_the_dev_root(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path, has_dev=True)
    made = fake.generate(replace(CONFIG, dev_root="/run/nvidia/driver"))
    (node,) = made.devices[0].edits.device_nodes
    assert (node.path, node.host_path) == ("/dev/nvidia0", "/run/nvidia/driver/dev/nvidia0")
    assert not [word for word in fake.runs()[0] if word.startswith("--dev-root")]


@pytest.mark.parametrize("root", ["run/nvidia/driver", "/run//nvidia/driver/", "/run/x/../nvidia/driver"])
def test_roots_of_the_host_may_be_written_in_any_way(root: str, tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path, has_dev=True)
    plain = replace(CONFIG, driver_root="/run/nvidia/driver", dev_root="/run/nvidia/driver")
    assert fake.generate(replace(CONFIG, driver_root=root, dev_root=root)) == fake.generate(plain)


def test_the_hooks_program_is_always_named_by_its_path(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    fake.generate(replace(CONFIG, nvidia_cdi_hook_path="nvidia-ctk"))
    assert "--nvidia-ctk-path=/usr/bin/nvidia-ctk" in fake.runs()[0]


def test_flags_that_are_newer_are_given_where_they_are_needed(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    fake.generate(
        replace(
            CONFIG,
            device_id_strategy=DeviceIdStrategy.INDEX,
            cdi_disable_hooks=("chmod", "create-symlinks"),
            cdi_feature_flags=("disable-nvsandboxutils",),
        ),
        names=["0"],
        made=fake.made("0"),
    )
    (words,) = fake.runs()
    assert "--device-name-strategy=index" in words
    assert words[-3:] == [
        "--disable-hook=chmod",
        "--disable-hook=create-symlinks",
        "--feature-flag=disable-nvsandboxutils",
    ]


OLD = """case "$*" in
*--feature-flag*) echo "Incorrect Usage: flag provided but not defined: -feature-flag" >&2; exit 1;;
*--disable-hook*) echo "Incorrect Usage: flag provided but not defined: -disable-hook"; exit 1;;
esac"""


def test_an_older_toolkit_is_asked_without_the_flags_that_it_does_not_know(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    fake.behave(OLD)
    config = replace(CONFIG, cdi_disable_hooks=("update-ldcache", "chmod"), cdi_feature_flags=("x", "y"))
    assert fake.generate(config).edits.hooks == (hook("create-symlinks"),), "left out by us"
    assert [len(run) for run in fake.runs()] == [14, 12, 10]


def test_all_hooks_can_be_left_out(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    assert fake.generate(replace(CONFIG, cdi_disable_hooks=("all",))).edits.hooks == ()


def test_a_hook_of_nvidia_ctk_itself_is_known_by_its_third_word(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    made = fake.made()
    older = replace(
        hook("x"), path="/usr/bin/nvidia-ctk", args=("nvidia-ctk", "hook", "update-ldcache", "--folder", "/chmod")
    )
    made = replace(made, edits=replace(made.edits, hooks=(older,)))
    assert fake.generate(replace(CONFIG, cdi_disable_hooks=("update-ldcache",)), made=made).edits.hooks == ()
    assert fake.generate(replace(CONFIG, cdi_disable_hooks=("chmod",)), made=made).edits.hooks == (older,)


def test_under_wsl_the_one_device_is_all(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    made = fake.generate(names=["all"], platform=Platform.WSL, made=fake.made("all"))
    assert [device.name for device in made.devices] == ["all"]
    assert "--mode=wsl" in fake.runs()[0]


@pytest.mark.parametrize("has_lists", [False, True])
def test_a_tegra_board_is_named_by_index_whatever_the_strategy_and_read_from_its_lists(
    has_lists: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
) -> None:
    fake = FakeToolkit(tmp_path)
    lists = fake.driver / "etc/nvidia-container-runtime/host-files-for-container.d"
    if has_lists:
        lists.mkdir(parents=True)
    made = fake.generate(names=["all"], platform=Platform.TEGRA, made=fake.made("0"))
    assert [device.name for device in made.devices] == ["0", "all"]
    (words,) = fake.runs()
    assert {"--mode=csv", "--device-name-strategy=index"} <= set(words)
    named = [f"--csv.file={lists}/{name}.csv" for name in ("devices", "drivers", "l4t")]
    assert [word for word in words if word.startswith("--csv.file")] == (named if has_lists else [])


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("echo one >&2; echo 'failed to do it' >&2; exit 1", "exit code 1: failed to do it"),
        ("echo 'level=error' >&2; echo >&2; exit 5", "exit code 5: level=error"),
        ("exit 2", "exit code 2"),
        ("kill -9 $$", "killed by signal 9"),
        ("echo 'flag provided but not defined: -vendor' >&2; exit 1", "exit code 1: flag provided but not defined"),
        ("echo 'flag provided but not defined: -disable-hook' >&2; exit 1", "exit code 1: flag provided but not"),
        ("echo oh", "is not JSON"),
        ("exit 0", "is not JSON"),
        ("/bin/sleep 600", "it has not ended after 1 s"),
        ("exec /usr/bin/yes", "it has said more than"),
    ],
)
def test_whatever_goes_wrong_is_told_as_a_failure_of_the_toolkit(behaviour: str, reason: str, tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    fake.behave(behaviour)
    with pytest.raises(ToolkitFailed, match=reason):
        fake.generate(seconds=1 if "sleep" in behaviour else 60)


def test_a_program_that_cannot_be_run_is_a_failure(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    fake.program.write_bytes(b"\x7fELF")
    with pytest.raises(ToolkitFailed, match="it cannot be run"):
        fake.generate()


def test_a_long_complaint_is_cut(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    fake.behave(f"echo {'x' * 5000} >&2; exit 1")
    with pytest.raises(ToolkitFailed) as failure:
        fake.generate()
    assert len(str(failure.value)) < 400


def test_a_device_that_is_left_out_is_a_failure(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    with pytest.raises(ToolkitFailed, match=r"it leaves out GPU-2, MIG-3$"):
        fake.generate(names=["GPU-1", "MIG-3", "GPU-2"])


def test_no_devices_are_a_failure(tmp_path: Path) -> None:
    fake = FakeToolkit(tmp_path)
    empty = json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": []})
    with pytest.raises(ToolkitFailed, match="devices: should be one or more"):
        fake.generate(names=["all"], platform=Platform.WSL, made=empty)


def test_the_program_sees_little_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_CTK_CDI_GENERATE_CLASS", "other")
    fake = FakeToolkit(tmp_path)
    seen = tmp_path / "seen"
    fake.behave(f"/usr/bin/env > {seen}")
    fake.generate()
    variables = {line.partition("=")[0] for line in seen.read_text(encoding="utf-8").splitlines()}
    assert variables - {"_", "PWD", "SHLVL", "OLDPWD"} == {"PATH", "LC_ALL"}


@pytest.mark.parametrize(
    "place",
    [
        "driver-root/usr/bin",
        "driver-root/usr/local/nvidia/toolkit",
        "usr/local/nvidia/toolkit",
    ],
)
def test_the_toolkit_is_found_below_the_drivers_root_and_where_the_operator_installs_it(
    place: str, tmp_path: Path
) -> None:
    (tmp_path / "driver-root").mkdir()
    assert Toolkit.find(CONFIG, tmp_path, {"PATH": ""}) is None
    program = tmp_path / place / "nvidia-ctk"
    program.parent.mkdir(parents=True)
    program.write_text("", encoding="utf-8")
    assert Toolkit.find(CONFIG, tmp_path) is None, "it can not be run"
    program.chmod(0o755)
    found = Toolkit.find(CONFIG, tmp_path)
    assert found is not None
    assert found.program == program
    assert (found.driver, found.devices) == (tmp_path / "driver-root", tmp_path)


def test_where_no_drivers_root_is_mounted_the_driver_is_in_our_own(tmp_path: Path) -> None:
    program = tmp_path / "usr/bin/nvidia-ctk"
    program.parent.mkdir(parents=True)
    program.write_text("", encoding="utf-8")
    program.chmod(0o755)
    found = Toolkit.find(CONFIG, tmp_path)
    assert found is not None
    assert (found.driver, found.devices) == (tmp_path, tmp_path)


@pytest.mark.parametrize("path", ["", ".", ":", "relative"])
def test_a_program_in_the_working_directory_is_not_the_toolkit(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (tmp_path, tmp_path / "relative"):
        place.mkdir(exist_ok=True)
        (place / "nvidia-ctk").write_text("", encoding="utf-8")
        (place / "nvidia-ctk").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert Toolkit.find(CONFIG, tmp_path / "root", {"PATH": path}) is None
    assert Toolkit.find(CONFIG, tmp_path / "root", {"PATH": f"{path}:{tmp_path}"}) is not None
