"""Names of resources: what kubelet takes, what we let through, and that the second is never more than the first."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config.resourcename import PREFIX, resource_name
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.kubelet.protocol.services import RegistrationCalls, unix_channel
from gpustow.simulation.kubelet import EmbeddedKubelet
from gpustow.simulation.kubelet.resourcename import is_extended_resource_name
from tests.contract.scene import embedded
from tests.plugin.daemon import Daemon
from tests.plugin.samples import gpu, node

TAKEN = (
    "nvidia.com/gpu",
    "nvidia.com/mig-1g.5gb.me",
    "nvidia.com/" + "a" * 63,
    "nvidia.com/A_b",
    f"{'.'.join(['d' * 48] * 5)}/gpu",  # 244 characters before the slash
    "x.io/0",
)
REFUSED = (
    "gpu",
    "/gpu",
    "nvidia.com/",
    "nvidia.com/mig-1g.5gb+me",
    "nvidia.com/" + "a" * 64,
    "nvidia.com/a b",
    "nvidia.com/-a",
    "nvidia.com/a.",
    "nvidia.com/a/b",
    "NVIDIA.com/gpu",
    "kubernetes.io/gpu",
    "x.kubernetes.io/gpu",
    "requests.nvidia.com/gpu",
    f"{'.'.join(['d' * 48] * 4 + ['d' * 49])}/gpu",  # 245
)


async def refusals(directory: Path, names: Sequence[str]) -> AsyncIterator[tuple[str, str]]:
    """What kubelet says to each name, with a socket that nobody serves: it looks at the name first."""
    kubelet = EmbeddedKubelet(directory, random=Random(1), dial_timeout=0.02)
    async with kubelet, unix_channel(kubelet.registration_socket) as channel:
        for name in names:
            request = protocol.RegisterRequest(version="v1beta1", endpoint="none.sock", resource_name=name)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await RegistrationCalls(channel).register(request, timeout=30)
            assert refused.value.code() is grpc.StatusCode.UNKNOWN
            yield name, str(refused.value.details())


async def test_29_names_that_kubelet_takes_are_dialled(directory: Path) -> None:
    async for name, refusal in refusals(directory, TAKEN):
        assert "failed to dial device plugin" in refusal, name


async def test_29_names_that_kubelet_refuses_are_never_registered_by_us(directory: Path) -> None:
    async for name, refusal in refusals(directory, REFUSED):
        assert refusal == f'the ResourceName "{name}" is invalid'
        if name.startswith(PREFIX):
            with pytest.raises(ValueError, match="is not a resource name"):
                resource_name(name)
        else:
            assert not_ours(name), name


def not_ours(name: str) -> bool:
    """Whether the name does not come out of whatever an operator writes: ours all begin with our domain."""
    try:
        return resource_name(name).startswith(PREFIX)
    except ValueError:
        return True


@given(st.from_regex(r"(nvidia\.com/)?[a-zA-Z0-9_./ +-]{0,70}", fullmatch=True))
def test_29_names_that_we_let_through_are_taken_by_kubelet(text: str) -> None:
    try:
        name = resource_name(text)
    except ValueError:
        return
    assert is_extended_resource_name(name)


async def test_29_names_of_mig_profiles_are_written_so_that_kubelet_takes_them(directory: Path) -> None:
    cut = gpu(0, mig_devices=2)
    profiles = [
        replace(device, profile=replace(device.profile, attribute=attribute))
        for device, attribute in zip(cut.mig_devices, ("+me", "+gfx"), strict=True)
    ]
    async with embedded(directory) as kubelet:
        daemon = Daemon(kubelet.plugin_directory, node(replace(cut, mig_devices=tuple(profiles))), mig_strategy="mixed")
        async with daemon.running():
            for name in ("nvidia.com/mig-1g.10gb.me", "nvidia.com/mig-1g.10gb.gfx"):
                await kubelet.wait_for(name)
            assert {call.refusal for call in kubelet.registrations} == {None}
