"""A plugin's answer to Allocate for one container, as a value, and how several answers become one container's edits.

Kubelet keeps the answer for the life of the pod and gives the runtime the merge over all resources of the container.
The first value of an environment key, mount target, device path or annotation stays, later ones are dropped with a
log line; which resource comes first is arbitrary. CDI names are made unique, not checked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpustow.injection import DeviceNode, Mount
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire


@dataclass(frozen=True, slots=True)
class ContainerAnswer:
    """What is put into a container, by one resource or by all of them merged."""

    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()

    @classmethod
    def of_message(cls, message: wire.ContainerAllocateResponse) -> "ContainerAnswer":
        """The value of a message from the wire."""
        return cls(
            envs=dict(message.envs),
            mounts=tuple(Mount(m.container_path, m.host_path, m.read_only) for m in message.mounts),
            devices=tuple(DeviceNode(d.container_path, d.host_path, d.permissions) for d in message.devices),
            annotations=dict(message.annotations),
            cdi_devices=tuple(device.name for device in message.cdi_devices),
        )

    def to_message(self) -> wire.ContainerAllocateResponse:
        """The message that says the same."""
        return wire.ContainerAllocateResponse(
            envs=self.envs,
            mounts=[
                wire.Mount(container_path=m.container_path, host_path=m.host_path, read_only=m.read_only)
                for m in self.mounts
            ],
            devices=[
                wire.DeviceSpec(container_path=d.container_path, host_path=d.host_path, permissions=d.permissions)
                for d in self.devices
            ],
            annotations=self.annotations,
            cdi_devices=[wire.CDIDevice(name=name) for name in self.cdi_devices],
        )


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two resources of one container that disagree about `key`: `kept` is what the container gets.

    Of mounts and device nodes only the host paths are compared.
    """

    kind: str
    key: str
    kept: str
    dropped: str


def merge(answers: Iterable[ContainerAnswer]) -> tuple[ContainerAnswer, tuple[Conflict, ...]]:
    """The edits of a container from the answers for its resources, in the order in which kubelet looks at them."""
    merged = _Merge()
    for answer in answers:
        merged.add(answer)
    return merged.result(), tuple(merged.conflicts)


class _Merge:
    """What has been merged so far."""

    def __init__(self) -> None:
        self.conflicts: list[Conflict] = []
        self._envs: dict[str, str] = {}
        self._mounts: dict[str, Mount] = {}
        self._devices: dict[str, DeviceNode] = {}
        self._annotations: dict[str, str] = {}
        self._cdi_devices: dict[str, None] = {}

    def add(self, answer: ContainerAnswer) -> None:
        for key, value in answer.envs.items():
            self._check("env", key, self._envs.setdefault(key, value), value)
        for mount in answer.mounts:
            kept = self._mounts.setdefault(mount.container_path, mount)
            self._check("mount", mount.container_path, kept.host_path, mount.host_path)
        for device in answer.devices:
            known = self._devices.setdefault(device.container_path, device)
            self._check("device", device.container_path, known.host_path, device.host_path)
        for key, value in answer.annotations.items():
            self._check("annotation", key, self._annotations.setdefault(key, value), value)
        self._cdi_devices.update(dict.fromkeys(answer.cdi_devices))

    def _check(self, kind: str, key: str, kept: str, wanted: str) -> None:
        if kept != wanted:
            self.conflicts.append(Conflict(kind, key, kept, wanted))

    def result(self) -> ContainerAnswer:
        mounts, devices = tuple(self._mounts.values()), tuple(self._devices.values())
        return ContainerAnswer(self._envs, mounts, devices, self._annotations, tuple(self._cdi_devices))
