"""The answer of k8s-device-plugin v0.20.0 to an Allocate, step by step, and what is different here on purpose.

Written from the order in which v0.20.0 builds its response, with every path and name in full, so that it shares nothing
with what it judges. Each `Difference` can be left out; without any, the answer is that of v0.20.0, but for the order of
ids and nodes under `index`, which is random there.
"""

from enum import Enum, auto

from gpustow.config import DeviceIdStrategy
from gpustow.injection import ContainerEdits, DeviceNode, Mount
from gpustow.resources.device import Sharing
from tests.injection.samples import Scene


class Difference(Enum):
    """What we do on purpose in another way."""

    VARIABLE_KEEPS_THE_IDS = auto()
    """With envvar and volume-mounts, the mounts do not overwrite the variable."""
    NODES_ONCE = auto()
    """A device node that several devices of the request have comes once."""
    MPS_WHERE_SHARED = auto()
    """Only resources that are shared by MPS are connected to a daemon, not all as soon as one is."""


OURS = frozenset(Difference)
UPSTREAM: frozenset[Difference] = frozenset()


class Oracle:
    """Builds the response for a scene; `response_id` is that of the annotation."""

    def __init__(self, scene: Scene, response_id: str, differences: frozenset[Difference] = OURS) -> None:
        self._scene = scene
        self._config = scene.config
        self._strategies = [strategy.value for strategy in scene.config.device_list_strategies]
        self._response_id = response_id
        self._differences = differences
        self._envs: dict[str, str] = {}
        self._mounts: list[Mount] = []
        self._nodes: list[DeviceNode] = []
        self._annotations: dict[str, str] = {}
        self._cdi: list[str] = []

    def answer(self) -> ContainerEdits:
        self._add_cdi()
        self._add_mps()
        self._add_modes()
        if any(strategy in {"envvar", "volume-mounts"} for strategy in self._strategies):
            self._add_variable()
            self._add_list_mounts()
            self._add_specs()
        return ContainerEdits(self._envs, tuple(self._mounts), tuple(self._nodes), self._annotations, tuple(self._cdi))

    def _ids(self) -> list[str]:
        ids: list[str] = []
        for id_ in self._scene.ids:
            name = id_.split("::")[0]
            if self._config.device_id_strategy is DeviceIdStrategy.INDEX:
                name = {"GPU-A": "0", "GPU-B": "1", "MIG-A": "0:0", "MIG-B": "0:1", "MIG-C": "1:0"}[name]
            if name not in ids:
                ids.append(name)
        return ids

    def _add_cdi(self) -> None:
        if not {"cdi-annotations", "cdi-cri"} & set(self._strategies):
            return
        names = [f"k8s.device-plugin.nvidia.com/gpu={id_}" for id_ in self._ids()]
        if self._config.imex_channel_ids:
            names.append("k8s.device-plugin.nvidia.com/imex-channel=0")
        for wanted, class_ in (
            (self._config.gdrcopy_enabled, "gdrcopy"),
            (self._config.gds_enabled, "gds"),
            (self._config.mofed_enabled, "mofed"),
        ):
            if wanted:
                names.append(f"k8s.device-plugin.nvidia.com/{class_}=all")
        if "cdi-annotations" in self._strategies:
            self._annotations[f"cdi.k8s.io/nvidia-device-plugin_{self._response_id}"] = ",".join(names)
        if "cdi-cri" in self._strategies:
            self._cdi += names

    def _add_mps(self) -> None:
        active = self._config.mps is not None
        if Difference.MPS_WHERE_SHARED in self._differences:
            active = self._scene.resource.sharing is Sharing.MPS
        if not active:
            return
        self._envs["CUDA_MPS_PIPE_DIRECTORY"] = "/mps/nvidia.com/gpu/pipe"
        self._mounts.append(Mount("/mps/nvidia.com/gpu/pipe", "/run/nvidia/mps/nvidia.com/gpu/pipe"))
        self._mounts.append(Mount("/dev/shm", "/run/nvidia/mps/shm"))  # noqa: S108 - the container's

    def _add_modes(self) -> None:
        if self._config.gdrcopy_enabled:
            self._envs["NVIDIA_GDRCOPY"] = "enabled"
        if self._config.gds_enabled:
            self._envs["NVIDIA_GDS"] = "enabled"
        if self._config.mofed_enabled:
            self._envs["NVIDIA_MOFED"] = "enabled"

    def _add_variable(self) -> None:
        if "envvar" in self._strategies:
            self._envs["NVIDIA_VISIBLE_DEVICES"] = ",".join(self._ids())
            if self._config.imex_channel_ids:
                self._envs["NVIDIA_IMEX_CHANNELS"] = "0"

    def _add_list_mounts(self) -> None:
        if "volume-mounts" not in self._strategies:
            return
        if not ("envvar" in self._strategies and Difference.VARIABLE_KEEPS_THE_IDS in self._differences):
            self._envs["NVIDIA_VISIBLE_DEVICES"] = "/var/run/nvidia-container-devices"
        for id_ in self._ids():
            self._mounts.append(Mount(f"/var/run/nvidia-container-devices/{id_}", "/dev/null"))
        if self._config.imex_channel_ids:
            self._mounts.append(Mount("/var/run/nvidia-container-devices/imex/0", "/dev/null"))

    def _add_specs(self) -> None:
        if not self._config.pass_device_specs:
            return
        paths = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"]
        for id_ in self._scene.ids:
            paths += self._scene.resource.by_id[id_].paths
        if self._config.imex_channel_ids:
            paths.append("/dev/nvidia-caps-imex-channels/channel0")
        if Difference.NODES_ONCE in self._differences:
            paths = list(dict.fromkeys(paths))
        self._nodes += [DeviceNode(path, f"/run/nvidia/driver{path}", "rw") for path in paths]
