"""The fake library does what it is told, as nvidia-ml-py sees it; each function here runs in a process that has it."""

from typing import Any

import pytest

from gpustow.hardware.nodemodel import load_node_model, parse_node_model
from gpustow.hardware.nvml import NvmlReader
from tests.nvml.fakedriver import ANY_CALL, NO_INSTANCE
from tests.nvml.readerprocess import ReaderProcess

XID, DOUBLE_BIT_ECC = 0x8, 0x2


@pytest.fixture
def process(machine: ReaderProcess) -> ReaderProcess:
    machine.start(load_node_model("a100-4-mig-5"))
    machine.read()
    return machine


def _pynvml() -> Any:
    import pynvml  # type: ignore[import-untyped] # noqa: PLC0415 - in the process that has the fake library

    return pynvml


def _names(_: NvmlReader) -> list[str | int]:
    """The name of each GPU, or the code with which asking for it ends."""
    nvml = _pynvml()
    nvml.nvmlInit()
    answers: list[str | int] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            answers.append(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index)))
        except nvml.NVMLError as error:
            answers.append(error.value)
    nvml.nvmlShutdown()
    return answers


def _events(_: NvmlReader) -> list[tuple[str | None, int, int, int, int]]:
    """All events there are: UUID (None where the driver names no GPU), type, data, instances."""
    nvml = _pynvml()
    nvml.nvmlInit()
    events = nvml.nvmlEventSetCreate()
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlDeviceGetSupportedEventTypes(handle) & XID, events)
    found = []
    while True:
        try:
            event = nvml.nvmlEventSetWait_v2(events, 20)
        except nvml.NVMLError_Timeout:
            break
        uuid = nvml.nvmlDeviceGetUUID(event.device) if event.device else None
        found.append((uuid, event.eventType, event.eventData, event.gpuInstanceId, event.computeInstanceId))
    nvml.nvmlEventSetFree(events)
    nvml.nvmlShutdown()
    return found


def _after_shutdown(_: NvmlReader) -> int:
    nvml = _pynvml()
    try:
        nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        return int(error.value)
    return 0


def _mig_identities(_: NvmlReader) -> dict[str, Any]:
    """What the calls say that only a MIG device has, for the first MIG device of GPU 0."""
    nvml = _pynvml()
    nvml.nvmlInit()
    parent = nvml.nvmlDeviceGetHandleByIndex(0)
    mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 0)
    instance = nvml.nvmlDeviceGetGpuInstanceById(parent, nvml.nvmlDeviceGetGpuInstanceId(mig))
    compute = nvml.nvmlGpuInstanceGetComputeInstanceById(instance, nvml.nvmlDeviceGetComputeInstanceId(mig))
    uuid = nvml.nvmlDeviceGetUUID(mig)
    answers = {
        "parent": nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)),
        "is mig": (nvml.nvmlDeviceIsMigDeviceHandle(mig).value, nvml.nvmlDeviceIsMigDeviceHandle(parent).value),
        "by uuid": nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByUUID(uuid)) == uuid,
        "compute instance": nvml.nvmlComputeInstanceGetInfo(compute).id,
        "profile name": nvml.nvmlDeviceGetGpuInstanceProfileInfo(parent, 0).name,
        "reserved memory": nvml.nvmlDeviceGetMemoryInfo(parent, nvml.nvmlMemory_v2).total,
        "multiprocessors": nvml.nvmlDeviceGetAttributes(mig).multiprocessorCount,
        "pci id": nvml.nvmlDeviceGetPciInfo(parent).pciDeviceId,
        "index": nvml.nvmlDeviceGetIndex(parent),
        "library": nvml.nvmlSystemGetNVMLVersion(),
    }
    nvml.nvmlShutdown()
    return answers


def test_a_call_fails_for_one_gpu_from_the_call_that_is_named(process: ReaderProcess) -> None:
    name = "NVIDIA A100-SXM4-40GB"
    process.driver.fail("nvmlDeviceGetName", 999, gpu=2, start=2)
    assert process.call(_names) == [name] * 4
    assert process.call(_names) == [name, name, 999, name]
    process.driver.heal()
    assert process.call(_names) == [name] * 4


def test_any_call_fails_for_all(process: ReaderProcess) -> None:
    process.driver.fail(ANY_CALL, 4, gpu=1)
    assert [type(answer) for answer in process.call(_names)] == [str, int, str, str]


def test_a_gpu_can_be_lost_while_a_process_runs(process: ReaderProcess) -> None:
    process.driver.lose(3)
    assert process.call(_names)[3] == 15


def test_the_mig_layout_can_change_while_a_process_runs(process: ReaderProcess) -> None:
    model = load_node_model("a100-4-mig-5")
    text = "name: n\ngpus: [{model: NVIDIA A100-SXM4-40GB, mig: {devices: [3g.20gb, 2g.10gb]}}]"
    assert len(process.read().gpus) == len(model.node.gpus)
    process.driver.show(parse_node_model(text, "n"))
    (gpu,) = process.read().gpus
    assert [device.profile.name for device in gpu.mig_devices] == ["3g.20gb", "2g.10gb"]


def test_events_reach_those_that_registered_for_their_kind(process: ReaderProcess) -> None:
    gpus = load_node_model("a100-4-mig-5").node.gpus
    assert process.call(_events) == []
    process.driver.event(XID, 79, gpu=1)
    process.driver.event(DOUBLE_BIT_ECC, 0, gpu=1)
    process.driver.event(XID, 31, gpu=2, gpu_instance=7, compute=0)
    process.driver.event(XID, 62)
    assert process.call(_events) == [
        (gpus[1].uuid, XID, 79, NO_INSTANCE, NO_INSTANCE),
        (gpus[2].uuid, XID, 31, 7, 0),
        (None, XID, 62, NO_INSTANCE, NO_INSTANCE),
    ]


def test_nothing_answers_after_shutdown(process: ReaderProcess) -> None:
    assert process.call(_after_shutdown) == 1


def test_structures_have_the_layout_of_the_bindings(process: ReaderProcess) -> None:
    gpu = load_node_model("a100-4-mig-5").node.gpus[0]
    assert process.call(_mig_identities) == {
        "parent": gpu.uuid,
        "is mig": (1, 0),
        "by uuid": True,
        "compute instance": 0,
        "profile name": "MIG 1g.5gb",
        "reserved memory": gpu.memory_bytes,
        "multiprocessors": 14,
        "pci id": 0x20B010DE,
        "index": 0,
        "library": "550.90.07",
    }
