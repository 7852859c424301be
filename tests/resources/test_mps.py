"""Sharing by MPS: refusals, and what clients get."""

from dataclasses import replace

import pytest

from gpustow.config import (
    Config,
    DeviceListStrategy,
    MigStrategy,
    ReplicatedResource,
    ReplicatedResources,
    ResourcePattern,
)
from gpustow.errors import ConfigError
from gpustow.hardware.node import Gpu, Platform
from gpustow.resources import MpsShares, Resource, Sharing, build_catalog, mps_shares
from gpustow.resources.mps import most_clients
from tests.resources.machines import GIB, gpu, machine, node

MIB = 1 << 20


def by_mps(*gpus: Gpu, replicas: int = 4, platform: Platform = Platform.NVML) -> Resource:
    asked = ReplicatedResources((ReplicatedResource("nvidia.com/gpu", replicas),), fail_requests_greater_than_one=True)
    (resource,) = build_catalog(node(*gpus, platform=platform), Config(mps=asked, mps_root="/mps")).resources
    return resource


def test_devices_are_shared_by_mps_as_by_time_slicing() -> None:
    resource = by_mps(gpu(0), gpu(1))
    assert (resource.sharing, resource.requests_limited_to_one) == (Sharing.MPS, True)
    assert [device.id for device in resource.devices][:5] == [*(f"GPU-0::{n}" for n in range(4)), "GPU-1::0"]


@pytest.mark.parametrize(
    ("capability", "clients"), [((7, 5), 48), ((9, 0), 48), ((12, 0), 48), ((7, 0), 16), ((6, 1), 16), (None, 16)]
)
def test_a_gpu_takes_only_so_many_clients(capability: tuple[int, int] | None, clients: int) -> None:
    card = gpu(0, compute_capability=capability)
    assert most_clients(card) == clients
    assert len(by_mps(card, replicas=clients).devices) == clients
    with pytest.raises(ConfigError, match=f"allowed replicas exceeded: {clients + 1} > {clients} on GPU 0"):
        by_mps(card, replicas=clients + 1)


def test_each_gpu_that_takes_fewer_is_told_once() -> None:
    with pytest.raises(ConfigError) as refusal:
        by_mps(gpu(0), gpu(1, compute_capability=(7, 0)), gpu(2, compute_capability=(7, 0)), replicas=20)
    assert [problem.message[-22:] for problem in refusal.value.problems] == [
        "16 on GPU 1 (Tesla T4)",
        "16 on GPU 2 (Tesla T4)",
    ]


@pytest.mark.parametrize("strategy", [MigStrategy.SINGLE, MigStrategy.NONE])
def test_case_c10_gpus_in_mig_mode_are_refused_by_name(strategy: MigStrategy) -> None:
    asked = ReplicatedResources((ReplicatedResource("nvidia.com/gpu", 2),))
    with pytest.raises(ConfigError, match="sharing using MPS is not supported for MIG devices: GPU 0 is in MIG mode"):
        build_catalog(machine("a100-4-mig-5"), Config(mig_strategy=strategy, mps=asked, mps_root="/mps"))


def test_case_c31_integrated_gpus_are_refused() -> None:
    with pytest.raises(ConfigError, match="not supported for integrated GPUs"):
        by_mps(gpu(0), platform=Platform.TEGRA)


@pytest.mark.parametrize(
    ("memory", "replicas", "limit", "percentage"),
    [
        (24576 * MIB, 10, 2457, 10),
        (24576 * MIB, 3, 8192, 33),
        (80 * GIB, 10, 8192, 10),
        (40 * GIB, 4, 10240, 25),
        (80 * GIB, 48, 1706, 2),
    ],
)
def test_case_c44_each_client_has_its_part_of_memory_and_threads(
    memory: int, replicas: int, limit: int, percentage: int
) -> None:
    machine = node(gpu(0, memory_bytes=memory), gpu(1, memory_bytes=memory))
    resource = by_mps(*machine.gpus, replicas=replicas)
    assert mps_shares(machine, resource) == MpsShares({"0": limit, "1": limit}, percentage)


@pytest.mark.parametrize("memory", [None, 0])
def test_a_gpu_of_unknown_memory_has_no_limit(memory: int | None) -> None:
    machine = node(gpu(0, memory_bytes=memory), gpu(1))
    assert mps_shares(machine, by_mps(*machine.gpus)).memory_mib == {"1": 4096}


def test_resources_that_have_a_daemon_each_cannot_be_asked_for_together() -> None:
    patterns = (ResourcePattern("*T4", "nvidia.com/t4"), ResourcePattern("*", "nvidia.com/other"))
    both = ReplicatedResources(tuple(ReplicatedResource(pattern.name, 2) for pattern in patterns))
    mixed = node(gpu(0), gpu(1, model="NVIDIA L4"))
    volume = (DeviceListStrategy.VOLUME_MOUNTS,)
    config = Config(gpu_patterns=patterns, mps=both, mps_root="/mps", device_list_strategies=volume)
    (warning,) = build_catalog(mixed, config).warnings
    assert warning.endswith("more than one of nvidia.com/t4, nvidia.com/other reaches the MPS daemon of one alone")
    assert build_catalog(mixed, replace(config, mps=None, time_slicing=both)).warnings == ()
