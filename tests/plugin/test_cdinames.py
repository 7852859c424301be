"""Every CDI name that is ever answered is found by a runtime, for as long as a container has it.

A machine of hypothesis: hardware, configuration and processes change, kubelet allocates, lists and forgets, in any
order. After each step, what every request would be answered, and what every container was answered, is on disk.
"""

import asyncio
import shutil
import tempfile
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gpustow.config import Config, load_config
from gpustow.errors import GpustowError
from gpustow.hardware.node import Node
from gpustow.injection import ContainerEdits, container_edits
from gpustow.injection.cdi.atomicfiles import Surroundings
from gpustow.injection.cdi.directory import CdiDirectory
from gpustow.injection.cdi.specification import parse_spec
from gpustow.injection.hostdevices import HostDevices, simulated_host_devices
from gpustow.plugin.cdispecs import SpecFiles, SpecKeeper, simulated_specs
from gpustow.plugin.offer import Offer
from tests.injection.cdi.failingcalls import FailingCalls
from tests.plugin.samples import gpu, node

LAYOUTS = (0, 2, 3)
"""MIG devices of a GPU; none is a GPU without MIG mode."""

NODES = st.dictionaries(st.integers(0, 2), st.sampled_from(LAYOUTS), min_size=1, max_size=3).map(
    lambda layout: node(*(gpu(index, mig_devices=devices) for index, devices in sorted(layout.items())))
)
FILES = st.sampled_from(
    [
        "",
        "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}",
        "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: mig-1g.10gb, replicas: 3}]}}",
    ]
)
FLAGS = st.fixed_dictionaries(
    {
        "device-list-strategy": st.sampled_from([["cdi-cri"], ["cdi-annotations"], ["envvar", "cdi-cri"], ["envvar"]]),
        "device-id-strategy": st.sampled_from(["uuid", "index"]),
        "mig-strategy": st.sampled_from(["none", "single", "mixed"]),
        "gdrcopy-enabled": st.sampled_from(["true", "false"]),
        "mofed-enabled": st.sampled_from(["true", "false"]),
        "imex-channel-ids": st.sampled_from([[], ["0"]]),
        "exclude-gpus": st.sampled_from([[], ["0"]]),
    }
)


def config_of(flags: dict[str, object], file: str, directory: Path) -> Config:
    flags = {**flags, "cdi-directory": str(directory), "config-file": "file"}
    return load_config(flags, {}, lambda _path: file or "version: v1").config


def named(edits: ContainerEdits) -> tuple[str, ...]:
    """The CDI devices that a runtime is asked for, in either way."""
    annotated = [name for value in edits.annotations.values() for name in value.split(",")]
    return (*edits.cdi_devices, *annotated)


class Life(RuleBasedStateMachine):
    """A node with one of our daemons after the other, and a kubelet that remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.clock = count(1)
        self.containers: dict[int, tuple[frozenset[str], tuple[str, ...]]] = {}
        self.pods = count(1)
        self.node: Node = node(gpu(0))
        self.config = Config()
        self.served: tuple[Offer, Config, HostDevices] | None = None
        self.coming: tuple[Offer, Config, HostDevices, SpecFiles] | None = None

    def teardown(self) -> None:
        shutil.rmtree(self.home)

    @initialize(found=NODES, flags=FLAGS, file=FILES)
    def begin(self, found: Node, flags: dict[str, object], file: str) -> None:
        self.node = found
        self.config = config_of(flags, file, self.home)
        self.restart()

    @rule()
    def restart(self) -> None:
        """Another process; it offers nothing until it has written its files."""
        quick = Surroundings(FailingCalls())
        self.keeper = SpecKeeper(simulated_specs, lambda: next(self.clock), lambda path: CdiDirectory(path, quick))
        self.served = self.coming = None
        self.survey()
        self.take_over()

    @rule(found=NODES, at_once=st.booleans())
    def change_the_node(self, found: Node, at_once: bool) -> None:  # noqa: FBT001 - drawn
        self.node = found
        self.survey()
        if at_once:
            self.take_over()

    @rule(flags=FLAGS, file=FILES, at_once=st.booleans())
    def reload(self, flags: dict[str, object], file: str, at_once: bool) -> None:  # noqa: FBT001 - drawn
        self.config = config_of(flags, file, self.home)
        self.survey()
        if at_once:
            self.take_over()

    def survey(self) -> None:
        """Reads the node and writes the files; what was served before is still served."""
        host = simulated_host_devices(self.config, self.node.platform)
        try:
            offer = Offer.of(self.node, self.config, host)
        except GpustowError:  # a layout that the MIG strategy forbids
            return
        files = self.keeper.publish(self.node, self.config, host)
        self.coming = (offer, self.config, host, files)

    @rule()
    @precondition(lambda self: self.coming is not None)
    def take_over(self) -> None:
        if self.coming is not None:
            offer, config, host, files = self.coming
            self.served = offer, config, host
            self.keeper.serving(files)
            self.coming = None

    @rule(data=st.data())
    @precondition(lambda self: self.served is not None)
    def allocate(self, data: st.DataObject) -> None:
        assert self.served is not None
        offer, config, host = self.served
        resource = data.draw(st.sampled_from([served.resource for served in offer.served]))
        ids = data.draw(st.lists(st.sampled_from([device.id for device in resource.devices]), min_size=1, max_size=2))
        edits = container_edits(replace(resource, requests_limited_to_one=False), ids, config, host, "id")
        uuids = frozenset(resource.by_id[id_].uuid for id_ in ids)
        self.containers[next(self.pods)] = uuids, named(edits)

    @rule(data=st.data())
    @precondition(lambda self: self.containers)
    def delete(self, data: st.DataObject) -> None:
        del self.containers[data.draw(st.sampled_from(sorted(self.containers)))]

    @rule()
    def list_what_is_held(self) -> None:
        asyncio.run(self.keeper.tidy(self))

    def held_uuids(self, _since: float) -> frozenset[str]:
        return frozenset().union(*(uuids for uuids, _ in self.containers.values()))

    def names(self) -> set[str]:
        """What a runtime finds."""
        specs = [parse_spec(path.read_text(encoding="utf-8"), path.name) for path in self.home.glob("*.json")]
        return {f"{spec.kind}={device.name}" for spec in specs for device in spec.devices}

    @invariant()
    def every_name_in_an_answer_is_there(self) -> None:
        there = self.names()
        for _, names in self.containers.values():
            assert set(names) <= there

    @invariant()
    def every_name_that_could_be_answered_is_there(self) -> None:
        there = self.names()
        for offer, config, host in filter(None, (self.served, self.coming and self.coming[:3])):
            for served in offer.served:
                resource = replace(served.resource, requests_limited_to_one=False)
                assert set(named(container_edits(resource, list(resource.by_id), config, host, "id"))) <= there


@pytest.mark.slow
def test_every_cdi_name_is_there_before_and_after_reloads_changes_and_restarts() -> None:
    run_state_machine_as_test(Life, settings=settings(max_examples=40, stateful_step_count=30, deadline=None))
