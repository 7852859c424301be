"""The specification of class `gpu` as the NVIDIA Container Toolkit makes it: `nvidia-ctk cdi generate`.

Where the toolkit is installed it knows the driver at hand best, so it is asked first. It is a program of another
version than ours was written for, and may be absent, old or broken; whatever goes wrong is a `ToolkitFailed`, and the
caller has a generator of its own.

It is told to look at the driver where we see it, and to write our vendor and the host's hook program. Then it is put
right: host paths are those of the host; hooks that are not wanted are gone, also where the toolkit is too old to know
how to leave them out (before 1.18). The numbers and modes of device nodes are left out, since the runtime reads them
from the nodes itself, and those of nvidia-uvm change when its module is loaded again.

It exits with 0 when optional things are missing, so what is checked is that every device has its name.

A GPU in MIG mode it never lists as a whole, though the MIG strategy `none` offers it as one.
"""

import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpustow.config import Config, DeviceIdStrategy
from gpustow.errors import CdiSpecError
from gpustow.hardware.node import Platform
from gpustow.injection.cdi.edits import CdiDeviceNode, CdiEdits, CdiHook
from gpustow.injection.cdi.generator.hooks import hook_program
from gpustow.injection.cdi.hostpaths import HostPaths
from gpustow.injection.cdi.names import ALL, GPU_CLASS, VENDOR, kind
from gpustow.injection.cdi.program import OutputTooLong, Result, run_program
from gpustow.injection.cdi.simplify import with_all
from gpustow.injection.cdi.specification import CdiSpec, parse_spec
from gpustow.injection.discovery import DiscoveryRoots, host_path, is_directory

PROGRAM = "nvidia-ctk"
SECONDS = 30.0
"""How long it may take; on a machine with 16 GPUs it takes one or two."""

_BELOW_DRIVER = ("usr/bin", "usr/local/nvidia/toolkit")
_MODES = {Platform.NVML: "nvml", Platform.WSL: "wsl", Platform.TEGRA: "csv"}
_LISTS = "etc/nvidia-container-runtime/host-files-for-container.d"
_LIST_NAMES = ("devices.csv", "drivers.csv", "l4t.csv")
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "XDG_DATA_DIRS")
_UNKNOWN_FLAG = re.compile(r"flag provided but not defined: -+([a-z.-]+)")
_MAY_GO = ("disable-hook", "feature-flag")
_LONGEST_REASON = 300


class ToolkitFailed(Exception):  # noqa: N818 - says what happened
    """The toolkit gave no specification that can be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The program at `program`, and where it is to look: at the driver and at device nodes below these directories.

    `environ` is what it may know of our environment, `seconds` how long it may take.
    """

    program: Path
    driver: Path
    devices: Path
    environ: Mapping[str, str]
    seconds: float = SECONDS

    @classmethod
    def find(cls, config: Config, root: Path = Path("/"), environ: Mapping[str, str] | None = None) -> "Toolkit | None":
        """The toolkit in our own PATH, else below the driver's root; None if there is none.

        `root` is where our own file system begins.
        """
        environ = environ or {}
        roots = DiscoveryRoots.of(config, root)
        ours = [place for place in environ.get("PATH", "").split(os.pathsep) if place.startswith("/")]
        places = [*ours, *(roots.driver / place for place in _BELOW_DRIVER), root / _BELOW_DRIVER[-1]]
        program = shutil.which(PROGRAM, path=os.pathsep.join(map(str, places)))
        if program is None:
            return None
        passed_on = {key: environ[key] for key in _PASSED_ON if key in environ}
        return cls(Path(program), roots.driver, roots.devices, passed_on)

    def generate(self, config: Config, platform: Platform, names: Collection[str]) -> CdiSpec:
        """The specification, with a device for each of `names` and no others, but for those that `all` is made of.

        Raises ToolkitFailed.
        """
        result = self._run(self._words(config, platform), list(self._optional(config)))
        try:
            spec = parse_spec(result, str(self.program))
        except CdiSpecError as error:
            raise ToolkitFailed(str(error)) from error
        spec = with_all(spec) if ALL in names else _only(spec, names)
        missing = sorted(set(names) - {device.name for device in spec.devices})
        if missing:
            raise ToolkitFailed(f"it leaves out {', '.join(missing)}")
        host = self._host_paths(config)
        return replace(
            spec,
            kind=kind(GPU_CLASS),
            devices=tuple(replace(each, edits=_put_right(each.edits, config, host)) for each in spec.devices),
            edits=_put_right(spec.edits, config, host),
        )

    def _words(self, config: Config, platform: Platform) -> list[str]:
        # The board under csv has no UUID, and the names there are not by strategy anyway.
        by_index = config.device_id_strategy is DeviceIdStrategy.INDEX or platform is Platform.TEGRA
        words = [
            str(self.program),
            "cdi",
            "generate",
            "--format=json",
            f"--mode={_MODES[platform]}",
            f"--device-name-strategy={'index' if by_index else 'uuid'}",
            f"--vendor={VENDOR}",
            f"--class={GPU_CLASS}",
            f"--driver-root={self.driver}",
            # The name that this flag has had from the first; the newer one, nvidia-cdi-hook-path, came with 1.16.
            f"--nvidia-ctk-path={hook_program(config)}",
        ]
        if self.devices != self.driver:
            words.append(f"--dev-root={self.devices}")
        if platform is Platform.TEGRA and is_directory(self.driver / _LISTS):
            words += [f"--csv.file={self.driver / _LISTS / name}" for name in _LIST_NAMES]
        return words

    def _optional(self, config: Config) -> Iterator[str]:
        """Flags that came with 1.18, and can be done without."""
        yield from (f"--disable-hook={name}" for name in config.cdi_disable_hooks)
        yield from (f"--feature-flag={name}" for name in config.cdi_feature_flags)

    def _run(self, words: Sequence[str], optional: list[str]) -> str:
        """What the program prints; flags that it does not know are left out, as far as that is possible."""
        while True:
            result = self._ran([*words, *optional])
            if result.code == 0:
                return result.output
            unknown = _UNKNOWN_FLAG.search(result.errors + result.output)
            kept = [word for word in optional if unknown is None or not word.startswith(f"--{unknown[1]}=")]
            if unknown is None or unknown[1] not in _MAY_GO or kept == optional:
                raise ToolkitFailed(_reason(result))
            optional = kept

    def _ran(self, words: Sequence[str]) -> Result:
        try:
            return run_program(words, {**self.environ, "LC_ALL": "C"}, self.seconds)
        except (TimeoutError, OutputTooLong) as error:
            raise ToolkitFailed(str(error)) from error
        except OSError as error:
            raise ToolkitFailed(f"it cannot be run: {error.strerror}") from error

    def _host_paths(self, config: Config) -> HostPaths:
        return HostPaths.of(
            [
                (str(self.driver), host_path(config.driver_root, "/")),
                (str(self.devices / "dev"), host_path(config.dev_root, "/dev")),
            ]
        )


def _only(spec: CdiSpec, names: Collection[str]) -> CdiSpec:
    """Without GPUs that are left out by the configuration, which the toolkit cannot know, and its own `all` of them."""
    return replace(spec, devices=tuple(device for device in spec.devices if device.name in names))


def _put_right(edits: CdiEdits, config: Config, host: HostPaths) -> CdiEdits:
    hooks = tuple(hook for hook in edits.hooks if not _is_disabled(hook, config.cdi_disable_hooks))
    nodes = tuple(map(_without_numbers, edits.device_nodes))
    return host.edits(replace(edits, hooks=hooks, device_nodes=nodes))


def _is_disabled(hook: CdiHook, disabled: Collection[str]) -> bool:
    return "all" in disabled or any(word in disabled for word in hook.args[:3])


def _without_numbers(node: CdiDeviceNode) -> CdiDeviceNode:
    return replace(node, type="", major=None, minor=None, file_mode=None)


def _reason(result: Result) -> str:
    """The last line that a failed program wrote, which is where it says why."""
    lines = [line.strip() for line in (result.errors or result.output).splitlines() if line.strip()]
    ended = f"killed by signal {-result.code}" if result.code < 0 else f"exit code {result.code}"
    return f"{ended}: {lines[-1][:_LONGEST_REASON]}" if lines else ended
