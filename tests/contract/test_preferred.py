"""GetPreferredAllocation: exact where it can answer, empty and never an error where it cannot."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from gpustow.errors import HardwareError
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.simulated import SimulatedReader
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.kubelet.protocol.services import DevicePluginCalls
from gpustow.placement.policy import SHARED_POLICIES
from gpustow.plugin.offer import Offer, ServedResource
from tests.contract.scene import preference, serving, some_polls
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, config

REQUESTS = 60
SHARED = """
version: v1
sharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: 4}}]}}}}
placement: {{resources: [{{name: nvidia.com/gpu, policy: {policy}}}]}}
"""


def resource(directory: Path, model: str, policy: str | None) -> ServedResource:
    """The first resource of a node: its GPUs shared and placed by a policy, or as they are."""
    node = SimulatedReader(load_node_model(model)).read()
    if policy is None:
        return Offer.of(node, config(mig_strategy="single")).served[0]
    path = directory / "config.yaml"
    path.write_text(SHARED.format(policy=policy), encoding="utf-8")
    return Offer.of(node, config(config_file=str(path))).served[0]


async def preferred(calls: DevicePluginCalls, available: Sequence[str], must: Sequence[str], size: int) -> list[str]:
    response = await calls.get_preferred_allocation(preference(available, must, size), timeout=30)
    assert len(response.container_responses) == 1
    return list(response.container_responses[0].deviceIDs)


@pytest.mark.parametrize(
    ("model", "policy"),
    [
        ("dgx-a100", None),
        ("a100-4-mig-5", None),
        ("aligned", None),
        *(("dgx-1-v100", name) for name in SHARED_POLICIES),
    ],
)
async def test_18_preferred_exactness(directory: Path, model: str, policy: str | None) -> None:
    served = resource(directory, model if model != "aligned" else "hgx-h100", policy)
    ids = [device.id for device in served.resource.devices]
    random = Random(18)
    async with serving(directory, served) as (_, calls):
        for _ in range(REQUESTS):
            available = random.sample(ids, random.randint(1, len(ids)))
            must = random.sample(available, random.randint(0, len(available)))
            size = random.randint(len(must), len(available))
            answer = await preferred(calls, available, must, size)
            assert len(answer) == len(set(answer)) == size
            assert set(must) <= set(answer) <= set(available)
            for order in (sorted, lambda found: random.sample(found, len(found))):
                assert set(await preferred(calls, order(available), order(must), size)) == set(answer)


HOSTILE: dict[str, tuple[list[str], list[str], int]] = {
    "must-include unknown": (["GPU-0", "GPU-1"], ["GPU-9"], 1),
    "must-include not offered": (["GPU-0"], ["GPU-1"], 2),
    "more than offered": (["GPU-0", "GPU-1"], [], 3),
    "less than must be included": (["GPU-0", "GPU-1"], ["GPU-0", "GPU-1"], 1),
    "unknown offered": (["GPU-7", "GPU-8", "GPU-9"], [], 2),
    "nothing offered": ([], [], 1),
    "nothing at all": ([], [], 0),
    "nothing wanted": (["GPU-0"], [], 0),
    "negative": (["GPU-0"], [], -1),
    "the largest number": (["GPU-0"], [], 2**31 - 1),
    "the same twice": (["GPU-0", "GPU-0"], ["GPU-0", "GPU-0"], 2),
    "names that are none": (["", "\n", "GPU-0::", "::1", "x" * 10_000], ["", ""], 3),
}


@pytest.mark.parametrize("failing", [False, True])
async def test_19_preferred_hostile_input_is_answered_ok_whether_or_not_the_driver_works(
    directory: Path, *, failing: bool
) -> None:
    daemon = Daemon(directory)
    async with FakeKubelet(directory) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU))
        if failing:
            daemon.reader.answer = HardwareError("GPU is lost")
            supervisor.rescan()
            await until(lambda: "GPU is lost" in str(supervisor.not_ready))
        calls = kubelet.plugins[0].calls
        for available, must, size in HOSTILE.values():
            answer = await preferred(calls, available, must, size)
            assert len(answer) in {0, size}
            assert set(must) <= set(answer) <= set(available) or not answer
        none = await calls.get_preferred_allocation(protocol.PreferredAllocationRequest(), timeout=10)
        assert list(none.container_responses) == []
        assert len(await preferred(calls, ["GPU-1", "GPU-0"], [], 1)) == 1
        await some_polls()
        assert kubelet.live(GPU)
