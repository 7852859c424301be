"""The gauges, from what is known at the moment of a scrape. Pure.

The numbers come from `tally`, as those of the status do.
"""

import platform
from collections.abc import Iterator

from gpustow.hardware.node import Gpu
from gpustow.telemetry import catalogue as known
from gpustow.telemetry.facts import CONFIGURATION_CHECK, Facts
from gpustow.telemetry.metric import Sample
from gpustow.telemetry.tally import Tally
from gpustow.version import __version__

_HASH_DIGITS = 12


def gauges(facts: Facts) -> Iterator[Sample]:
    """All of them but those of single events."""
    yield Sample(known.BUILD_INFO, (__version__, platform.python_version()), 1)
    yield Sample(known.READY, (), facts.ready)
    for check in facts.checks:
        yield Sample(known.READINESS_CHECK, (check.name,), check.passed)
        if check.name == CONFIGURATION_CHECK:
            yield Sample(known.LAST_RELOAD_SUCCESSFUL, (), check.passed)
    yield from _config(facts)
    tally = Tally.of(facts)
    yield from _gpus(facts, tally)
    yield from _resources(facts, tally)
    yield Sample(known.USE_IS_LISTED, (), facts.is_listed)


def _config(facts: Facts) -> Iterator[Sample]:
    if facts.loaded is None:
        return
    config, file = facts.loaded.config, facts.loaded.file
    labels = (
        "" if file is None else file.path,
        "" if file is None else file.sha256[:_HASH_DIGITS],
        config.mig_strategy.value,
        config.shared_devices_allocation_policy,
    )
    yield Sample(known.CONFIG_INFO, labels, 1)
    yield Sample(known.CONFIG_WARNINGS, (), len(facts.loaded.warnings))


def _gpus(facts: Facts, tally: Tally) -> Iterator[Sample]:
    found = {} if facts.node is None else {gpu.index: gpu for gpu in facts.node.gpus}
    uuids = {index: gpu.uuid for index, gpu in found.items()}
    for part in tally.parts:
        if part.device.mig is None:
            uuids.setdefault(part.device.gpu_index, part.device.uuid)
    for index, gpu in sorted(found.items()):
        yield Sample(known.GPU_INFO, (str(index), gpu.uuid, gpu.model, _numa_node(gpu)), 1)
    shares = tally.used_shares()
    for index, share in sorted(shares.items()):
        labels = (str(index), uuids.get(index, ""))
        healthy = index in found and found[index].uuid not in facts.ailments
        yield Sample(known.GPU_HEALTHY, labels, healthy)
        yield Sample(known.GPU_USED_RATIO, labels, float(share))
    for (resource, index), slots in tally.of_gpus().items():
        for state, count in (("used", slots.used), ("free", slots.free), ("unhealthy", slots.unhealthy)):
            yield Sample(known.GPU_SLOTS, (resource, str(index), uuids.get(index, ""), state), count)
    yield Sample(known.GPUS_WHOLLY_FREE, (), len(tally.wholly_free()))
    yield Sample(known.GPUS_UNREADABLE, (), 0 if facts.node is None else len(facts.node.unreadable))


def _resources(facts: Facts, tally: Tally) -> Iterator[Sample]:
    for served in facts.served:
        name = served.resource.name
        slots = tally.of_resource(name)
        yield Sample(known.DEVICES, (name, "healthy"), slots.healthy)
        yield Sample(known.DEVICES, (name, "unhealthy"), slots.total - slots.healthy)
        yield Sample(known.DEVICES_USED, (name,), slots.used)
        yield Sample(known.PLUGIN_STATE, (name, served.state), 1)
        yield Sample(known.STREAMS, (name,), served.streams)


def _numa_node(gpu: Gpu) -> str:
    return "" if gpu.numa_node is None else str(gpu.numa_node)
