"""Kubelet's checkpoint: what survives its restart.

A JSON file in the plugin directory with kubelet's name and shape: per pod uid, container and resource the device ids by
NUMA node and the plugin's answer as serialised message, and per resource the healthy ids. It is written anew with every
list and every allocation. A file that cannot be read counts for nothing, and kubelet goes on without.

Limit: the checksum is a CRC of the data. Kubelet's is a hash over a Go value, so it would not load this file.
"""

import base64
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.simulation.kubelet.answer import ContainerAnswer
from gpustow.simulation.kubelet.holdings import Entry, Held, Holdings
from gpustow.simulation.kubelet.state import DeviceState

FILE = "kubelet_internal_checkpoint"


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a checkpoint says: who holds what, and which resources were registered."""

    holdings: Holdings = field(default_factory=Holdings)
    resources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    """What was held when a line of the file was made, and the line."""

    held: Held
    text: str


@dataclass(frozen=True, slots=True)
class _Registered:
    """The set of healthy devices that a part of the file was made from, which is never changed, and that part."""

    ids: set[str]
    text: str


class Checkpoint:
    """The file in a directory. What has not changed since the last save is not made again."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE
        self._lines: dict[tuple[str, str, str], _Line] = {}
        self._registered: dict[str, _Registered] = {}

    def exists(self) -> bool:
        """Whether kubelet has ever run here."""
        return self.path.exists()

    def save(self, state: DeviceState) -> None:
        """Replaces the file in one step."""
        self._lines = dict(map(self._line, state.holdings.entries()))
        entries = ",".join(line.text for line in self._lines.values())
        self._registered = dict(map(self._registered_line, state.table.healthy.items()))
        registered = ",".join(line.text for line in self._registered.values())
        data = f'{{"PodDeviceEntries":[{entries}],"RegisteredDevices":{{{registered}}}}}'
        new = self.path.with_name(f".{self.path.name}")
        new.write_text(f"{_START}{data}{_MIDDLE}{_checksum(data)}{_END}", encoding="utf-8")
        new.replace(self.path)

    def _line(self, entry: Entry) -> tuple[tuple[str, str, str], _Line]:
        key = (entry.pod_uid, entry.container, entry.resource)
        known = self._lines.get(key)
        return key, known if known is not None and known.held is entry.held else _Line(entry.held, _encode(entry))

    def _registered_line(self, item: tuple[str, set[str]]) -> tuple[str, _Registered]:
        resource, ids = item
        known = self._registered.get(resource)
        if known is not None and known.ids is ids:
            return resource, known
        return resource, _Registered(ids, f"{_json(resource)}:{_json(sorted(ids))}")

    def load(self) -> Remembered:
        """What the file says; nothing if it is missing or damaged."""
        try:
            text = self.path.read_text(encoding="utf-8")
            data, _, checksum = text.removeprefix(_START).removesuffix(_END).rpartition(_MIDDLE)
            return _decode(json.loads(data)) if int(checksum) == _checksum(data) else Remembered()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, DecodeError):
            return Remembered()


_START, _MIDDLE, _END = '{"Data":', ',"Checksum":', "}"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _checksum(data: str) -> int:
    return zlib.crc32(data.encode())


def _encode(entry: Entry) -> str:
    return _json(
        {
            "PodUID": entry.pod_uid,
            "ContainerName": entry.container,
            "ResourceName": entry.resource,
            "DeviceIDs": {str(node): ids for node, ids in entry.held.by_node.items()},
            "AllocResp": base64.b64encode(entry.held.answer.to_message().SerializeToString()).decode(),
        }
    )


def _decode(data: Any) -> Remembered:
    entries = [
        Entry(
            entry["PodUID"],
            entry["ContainerName"],
            entry["ResourceName"],
            Held(
                {int(node): tuple(ids) for node, ids in entry["DeviceIDs"].items()},
                ContainerAnswer.of_message(
                    wire.ContainerAllocateResponse.FromString(base64.b64decode(entry["AllocResp"], validate=True))
                ),
            ),
        )
        for entry in data["PodDeviceEntries"]
    ]
    return Remembered(Holdings(entries), tuple(data["RegisteredDevices"]))
