import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.errors import InfeasibleRequest
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.kubelet.protocol.services import DevicePluginCalls, unix_channel
from gpustow.kubelet.server import PluginServer
from gpustow.placement import Policy
from gpustow.placement.policy import Rule
from gpustow.plugin import service as module
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.offer import Offer, ServedResource
from gpustow.plugin.service import OPTIONS, ResourceService
from gpustow.plugin.timing import Timing
from tests.plugin.samples import GPU, Recorder, config, gpu, node, served, with_health


@asynccontextmanager
async def serving(
    directory: Path, resource: ServedResource, recorder: Recorder | None = None
) -> AsyncIterator[tuple[ResourceService, DevicePluginCalls]]:
    service = ResourceService(resource, recorder or Recorder(), lambda: None, NodeUsage(Timing(), lambda: 0.0))
    server = PluginServer(service, directory / "s")
    await server.start()
    async with unix_channel(directory / "s") as channel:
        yield service, DevicePluginCalls(channel)
        service.feed.close()
    await server.stop()


def preferred_request(available: list[str], must: list[str], size: int) -> protocol.PreferredAllocationRequest:
    asked = protocol.ContainerPreferredAllocationRequest(
        available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
    )
    return protocol.PreferredAllocationRequest(container_requests=[asked])


def allocate_request(*containers: list[str]) -> protocol.AllocateRequest:
    return protocol.AllocateRequest(
        container_requests=[protocol.ContainerAllocateRequest(devices_ids=ids) for ids in containers]
    )


async def test_the_options_ask_for_preferences_and_for_nothing_before_a_start(tmp_path: Path) -> None:
    async with serving(tmp_path, served()) as (_, calls):
        options = await calls.get_device_plugin_options(protocol.Empty())
        assert options == OPTIONS
        assert options.get_preferred_allocation_available
        assert not options.pre_start_required
        started = await calls.pre_start_container(protocol.PreStartContainerRequest(devices_ids=["GPU-0"]))
        assert started == protocol.PreStartContainerResponse()


async def test_a_device_that_fails_and_recovers_makes_one_message_each(tmp_path: Path) -> None:
    healthy = served(2)
    async with serving(tmp_path, healthy) as (service, calls):
        stream = aiter(calls.list_and_watch(protocol.Empty()))
        health: list[dict[str, str]] = []

        async def read() -> None:
            message = await anext(stream)
            health.append({device.ID: device.health for device in message.devices})

        await read()
        service.replace(with_health(healthy, _0=False))
        await read()
        service.replace(with_health(healthy, _0=False))
        service.replace(healthy)
        await read()
    assert health == [
        {"GPU-0": "Healthy", "GPU-1": "Healthy"},
        {"GPU-0": "Unhealthy", "GPU-1": "Healthy"},
        {"GPU-0": "Healthy", "GPU-1": "Healthy"},
    ]


async def test_a_preference_is_what_placement_says_in_exactly_the_size_asked(tmp_path: Path) -> None:
    recorder = Recorder()
    async with serving(tmp_path, served(4), recorder) as (_, calls):
        request = preferred_request(["GPU-3", "GPU-1", "GPU-2"], ["GPU-2"], 2)
        response = await calls.get_preferred_allocation(request)
    ids = list(response.container_responses[0].deviceIDs)
    assert len(ids) == len(set(ids)) == 2
    assert "GPU-2" in ids
    assert recorder.events == [f"preferred {GPU}"]


HOSTILE = {
    "must include a device that is not offered": preferred_request(["GPU-0"], ["GPU-9"], 1),
    "more than offered": preferred_request(["GPU-0"], [], 2),
    "less than must be included": preferred_request(["GPU-0", "GPU-1"], ["GPU-0", "GPU-1"], 1),
    "a negative number": preferred_request(["GPU-0"], [], -1),
}


@pytest.mark.parametrize("request_", HOSTILE.values(), ids=HOSTILE.keys())
async def test_an_infeasible_request_is_answered_with_nothing_and_never_with_an_error(
    tmp_path: Path, request_: protocol.PreferredAllocationRequest, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder()
    async with serving(tmp_path, served(2), recorder) as (_, calls):
        response = await calls.get_preferred_allocation(request_)
    assert [list(each.deviceIDs) for each in response.container_responses] == [[]]
    assert recorder.events == [f"preference failed {GPU}"]
    assert isinstance(recorder.failures[0], InfeasibleRequest)
    assert "no preference, kubelet chooses" in caplog.text


async def test_empty_lists_and_no_containers_are_answered_in_kind(tmp_path: Path) -> None:
    async with serving(tmp_path, served(2)) as (_, calls):
        nothing = await calls.get_preferred_allocation(preferred_request([], [], 0))
        assert [list(each.deviceIDs) for each in nothing.container_responses] == [[]]
        none = await calls.get_preferred_allocation(protocol.PreferredAllocationRequest())
        assert list(none.container_responses) == []


async def test_a_fault_of_ours_is_answered_with_nothing_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "place", broken)
    recorder = Recorder()
    async with serving(tmp_path, served(2), recorder) as (_, calls):
        response = await calls.get_preferred_allocation(preferred_request(["GPU-0"], [], 1))
    assert [list(each.deviceIDs) for each in response.container_responses] == [[]]
    assert isinstance(recorder.failures[0], ZeroDivisionError)


@pytest.mark.parametrize("containers", [[], [["GPU-0"]], [["GPU-1"], ["GPU-0"], ["GPU-1", "GPU-0"]]])
async def test_each_container_gets_its_answer_in_order(tmp_path: Path, containers: list[list[str]]) -> None:
    recorder = Recorder()
    async with serving(tmp_path, served(2), recorder) as (_, calls):
        response = await calls.allocate(allocate_request(*containers))
    visible = [each.envs["NVIDIA_VISIBLE_DEVICES"] for each in response.container_responses]
    assert [set(ids.split(",")) for ids in visible] == [set(ids) for ids in containers]
    assert recorder.events == [f"allocated {GPU}"] * len(containers)


async def test_an_unknown_device_is_refused_by_its_name_and_changes_nothing(tmp_path: Path) -> None:
    recorder = Recorder()
    async with serving(tmp_path, served(2), recorder) as (_, calls):
        before = await calls.allocate(allocate_request(["GPU-0"]))
        with pytest.raises(grpc.aio.AioRpcError, match="GPU-9") as error:
            await calls.allocate(allocate_request(["GPU-0"], ["GPU-9"]))
        assert recorder.events == [f"allocated {GPU}", f"allocation failed {GPU}"], "nothing of it was granted"
        assert error.value.code() is grpc.StatusCode.UNKNOWN
        assert await calls.allocate(allocate_request(["GPU-0"])) == before
    assert recorder.events[-2] == f"allocation failed {GPU}"


async def test_what_is_only_withdrawn_is_answered_and_what_is_sick_is_refused(tmp_path: Path) -> None:
    sick = with_health(served(), _0=False, _1=False)
    async with serving(tmp_path, replace(sick, withdrawn=frozenset({"GPU-0"}))) as (_, calls):
        response = await calls.allocate(allocate_request(["GPU-0"]))
        assert response.container_responses[0].envs["NVIDIA_VISIBLE_DEVICES"] == "GPU-0"
        for ids in (["GPU-1"], ["GPU-0", "GPU-1"]):
            with pytest.raises(grpc.aio.AioRpcError, match="unhealthy device: GPU-1"):
                await calls.allocate(allocate_request(ids))


async def test_a_fault_of_ours_in_allocate_is_an_error_that_says_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(module, "container_edits", broken)
    recorder = Recorder()
    async with serving(tmp_path, served(2), recorder) as (_, calls):
        with pytest.raises(grpc.aio.AioRpcError, match=r"Allocate of nvidia\.com/gpu failed: no such thing") as error:
            await calls.allocate(allocate_request(["GPU-0"]))
    assert error.value.code() is grpc.StatusCode.INTERNAL
    assert recorder.events == [f"allocation failed {GPU}"]


async def test_the_same_devices_get_the_same_answer_from_32_callers_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, served(4)) as (_, calls):
        first = await calls.allocate(allocate_request(["GPU-0", "GPU-1"]))
        other = await calls.allocate(allocate_request(["GPU-1", "GPU-2"]))
        asked = [allocate_request(["GPU-0", "GPU-1"]), allocate_request(["GPU-1", "GPU-2"])] * 16
        answers = await asyncio.gather(*(calls.allocate(each) for each in asked))
    assert answers == [first, other] * 16


async def test_a_long_list_of_devices_is_cut_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ids = [f"GPU-{number}" for number in range(12)]
    async with serving(tmp_path, served(12)) as (_, calls):
        await calls.allocate(allocate_request(ids))
        await calls.get_preferred_allocation(preferred_request(ids, [], 1))
    assert "nvidia.com/gpu: allocates GPU-0, GPU-1, GPU-2, GPU-3, GPU-4, GPU-5, GPU-6, GPU-7 and 4 more" in caplog.text
    assert "of 12 offered" in caplog.text


@given(
    st.lists(st.sampled_from(["GPU-0", "GPU-1", "GPU-2", "GPU-9"])),
    st.lists(st.sampled_from(["GPU-0", "GPU-1", "GPU-9"])),
    st.integers(-3, 5),
)
def test_whatever_kubelet_asks_the_answer_is_fit_or_empty(available: list[str], must: list[str], size: int) -> None:
    service = ResourceService(served(3), Recorder(), lambda: None, NodeUsage(Timing(), lambda: 0.0))
    asked = protocol.ContainerPreferredAllocationRequest(
        available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
    )
    ids = service._preferred(asked)
    assert len(ids) in {0, size}
    assert len(set(ids)) == len(ids)
    assert set(ids) <= set(available)
    if ids:
        assert set(must) <= set(ids)


async def test_the_reason_of_a_decision_is_logged_after_the_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with serving(tmp_path, served(3)) as (_, calls):
        await calls.get_preferred_allocation(preferred_request(["GPU-0", "GPU-1", "GPU-2"], [], 1))
        await asyncio.sleep(0.05)
    assert f"{GPU}: prefers GPU-0 of 3 offered: aligned takes GPU 0; the next best, GPU 1, is equal" in caplog.text


async def test_a_reason_that_cannot_be_worked_out_does_not_cost_the_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_decision: object) -> object:
        raise ValueError("no reason")

    monkeypatch.setattr("gpustow.placement.explain.Decision.explain", fail)
    caplog.set_level(logging.INFO)
    async with serving(tmp_path, served(2)) as (_, calls):
        await calls.get_preferred_allocation(preferred_request(["GPU-0", "GPU-1"], [], 1))
        await asyncio.sleep(0.05)
    assert "the reason of a decision could not be worked out" in caplog.text
    assert f"{GPU}: prefers GPU-0 of 2 offered" in caplog.text


async def test_allocate_refuses_what_breaks_the_rule_of_the_resource(tmp_path: Path) -> None:
    together = replace(served(2), policy=Policy.named("packed", rule=Rule.TOGETHER))
    recorder = Recorder()
    async with serving(tmp_path, together, recorder) as (_, calls):
        await calls.allocate(allocate_request(["GPU-0"]))
        with pytest.raises(grpc.aio.AioRpcError, match="the devices lie on GPUs 0, 1") as refused:
            await calls.allocate(allocate_request(["GPU-0", "GPU-1"]))
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert recorder.events == [f"allocated {GPU}", f"allocation failed {GPU}"]


async def test_distinct_holds_for_each_container_alone_and_what_it_reuses(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n"
        "placement: {resources: [{name: nvidia.com/gpu, policy: packed, distinct: required}]}\n",
        encoding="utf-8",
    )
    distinct = Offer.of(node(gpu(0), gpu(1)), config(config_file=str(path))).served[0]
    async with serving(tmp_path, distinct) as (_, calls):
        # What an init container had is reused, and the rest lies elsewhere.
        ids = ["GPU-0::0", "GPU-0::1", "GPU-1::0", "GPU-1::1"]
        answer = await calls.get_preferred_allocation(preferred_request(ids, ["GPU-0::0"], 2))
        assert list(answer.container_responses[0].deviceIDs) == ["GPU-0::0", "GPU-1::0"]
        await calls.allocate(allocate_request(["GPU-0::0", "GPU-1::0"]))
        await calls.allocate(allocate_request(["GPU-0::0"], ["GPU-0::1"]))
        with pytest.raises(grpc.aio.AioRpcError, match=r"2 of the devices \(GPU-0::0, GPU-0::1\) lie on GPU 0"):
            await calls.allocate(allocate_request(["GPU-0::0", "GPU-0::1"]))


async def test_usage_hears_of_every_admission(tmp_path: Path) -> None:
    resource = served(2)
    usage = NodeUsage(Timing(), lambda: 0.0)
    usage.serve([resource.resource, replace(resource.resource, name="nvidia.com/other", devices=())])
    service = ResourceService(resource, Recorder(), lambda: None, usage)
    server = PluginServer(service, tmp_path / "s")
    await server.start()
    async with unix_channel(tmp_path / "s") as channel:
        calls = DevicePluginCalls(channel)
        await calls.get_preferred_allocation(preferred_request(["GPU-0", "GPU-1"], [], 1))
        assert usage._asked_at == {GPU: 0.0}
        await calls.allocate(allocate_request(["GPU-1"]))
        assert usage._held == {GPU: {"GPU-1"}}
        assert usage._asked_at == {}
        service.feed.close()
    await server.stop()
