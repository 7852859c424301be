import json
from types import ModuleType
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as device_plugin
from gpustow.kubelet.protocol import podresources_v1_pb2 as pod_resources
from tests.proto.fieldtable import DEVICE_PLUGIN, POD_RESOURCES, Table, Values, delimited, encode, varint

APIS: list[tuple[ModuleType, str, Table]] = [
    (device_plugin, "v1beta1", DEVICE_PLUGIN),
    (pod_resources, "v1", POD_RESOURCES),
]
MESSAGES = [
    pytest.param(getattr(module, name), table, id=f"{package}.{name}")
    for module, package, table in APIS
    for name in table
]
KINDS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT64: "uint64",
}
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=5),
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
}


def values_of(table: Table, message: str) -> st.SearchStrategy[Values]:
    return st.fixed_dictionaries({}, optional={name: values(table, kind) for _, name, kind in table[message]})


def values(table: Table, kind: str) -> st.SearchStrategy[Any]:
    if kind == "map":
        return st.dictionaries(SCALARS["string"], SCALARS["string"], max_size=1)
    if kind.startswith("[]"):
        return st.lists(values(table, kind.removeprefix("[]")), max_size=3)
    kind = kind.removeprefix("?")
    return SCALARS[kind] if kind in SCALARS else values_of(table, kind)


def kind_of(field: Any) -> str:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return "map"
    kind = KINDS[field.type] if field.message_type is None else field.message_type.name
    if field.is_repeated:
        return f"[]{kind}"
    return f"?{kind}" if field.message_type is None and field.has_presence else kind


@pytest.mark.parametrize(("message", "table"), MESSAGES)
def test_each_message_has_the_fields_of_the_table_and_no_others(message: type[Message], table: Table) -> None:
    fields = message.DESCRIPTOR.fields
    assert [(field.number, field.name, kind_of(field)) for field in fields] == list(table[message.DESCRIPTOR.name])


@pytest.mark.parametrize(("module", "package", "table"), APIS)
def test_each_api_has_the_messages_of_the_table_in_its_package(module: ModuleType, package: str, table: Table) -> None:
    assert module.DESCRIPTOR.package == package
    assert set(module.DESCRIPTOR.message_types_by_name) == set(table)


@pytest.mark.parametrize(("message", "table"), MESSAGES)
def test_bytes_built_by_hand_decode_to_their_values_and_the_reverse(message: type[Message], table: Table) -> None:
    @settings(max_examples=25)
    @given(values_of(table, message.DESCRIPTOR.name))
    def check(given_values: Values) -> None:
        wire = encode(table, message.DESCRIPTOR.name, given_values)
        wanted = ParseDict(json.loads(json.dumps(given_values)), message())
        assert message.FromString(wire) == wanted
        assert wanted.SerializeToString(deterministic=True) == wire

    check()


def test_a_registration_is_these_bytes() -> None:
    wire = b"\x0a\x07v1beta1\x12\x06a.sock\x1a\x0envidia.com/gpu\x22\x02\x10\x01"
    request = device_plugin.RegisterRequest(
        version="v1beta1",
        endpoint="a.sock",
        resource_name="nvidia.com/gpu",
        options=device_plugin.DevicePluginOptions(get_preferred_allocation_available=True),
    )
    assert request.SerializeToString() == wire
    assert device_plugin.RegisterRequest.FromString(wire) == request


def test_a_device_on_numa_node_0_still_has_a_topology_on_the_wire() -> None:
    wire = b"\x0a\x13\x0a\x04GPU0\x12\x07Healthy\x1a\x02\x0a\x00"
    response = device_plugin.ListAndWatchResponse.FromString(wire)
    assert response.devices[0].HasField("topology")
    assert [node.ID for node in response.devices[0].topology.nodes] == [0]
    assert response.SerializeToString() == wire


def test_cpu_ids_decode_whether_packed_or_one_by_one() -> None:
    packed = delimited(3, varint(1) + varint(300))
    one_by_one = b"\x18\x01\x18\xac\x02"
    for wire in (packed, one_by_one):
        assert list(pod_resources.ContainerResources.FromString(wire).cpu_ids) == [1, 300]


def test_the_retired_class_name_of_a_dynamic_resource_is_skipped() -> None:
    wire = delimited(1, b"class") + delimited(2, b"claim")
    assert MessageToDict(pod_resources.DynamicResource.FromString(wire)) == {"claimName": "claim"}


def test_an_empty_share_id_differs_from_none() -> None:
    assert pod_resources.ClaimResource.FromString(b"\x2a\x00").HasField("share_id")
    assert not pod_resources.ClaimResource.FromString(b"").HasField("share_id")


def test_fields_of_a_newer_kubelet_are_skipped() -> None:
    wire = b"\x0a\x01p" + delimited(99, b"new") + b"\x12\x01n"
    pod = pod_resources.PodResources.FromString(wire)
    assert (pod.name, pod.namespace) == ("p", "n")
