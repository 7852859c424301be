"""The status of a node drawn for the terminal: whether it is ready, its resources, its GPUs, the last decisions.

    GPU 0  NUMA 0  NVIDIA A100-SXM4-40GB  healthy
           ┌───┬───┬───┬───┬───┐
           │ A │ B │   │   │   │ 2 of 5
           └───┴───┴───┴───┴───┘

Cells and letters are those of `gpustow simulate` (`simulation.picture`): a letter is a pod, `?` one that is not known.
What is sick and in nobody's hands is drawn after what is free, since a daemon counts those and does not tell them one
by one.

Everything fits into 80 columns but for names that have no end. Times are told as how long ago, by the daemon's clock.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap

from rich.text import Text

from gpustow.cli.nodepicture import columns, wrapped_columns
from gpustow.health.condition import Fitness
from gpustow.simulation.picture import DRAWN, LATER, SYMBOLS, Strokes, draw_card, draw_legend
from gpustow.telemetry.nodestatus import DeviceStatus, GpuStatus, HealthStatus, HeldStatus, NodeStatus

LINE_WIDTH = 80

MOST_DECISIONS = 5
"""JSON has all that the daemon keeps."""

NOT_KNOWN = "in use, by which pod is not known"
"""Stands in the legend, and for the holder of a cell that has none."""

_INDENT = " " * 7
_UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))
_STYLES = {Fitness.HEALTHY.value: "green", Fitness.RECOVERING.value: "yellow"}


def draw_status(status: NodeStatus, strokes: Strokes = DRAWN) -> list[Text]:
    """The lines of the whole picture."""
    symbols = _symbols(status)
    parts = [_heading(status), _resources(status), _gpus(status, symbols, strokes), _decisions(status)]
    lines: list[Text] = []
    for part in parts:
        if found := list(part):
            lines += [*([Text()] if lines else []), *found]
    return lines


def for_how_long(seconds: float) -> str:
    """`45s`, `3m20s`, `5h02m`, `3d04h`: two units of what is enough to tell."""
    whole = max(0, round(seconds))
    for size, name, lower, lower_name in _UNITS:
        if whole >= size:
            return f"{whole // size}{name}{whole % size // lower:02}{lower_name}"
    return f"{whole}s"


def _heading(status: NodeStatus) -> Iterator[Text]:
    ready = status.readiness.ready
    yield Text.assemble(
        (status.node or "a node that could not be read yet", "bold"),
        "  ",
        ("ready", "bold green") if ready else ("NOT READY", "bold red"),
    )
    facts = [
        f"gpustow {status.version}",
        f"driver {status.driver_version or 'not known'}",
        f"CUDA {status.cuda_version or 'not known'}",
        f"platform {status.platform or 'not known'}",
        "no configuration yet" if status.config is None else status.config.file or "no configuration file",
    ]
    yield from _filled(", ".join(facts), "", "dim")
    for check in status.readiness.checks:
        if not check.passed:
            yield from _filled(f"{check.name}: {check.reason}", "  ", "red")
    for note in status.notes:
        yield from _filled(f"could not be read: {note}", "  ", "yellow")
    for warning in () if status.config is None else status.config.warnings:
        yield from _filled(f"warning: {warning}", "  ", "yellow")
    if status.resources and not status.use_is_listed:
        yield from _filled("kubelet's PodResources does not say what is in use: this is what its calls tell", "  ", "")


def _filled(text: str, indent: str, style: str) -> Iterator[Text]:
    for line in wrap(text, LINE_WIDTH, initial_indent=indent, subsequent_indent=indent + "  "):
        yield Text(line, style=style)


def _resources(status: NodeStatus) -> Iterator[Text]:
    if not status.resources:
        return
    header = ("RESOURCE", "POLICY", "STATE", "ALL", "USED", "FREE", "BAD")
    rows = [
        (each.name, each.policy, each.state, str(each.devices), str(each.used), str(each.free), str(each.unhealthy))
        for each in status.resources
    ]
    for number, line in enumerate(columns([header, *rows]).splitlines()):
        yield Text(line, style="" if number else "bold")
    free = len(status.wholly_free_gpus)
    served = sum(gpu.served for gpu in status.gpus)
    yield Text(f"{free} of {served} GPUs wholly free", style="bold green" if free else "bold")


@dataclass(frozen=True, slots=True)
class _Slot:
    holder: str | None
    healthy: bool


def _holder(held: HeldStatus) -> str:
    return f"{held.holders[0].namespace}/{held.holders[0].pod}" if held.holders else NOT_KNOWN


def _symbols(status: NodeStatus) -> dict[str, str]:
    """A symbol for each pod, in the order in which they are met."""
    holders = dict.fromkeys(_holder(held) for gpu in status.gpus for device in gpu.devices for held in device.held)
    pods = [pod for pod in holders if pod != NOT_KNOWN]
    symbols = {pod: SYMBOLS[number] if number < len(SYMBOLS) else LATER for number, pod in enumerate(pods)}
    return symbols | ({NOT_KNOWN: "?"} if NOT_KNOWN in holders else {})


def _gpus(status: NodeStatus, symbols: Mapping[str, str], strokes: Strokes) -> Iterator[Text]:
    for gpu in status.gpus:
        yield from _gpu_heading(gpu, status.at)
        for devices in _rows(gpu):
            yield from _row_heading(devices, name_resource=len(status.resources) > 1)
            cells = [cell for device in devices for cell in _cells(device)]
            yield from (Text(_INDENT).append_text(line) for line in draw_card(cells, symbols, strokes))
        for device in gpu.devices:
            if device.profile and _is_sick_by_itself(device.health, gpu.health):
                yield from _sickness(f"{device.index} {device.profile}", device.health, status.at)
    yield from draw_legend(symbols, LINE_WIDTH)


def _gpu_heading(gpu: GpuStatus, at: float) -> Iterator[Text]:
    parts = [f"GPU {gpu.index}".ljust(5), f"NUMA {'-' if gpu.numa_node is None else gpu.numa_node}"]
    parts += [gpu.model or "model not known", *([] if gpu.served else ["not served"])]
    heading = Text("  ".join(parts), style="bold")
    if gpu.health.state == Fitness.HEALTHY.value:
        yield heading.append("  healthy", style="not bold green")
        return
    yield heading
    yield from _sickness("", gpu.health, at)


def _is_sick_by_itself(mine: HealthStatus, card: HealthStatus) -> bool:
    """Whether a MIG device has something to tell that its GPU does not."""
    return mine.state != Fitness.HEALTHY.value and (mine.state, mine.reason) != (card.state, card.reason)


def _sickness(what: str, health: HealthStatus, at: float) -> Iterator[Text]:
    since = "" if health.since is None else f" for {for_how_long(at - health.since)}"
    text = f"{what} {health.state}{since}: {health.reason}".strip()
    yield from _filled(text, _INDENT, _STYLES.get(health.state, "red"))


def _rows(gpu: GpuStatus) -> Iterator[Sequence[DeviceStatus]]:
    """The devices by row of cells: all in one if none is shared, else a row a resource."""
    shared = any(device.slots > 1 for device in gpu.devices)
    for _, devices in groupby(gpu.devices, key=lambda device: device.resource if shared else ""):
        yield list(devices)


def _row_heading(devices: Sequence[DeviceStatus], *, name_resource: bool) -> Iterator[Text]:
    """What the cells are: MIG devices by profile, and the resource where that does not say it."""
    words = []
    for (resource, profile), some in groupby(devices, key=lambda device: (device.resource, device.profile)):
        named = name_resource and (profile is None or any(device.slots > 1 for device in devices))
        words += [resource] if named else []
        words += [f"{profile} {' '.join(device.index for device in some)}"] if profile else []
    yield from _filled("  ".join(words), _INDENT, "dim")


def _cells(device: DeviceStatus) -> Iterable[_Slot]:
    """Those in use at the place of their replica, the others in the places that are left."""
    held = {each.replica or 0: _holder(each) for each in device.held}
    free = device.free
    for number in range(device.slots):
        if number in held:
            yield _Slot(held[number], healthy=True)
        else:
            yield _Slot(None, healthy=free > 0)
            free -= 1


def _decisions(status: NodeStatus) -> Iterator[Text]:
    shown = status.decisions[:MOST_DECISIONS]
    if not shown:
        return
    yield Text("Last decisions", style="bold")
    rows = [(f"{for_how_long(status.at - each.at)} ago", f"{each.resource}: {each.sentence}") for each in shown]
    yield from (Text(line) for line in wrapped_columns(rows).splitlines())
