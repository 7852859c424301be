import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.simulation.kubelet.resourcename import is_extended_resource_name

LONGEST = "a" * 61 + "." + "b" * 61 + "." + "c" * 61 + "." + "d" * 58


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/gpu",
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/gpu.shared",
        "a/b",
        "0.x/0",
        "example.com/A_b.C-d",
        "example.com/" + "n" * 63,
        f"{LONGEST}/gpu",
    ],
)
def test_kubelet_registers(name: str) -> None:
    assert is_extended_resource_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gpu",
        "/gpu",
        "nvidia.com/",
        "kubernetes.io/gpu",
        "x.kubernetes.io/gpu",
        "requests.nvidia.com/gpu",
        "nvidia.com/mig-1g.5gb+me",
        "nvidia.com/a b",
        "nvidia.com/a/b",
        "Nvidia.com/gpu",
        "nvidia..com/gpu",
        "-nvidia.com/gpu",
        "nvidia.com-/gpu",
        "nvidia.com/-gpu",
        "nvidia.com/gpu.",
        "nvidia.com/gpu\n",
        "example.com/" + "n" * 64,
        f"{LONGEST}x/gpu",
    ],
)
def test_kubelet_refuses(name: str) -> None:
    assert not is_extended_resource_name(name)


@given(st.text("aZ0-._/+ ", max_size=12))
def test_what_is_registered_has_one_slash_and_ends_in_letters_or_digits(name: str) -> None:
    if is_extended_resource_name(name):
        domain, local = name.split("/")
        assert domain == domain.lower()
        assert re.fullmatch(r"[^+ ]+", name)
        assert (local[0] + local[-1]).isalnum()
