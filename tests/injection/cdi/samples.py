"""Specifications for tests: plain ones by hand, and whatever hypothesis comes up with."""

from collections.abc import Iterable, Sequence
from typing import Any

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


def _few(items: st.SearchStrategy[Any], most: int = 2, least: int = 0) -> st.SearchStrategy[Any]:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


class Makers:
    """What hypothesis makes specifications from: only of what is allowed, or also of what is not."""

    def __init__(self, *, wild: bool) -> None:
        def one_of(fine: Iterable[Any], wrong: Iterable[Any]) -> st.SearchStrategy[Any]:
            return st.sampled_from([*fine, *(wrong if wild else ())])

        plain = st.text(st.characters(codec="utf-8"), max_size=4)
        text = plain | one_of(["", "b c", "=", "1:0", "\n"], ["\ud800"])
        path = one_of(["/dev/a", "/dev/b", "/dev/dri/c"], [""])
        variable = one_of(["A=b", "A=", "LONG=x=y"], ["=x", "A", ""])
        number = st.none() | one_of([0, 1, 438, (1 << 32) - 1], [1 << 32, -1, 1 << 63])
        self.nodes = st.builds(
            CdiDeviceNode,
            path=path,
            host_path=st.just("") | path,
            type=one_of(NODE_TYPES, ["x"]),
            major=number,
            minor=number,
            file_mode=number,
            permissions=one_of(["", "r", "rwm"], ["none"]),
            uid=number,
            gid=number,
        )
        self.mounts = st.builds(CdiMount, host_path=path, container_path=path, options=_few(text), type=text)
        self.hooks = st.builds(
            CdiHook,
            hook_name=one_of(HOOK_NAMES, ["never"]),
            path=one_of(["/hook"], ["hook"]),
            args=_few(text),
            env=_few(variable),
            timeout=st.none() | one_of([1, 60], [0]),
        )
        self.edits = st.builds(
            CdiEdits,
            env=_few(variable),
            device_nodes=_few(self.nodes),
            mounts=_few(self.mounts),
            hooks=_few(self.hooks),
            additional_gids=_few(one_of([0, 44], [1 << 32])),
        )
        self.annotations = st.dictionaries(
            one_of(["a.example.org/b", "B_c", "gpu.nvidia.com/coherent"], ["/x", "a b", "a" * 64]), text, max_size=1
        )
        self.kinds = one_of(["vendor.com/gpu", "k8s.io/imex-channel", "ve/cl.ass"], ["v/gpu", "vendor", "a/b/c"])
        self.names = one_of(["GPU-1", "MIG-2", "0", "1:0", "all", "a"], ["", "a/b", "-a", "a-", "a\n"])

    def specs(self) -> st.SearchStrategy[CdiSpec]:
        """Specifications of any kind; where nothing is wild, such as a runtime takes."""
        return self._specs(self.kinds, self.names)

    def ours(self, names: Sequence[str], class_: str = "gpu") -> st.SearchStrategy[CdiSpec]:
        """Files of ours, with some devices of these names."""
        return self._specs(st.just(kind(class_)), st.sampled_from(names))

    def _specs(self, kinds: st.SearchStrategy[str], names: st.SearchStrategy[str]) -> st.SearchStrategy[CdiSpec]:
        devices = st.builds(CdiDevice, names, self.edits.filter(lambda edits: not edits.is_empty), self.annotations)
        listed = st.lists(devices, min_size=1, max_size=4, unique_by=lambda each: each.name).map(tuple)
        return st.builds(CdiSpec, kinds, listed, self.edits, self.annotations)


FINE = Makers(wild=False)
WILD = Makers(wild=True)
