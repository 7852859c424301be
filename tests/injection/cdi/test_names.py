"""Names that CDI allows, and ours."""

from dataclasses import replace
from fractions import Fraction

import pytest

from gpustow.config import DeviceIdStrategy
from gpustow.errors import CdiSpecError
from gpustow.injection.cdi.names import (
    CLASSES,
    device_name,
    is_annotation_key,
    is_device_name,
    is_kind,
    kind,
    qualified,
)
from gpustow.resources.device import Device

UUID, INDEX = DeviceIdStrategy.UUID, DeviceIdStrategy.INDEX


def device(uuid: str, index: str = "0", replica: int | None = None) -> Device:
    id_ = uuid if replica is None else f"{uuid}::{replica}"
    return Device(id_, uuid, 0, index, Fraction(1), ("/dev/nvidia0",), replica=replica)


@pytest.mark.parametrize(
    ("made", "by_uuid", "by_index"),
    [
        (device("GPU-1", "3"), "GPU-1", "3"),
        (device("MIG-1", "3:1"), "MIG-1", "3:1"),
        (device("GPU-1", "3", replica=7), "GPU-1", "3"),
        (device("all", "all"), "all", "all"),
        (replace(device("tegra", "0"), paths=()), "all", "all"),
    ],
)
def test_a_device_is_named_by_uuid_or_index_and_a_replica_as_what_it_is_of(
    made: Device, by_uuid: str, by_index: str
) -> None:
    assert (device_name(made, UUID), device_name(made, INDEX)) == (by_uuid, by_index)


def test_a_mig_device_of_an_old_driver_has_a_name_by_index_alone() -> None:
    made = device("MIG-GPU-1/7/0", "0:1")
    assert device_name(made, INDEX) == "0:1"
    with pytest.raises(CdiSpecError, match=r"'MIG-GPU-1/7/0' cannot be the name of a device\n.*--device-id-strategy"):
        device_name(made, UUID)


@pytest.mark.parametrize("strategy", DeviceIdStrategy)
def test_a_device_without_nodes_has_no_name(strategy: DeviceIdStrategy) -> None:
    with pytest.raises(CdiSpecError, match=r"GPU-1 has no device nodes"):
        device_name(replace(device("GPU-1"), paths=()), strategy)


def test_a_qualified_name_is_of_our_vendor_as_in_v0_20_0() -> None:
    assert qualified("imex-channel", "0") == "k8s.device-plugin.nvidia.com/imex-channel=0"


@pytest.mark.parametrize("class_", CLASSES)
def test_our_kinds_are_allowed(class_: str) -> None:
    assert is_kind(kind(class_))


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("vendor.com/gpu", True),
        ("ve/cl", True),
        ("Ve_n-d.or/gpu.x", True),
        ("v/gpu", False),  # it crashes libraries up to 1.1.0
        ("vendor.com/g", False),
        ("vendor", False),
        ("vendor/", False),
        ("/gpu", False),
        ("1vendor/gpu", False),
        ("vendor-/gpu", False),
        ("vendor/gpu/x", False),
        ("vendor/gpu\n", False),
        ("vendör/gpu", False),
    ],
)
def test_a_kind_is_vendor_and_class(text: str, allowed: bool) -> None:  # noqa: FBT001 - a parameter of the table
    assert is_kind(text) is allowed


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("0", True),
        ("1:0", True),
        ("GPU-1a", True),
        ("a" * 5000, True),
        ("", False),
        ("a:", False),
        ("-a", False),
        ("a/b", False),
        ("a b", False),
        ("a\n", False),
        ("a=b", False),
    ],
)
def test_a_device_name_has_no_slash(text: str, allowed: bool) -> None:  # noqa: FBT001 - a parameter of the table
    assert is_device_name(text) is allowed


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("gpu.nvidia.com/coherent", True),
        ("A_b.c", True),
        ("a" * 63, True),
        ("a" * 64, False),
        (f"{'a' * 253}/b", True),
        (f"{'a' * 254}/b", False),
        ("/b", False),
        ("a/", False),
        ("a_b/c", False),
        ("a/b/c", False),
        ("", False),
    ],
)
def test_the_key_of_an_annotation_is_as_in_kubernetes(text: str, allowed: bool) -> None:  # noqa: FBT001 - as above
    assert is_annotation_key(text) is allowed
