"""The table of what a container gets, for every combination of what decides about it: to review, and to compare.

    python -m tests.injection.tables

writes it anew into the folder `tables` beside this file.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gpustow.config import DeviceListStrategy
from gpustow.injection import ContainerEdits, DeviceNode, Mount, container_edits
from tests.injection.samples import DEV_ROOT, MPS_ROOT, RESPONSE_ID, STRATEGIES, Scene, scenes

FILE = Path(__file__).parent / "tables" / "allocate.md"

_LIST = "/var/run/nvidia-container-devices"
_VENDOR = "k8s.device-plugin.nvidia.com/"
_KEY = f"cdi.k8s.io/nvidia-device-plugin_{RESPONSE_ID}"
_CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
_NAMES = {
    "NVIDIA_VISIBLE_DEVICES": "V",
    "NVIDIA_IMEX_CHANNELS": "X",
    "CUDA_MPS_PIPE_DIRECTORY": "M",
}
_PIPES = "/mps/nvidia.com/gpu/pipe"
_SHM = "/dev/shm"  # noqa: S108 - the container's

_INTRO = f"""\
# What a container gets

The answer to Allocate under each of the 15 sets of device list strategies, for one request of each kind:

| request | ids | what they are |
|---|---|---|
| GPU | `GPU-B`, `GPU-A` | GPUs 1 and 0 |
| MIG | `MIG-C`, `MIG-B`, `MIG-A` | MIG devices 1:0, 0:1, 0:0; capabilities 110 and 210, 101 and 201, 100 and 200 |
| replica | `GPU-B::1`, `GPU-A::0`, `GPU-B::0` | replicas of GPUs 1, 0 and 1, time-sliced |
| MPS | `GPU-B::1`, `GPU-A::0`, `GPU-B::0` | the same, shared by MPS with the root `{MPS_ROOT}` |

`imex` has IMEX channel 0, `specs` has passDeviceSpecs, with the dev root `{DEV_ROOT}`. What does not fit a short form
stands there in full.

| short | is |
|---|---|
| `V=`, `X=` | the variables `NVIDIA_VISIBLE_DEVICES` and `NVIDIA_IMEX_CHANNELS` |
| `@` | the path `{_LIST}` |
| `M` | the variable `CUDA_MPS_PIPE_DIRECTORY={_PIPES}` |
| `pipe`, `shm` | read-write mounts: `{MPS_ROOT}/nvidia.com/gpu/pipe` at `{_PIPES}`, `{MPS_ROOT}/shm` at `{_SHM}` |
| `@/GPU-A` | a read-write mount of `/dev/null` at `{_LIST}/GPU-A` |
| `control` | the nodes {", ".join(f"`{path}`" for path in _CONTROL)}, in this order |
| `nvidia0` | the node `/dev/nvidia0`, from `{DEV_ROOT}/dev/nvidia0`, with the permissions `rw`; so are all nodes |
| `cap110`, `channel0` | the nodes `/dev/nvidia-caps/nvidia-cap110` and `/dev/nvidia-caps-imex-channels/channel0` |
| `gpu=GPU-A` | the CDI device `{_VENDOR}gpu=GPU-A` |

An annotation has the key `cdi.k8s.io/nvidia-device-plugin_<UUID>`.
"""

_HEAD = """
| ids | request | imex | specs | variables | mounts | device nodes | annotation | CDI field |
|---|---|---|---|---|---|---|---|---|
"""


def table() -> str:
    """The table, as a Markdown page."""
    return _INTRO + "".join(_section(strategies) for strategies in STRATEGIES)


def _section(strategies: tuple[DeviceListStrategy, ...]) -> str:
    title = " + ".join(strategy.value for strategy in strategies)
    return f"\n## {title}\n{_HEAD}{''.join(map(_row, scenes(strategies)))}"


def _row(scene: Scene) -> str:
    edits = container_edits(scene.resource, scene.ids, scene.config, scene.host, RESPONSE_ID)
    cells = (
        scene.config.device_id_strategy.value,
        scene.kind,
        "imex" if scene.config.imex_channel_ids else "",
        "specs" if scene.config.pass_device_specs else "",
        *short(edits),
    )
    return f"| {' | '.join(cells)} |\n"


def short(edits: ContainerEdits) -> Iterator[str]:
    """The cells for the parts of an answer, in the short forms where they fit."""
    yield _listed(_short_env(name, value) for name, value in sorted(edits.envs.items()))
    yield _listed(map(_short_mount, edits.mounts))
    yield _listed(_short_nodes(edits.device_nodes))
    yield _listed(_short_annotations(edits.annotations))
    yield _listed(map(_short_device, edits.cdi_devices))


def _listed(words: Iterable[str]) -> str:
    return " ".join(words) or "-"


def _short_env(name: str, value: str) -> str:
    if (name, value) == ("CUDA_MPS_PIPE_DIRECTORY", _PIPES):
        return "M"
    return f"{_NAMES.get(name, name)}={'@' if value == _LIST else value}"


def _short_mount(mount: Mount) -> str:
    if mount == Mount(_PIPES, f"{MPS_ROOT}{_PIPES.removeprefix('/mps')}"):
        return "pipe"
    if mount == Mount(_SHM, f"{MPS_ROOT}/shm"):
        return "shm"
    if mount == Mount(mount.container_path, "/dev/null") and mount.container_path.startswith(f"{_LIST}/"):
        return mount.container_path.replace(_LIST, "@")
    return repr(mount)


def _short_nodes(nodes: tuple[DeviceNode, ...]) -> Iterator[str]:
    control = tuple(map(_passed, _CONTROL))
    if nodes[: len(control)] == control:
        yield "control"
        nodes = nodes[len(control) :]
    yield from map(_short_node, nodes)


def _passed(path: str) -> DeviceNode:
    return DeviceNode(path, f"{DEV_ROOT}{path}", "rw")


def _short_node(node: DeviceNode) -> str:
    if node != _passed(node.container_path):
        return repr(node)
    shortened = node.container_path.removeprefix("/dev/")
    return shortened.removeprefix("nvidia-caps/nvidia-").removeprefix("nvidia-caps-imex-channels/")


def _short_annotations(annotations: Mapping[str, str]) -> Iterator[str]:
    for key, value in annotations.items():
        devices = ",".join(map(_short_device, value.split(",")))
        yield devices if key == _KEY else f"{key}={devices}"


def _short_device(name: str) -> str:
    return name.removeprefix(_VENDOR) if name.startswith(_VENDOR) else f"!{name}"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(table(), encoding="utf-8")
