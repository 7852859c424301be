"""Specifications for tests: plain ones by hand, and whatever hypothesis comes up with."""

from hypothesis import strategies as st

from gpustow.injection.cdi.edits import HOOK_NAMES, NODE_TYPES
from gpustow.injection.cdi.names import kind
from gpustow.injection.cdi.specification import CdiDevice, CdiDeviceNode, CdiEdits, CdiHook, CdiMount, CdiSpec

HOOK = CdiHook("createContainer", "/usr/bin/nvidia-cdi-hook", ("nvidia-cdi-hook", "update-ldcache"))


def node_edits(*paths: str) -> CdiEdits:
    return CdiEdits(device_nodes=tuple(CdiDeviceNode(path) for path in paths))


def device(name: str, *paths: str) -> CdiDevice:
    return CdiDevice(name, node_edits(*(paths or (f"/dev/{name}",))))


def spec(*names: str, class_: str = "gpu") -> CdiSpec:
    return CdiSpec(kind(class_), tuple(map(device, names)))


# Mostly what is allowed, and now and then what is not.
_TEXT = st.sampled_from(["", "a", "b c", "=", "1:0", "/", "ü", "\n", "\ud800"]) | st.text(max_size=4)
_PATH = st.sampled_from(["/dev/a", "/dev/b", "/dev/dri/c", ""])
_VARIABLE = st.sampled_from(["A=b", "A=", "LONG=x=y", "=x", "A", ""])
_NUMBER = st.none() | st.sampled_from([0, 1, 438, (1 << 32) - 1, 1 << 32, -1, 1 << 63])
_NAME = st.sampled_from(["GPU-1", "MIG-2", "0", "1:0", "all", "a", "", "a/b", "-a", "a-", "a\n"])
_KIND = st.sampled_from(["vendor.com/gpu", "k8s.io/imex-channel", "ve/cl.ass", "v/gpu", "vendor", "vendor/", "a/b/c"])
_ANNOTATIONS = st.dictionaries(
    st.sampled_from(["a.example.org/b", "B_c", "gpu.nvidia.com/coherent", "/x", "a b", "a" * 64]), _TEXT, max_size=1
)


def _few(items: st.SearchStrategy[object], most: int = 2) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(items, max_size=most).map(tuple)


NODES = st.builds(
    CdiDeviceNode,
    path=_PATH,
    host_path=_PATH,
    type=st.sampled_from([*NODE_TYPES, "x"]),
    major=_NUMBER,
    minor=_NUMBER,
    file_mode=_NUMBER,
    permissions=st.sampled_from(["", "r", "rwm", "none"]),
    uid=_NUMBER,
    gid=_NUMBER,
)
MOUNTS = st.builds(CdiMount, host_path=_PATH, container_path=_PATH, options=_few(_TEXT), type=st.just("") | _TEXT)
HOOKS = st.builds(
    CdiHook,
    hook_name=st.sampled_from([*HOOK_NAMES, "never"]),
    path=st.sampled_from(["/hook", "hook"]),
    args=_few(_TEXT),
    env=_few(_VARIABLE),
    timeout=_NUMBER,
)
EDITS = st.builds(
    CdiEdits,
    env=_few(_VARIABLE),
    device_nodes=_few(NODES),
    mounts=_few(MOUNTS),
    hooks=_few(HOOKS, 1),
    additional_gids=_few(st.sampled_from([0, 44, 1 << 32])),
)
DEVICES = st.builds(CdiDevice, name=_NAME, edits=EDITS, annotations=_ANNOTATIONS)
SPECS = st.builds(CdiSpec, kind=_KIND, devices=_few(DEVICES, 3), edits=EDITS, annotations=_ANNOTATIONS)

_FINE_EDITS = EDITS.filter(lambda edits: not edits.is_empty and not list(edits.problems("")))


def fine_specs(names: st.SearchStrategy[str], class_: str = "gpu") -> st.SearchStrategy[CdiSpec]:
    """Specifications that a runtime takes, with devices of these names."""
    return st.builds(
        lambda devices, edits: CdiSpec(kind(class_), tuple(CdiDevice(*each) for each in devices.items()), edits),
        st.dictionaries(names, _FINE_EDITS, min_size=1, max_size=4),
        _FINE_EDITS,
    ).filter(lambda made: not made.problems)
