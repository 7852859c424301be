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


class Checkpoint:
    """The file in a directory."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE

    def exists(self) -> bool:
        """Whether kubelet has ever run here."""
        return self.path.exists()

    def save(self, state: DeviceState) -> None:
        """Replaces the file in one step."""
        data = _encode(state)
        text = json.dumps({"Data": data, "Checksum": _checksum(data)}, separators=(",", ":"))
        new = self.path.with_name(f".{self.path.name}")
        new.write_text(text, encoding="utf-8")
        new.replace(self.path)

    def load(self) -> Remembered:
        """What the file says; nothing if it is missing or damaged."""
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
            data = document["Data"]
            if document["Checksum"] != _checksum(data):
                return Remembered()
            return _decode(data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, DecodeError):
            return Remembered()


def _checksum(data: Any) -> int:
    return zlib.crc32(json.dumps(data, sort_keys=True, separators=(",", ":")).encode())


def _encode(state: DeviceState) -> dict[str, Any]:
    return {
        "PodDeviceEntries": [
            {
                "PodUID": entry.pod_uid,
                "ContainerName": entry.container,
                "ResourceName": entry.resource,
                "DeviceIDs": {str(node): list(ids) for node, ids in entry.held.by_node.items()},
                "AllocResp": base64.b64encode(entry.held.answer.to_message().SerializeToString()).decode(),
            }
            for entry in state.holdings.entries()
        ],
        "RegisteredDevices": {resource: sorted(ids) for resource, ids in state.table.healthy.items()},
    }


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
