"""The field tables of the protocols, and a hand-made encoder for them: what must be on the wire, said a second time.

A type is a scalar (`string`, `bool`, `int32`, `int64`, `uint64`) or a message of the same table; `[]` before it is
repeated, `?` is optional with presence, `map` is a map from string to string.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Field: TypeAlias = tuple[int, str, str]
Table: TypeAlias = Mapping[str, Sequence[Field]]
Values: TypeAlias = dict[str, Any]

DEVICE_PLUGIN: Table = {
    "Empty": [],
    "DevicePluginOptions": [(1, "pre_start_required", "bool"), (2, "get_preferred_allocation_available", "bool")],
    "RegisterRequest": [
        (1, "version", "string"),
        (2, "endpoint", "string"),
        (3, "resource_name", "string"),
        (4, "options", "DevicePluginOptions"),
    ],
    "ListAndWatchResponse": [(1, "devices", "[]Device")],
    "Device": [(1, "ID", "string"), (2, "health", "string"), (3, "topology", "TopologyInfo")],
    "TopologyInfo": [(1, "nodes", "[]NUMANode")],
    "NUMANode": [(1, "ID", "int64")],
    "PreferredAllocationRequest": [(1, "container_requests", "[]ContainerPreferredAllocationRequest")],
    "ContainerPreferredAllocationRequest": [
        (1, "available_deviceIDs", "[]string"),
        (2, "must_include_deviceIDs", "[]string"),
        (3, "allocation_size", "int32"),
    ],
    "PreferredAllocationResponse": [(1, "container_responses", "[]ContainerPreferredAllocationResponse")],
    "ContainerPreferredAllocationResponse": [(1, "deviceIDs", "[]string")],
    "AllocateRequest": [(1, "container_requests", "[]ContainerAllocateRequest")],
    "ContainerAllocateRequest": [(1, "devices_ids", "[]string")],
    "AllocateResponse": [(1, "container_responses", "[]ContainerAllocateResponse")],
    "ContainerAllocateResponse": [
        (1, "envs", "map"),
        (2, "mounts", "[]Mount"),
        (3, "devices", "[]DeviceSpec"),
        (4, "annotations", "map"),
        (5, "cdi_devices", "[]CDIDevice"),
    ],
    "Mount": [(1, "container_path", "string"), (2, "host_path", "string"), (3, "read_only", "bool")],
    "DeviceSpec": [(1, "container_path", "string"), (2, "host_path", "string"), (3, "permissions", "string")],
    "CDIDevice": [(1, "name", "string")],
    "PreStartContainerRequest": [(1, "devices_ids", "[]string")],
    "PreStartContainerResponse": [],
}

POD_RESOURCES: Table = {
    "ListPodResourcesRequest": [],
    "ListPodResourcesResponse": [(1, "pod_resources", "[]PodResources")],
    "AllocatableResourcesRequest": [],
    "AllocatableResourcesResponse": [
        (1, "devices", "[]ContainerDevices"),
        (2, "cpu_ids", "[]int64"),
        (3, "memory", "[]ContainerMemory"),
    ],
    "GetPodResourcesRequest": [(1, "pod_name", "string"), (2, "pod_namespace", "string")],
    "GetPodResourcesResponse": [(1, "pod_resources", "PodResources")],
    "PodResources": [
        (1, "name", "string"),
        (2, "namespace", "string"),
        (3, "containers", "[]ContainerResources"),
        (4, "cpu_ids", "[]int64"),
        (5, "memory", "[]ContainerMemory"),
    ],
    "ContainerResources": [
        (1, "name", "string"),
        (2, "devices", "[]ContainerDevices"),
        (3, "cpu_ids", "[]int64"),
        (4, "memory", "[]ContainerMemory"),
        (5, "dynamic_resources", "[]DynamicResource"),
    ],
    "ContainerDevices": [
        (1, "resource_name", "string"),
        (2, "device_ids", "[]string"),
        (3, "topology", "TopologyInfo"),
    ],
    "ContainerMemory": [(1, "memory_type", "string"), (2, "size", "uint64"), (3, "topology", "TopologyInfo")],
    "TopologyInfo": [(1, "nodes", "[]NUMANode")],
    "NUMANode": [(1, "ID", "int64")],
    "DynamicResource": [
        (2, "claim_name", "string"),
        (3, "claim_namespace", "string"),
        (4, "claim_resources", "[]ClaimResource"),
    ],
    "ClaimResource": [
        (1, "cdi_devices", "[]CDIDevice"),
        (2, "driver_name", "string"),
        (3, "pool_name", "string"),
        (4, "device_name", "string"),
        (5, "share_id", "?string"),
    ],
    "CDIDevice": [(1, "name", "string")],
}

_VARINT = 0
_BYTES = 2
_SCALARS = {"bool", "int32", "int64", "uint64"}


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as 64 bits."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def delimited(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | _BYTES) + varint(len(payload)) + payload


def encode(table: Table, message: str, values: Values) -> bytes:
    """The bytes of a message with these values, fields in ascending order; what is missing or zero is left out."""
    return b"".join(_field(table, number, kind, values.get(name)) for number, name, kind in table[message])


def _field(table: Table, number: int, kind: str, value: Any) -> bytes:
    if value is None:
        return b""
    if kind == "map":
        pairs = [delimited(1, key.encode()) + delimited(2, text.encode()) for key, text in sorted(value.items())]
        return b"".join(delimited(number, pair) for pair in pairs)
    if kind.startswith("[]"):
        return _repeated(table, number, kind.removeprefix("[]"), value)
    if kind in _SCALARS:
        return varint(number << 3 | _VARINT) + varint(int(value)) if value else b""
    if kind == "string" and not value:  # only a field with presence is there when it is empty
        return b""
    return delimited(number, _payload(table, kind.removeprefix("?"), value))


def _repeated(table: Table, number: int, kind: str, values: Sequence[Any]) -> bytes:
    if kind in _SCALARS:  # numbers are packed into one field
        return delimited(number, b"".join(varint(value) for value in values)) if values else b""
    return b"".join(delimited(number, _payload(table, kind, value)) for value in values)


def _payload(table: Table, kind: str, value: Any) -> bytes:
    return bytes(value.encode()) if kind == "string" else encode(table, kind, value)
