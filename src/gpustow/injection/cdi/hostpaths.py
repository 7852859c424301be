"""From the paths under which we see the host's files to those under which the host has them.

The driver's root is mounted in our container at a path of its own; the runtime, which reads the specifications, lives
on the host. Paths in the container that gets the devices are another matter and stay as they are.

A rule is about whole parts of a path: one for `/driver` says nothing of `/driver-backup`. Of several rules that fit,
the longest holds, and only that one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpustow.injection.cdi.edits import CdiDeviceNode, CdiEdits, CdiMount


@dataclass(frozen=True, slots=True)
class HostPaths:
    """Rules, each a directory as we see it and as the host has it."""

    rules: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, rules: Iterable[tuple[str, str]]) -> "HostPaths":
        """The rules, with the root written as the empty text, longest first."""
        stripped = ((seen.rstrip("/"), host.rstrip("/")) for seen, host in rules)
        return cls(tuple(sorted(stripped, key=lambda rule: -len(rule[0]))))

    def path(self, path: str) -> str:
        """The host's path of what we see at `path`."""
        for seen, host in self.rules:
            if path == seen or path.startswith(f"{seen}/"):
                return (host + path.removeprefix(seen)).rstrip("/") or "/"
        return path

    def edits(self, edits: CdiEdits) -> CdiEdits:
        """The same edits with the host's paths of device nodes and mounts; hooks are given by the host's paths."""
        return replace(
            edits,
            device_nodes=tuple(map(self._node, edits.device_nodes)),
            mounts=tuple(map(self._mount, edits.mounts)),
        )

    def _node(self, node: CdiDeviceNode) -> CdiDeviceNode:
        host_path = self.path(node.host_path or node.path)
        return replace(node, host_path="" if host_path == node.path else host_path)

    def _mount(self, mount: CdiMount) -> CdiMount:
        return replace(mount, host_path=self.path(mount.host_path))
