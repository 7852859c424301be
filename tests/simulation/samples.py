"""Outcomes to show, made by hand: GPUs cut into slots, and pods that hold them."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.node import Gpu, Node, Platform
from gpustow.resources.device import Device, Resource
from gpustow.simulation.outcome import Advertised, ContainerOutcome, Outcome, Phase, PodOutcome, Refusal

RESOURCE = "nvidia.com/gpu"


def gpu(index: int) -> Gpu:
    return Gpu(index, f"GPU-{index}", f"0000:0{index}:00.0", index, "A100", 40 << 30, (8, 0), None, ())


def slot(gpu_index: int, number: int, *, healthy: bool = True) -> Device:
    profile = MigProfile(1, 1, 5, 4864)
    mig = MigDevice(number, f"MIG-{gpu_index}-{number}", profile, number, 0, 5 << 30, ())
    return Device(
        mig.uuid,
        mig.uuid,
        gpu_index,
        f"{gpu_index}:{number}",
        Fraction(1, 8),
        (),
        mig=mig,
        edge=number,
        healthy=healthy,
    )


def running(name: str, *ids: str, envs: Mapping[str, str] | None = None) -> PodOutcome:
    given = {"NVIDIA_VISIBLE_DEVICES": ",".join(ids)} if envs is None else envs
    return PodOutcome("default", name, Phase.RUNNING, (ContainerOutcome("main", {RESOURCE: ids}, given),))


def unschedulable(name: str) -> PodOutcome:
    return PodOutcome("default", name, Phase.UNSCHEDULABLE, refusals=(Refusal("Unschedulable", "no such resource"),))


def refused(name: str) -> PodOutcome:
    return PodOutcome("default", name, Phase.REFUSED, refusals=(Refusal("UnexpectedAdmissionError", "no room"),))


def outcome(
    policy: str, pods: Sequence[PodOutcome], *, gpus: int = 2, slots: int = 3, sick: Sequence[str] = ()
) -> Outcome:
    devices = [slot(index, number) for index in range(gpus) for number in range(slots)]
    devices = [slot(d.gpu_index, d.edge, healthy=False) if d.id in sick else d for d in devices]
    node = Node("sample", Platform.NVML, tuple(gpu(index) for index in range(gpus)))
    advertised = {RESOURCE: Advertised(len(devices), len(devices) - len(sick))} if devices else {}
    return Outcome(policy, node, (Resource(RESOURCE, tuple(devices)),), advertised, tuple(pods))
