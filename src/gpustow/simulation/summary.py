"""The outcomes for a human in a terminal: what was advertised, each pod with what it got, the pictures, one sentence.

The order is that of a terminal, where the end stays on the screen: long lists first, then the pictures side by side,
and the sentence that sums up as the last line. What is long is shortened here, and says so; `-o json` has all of it.

Limits: plain lines rather than tables with borders, so that ids and environment can be selected, copied and grepped.
"""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from gpustow.resources.device import REPLICA_SEPARATOR
from gpustow.simulation.outcome import Advertised, ContainerOutcome, Outcome, Phase, PodOutcome, Refusal, comparison
from gpustow.simulation.picture import assign_symbols, draw, draw_legend, side_by_side, strokes_for, style_of

MOST_PODS = 40
"""How many pods are listed a policy; those that were ever refused are listed however many there are."""

MOST_IDS = 8
"""How many ids are listed a container and resource; replicas of one device count as one."""

LONGEST_VALUE = 400
"""How many characters of an environment variable or annotation are shown."""


def print_summary(console: Console, outcomes: Sequence[Outcome], heading: str) -> None:
    """Writes the outcomes to the console; `heading` says what was run."""
    symbols = assign_symbols(outcomes)
    pictures = [draw(outcome, symbols, strokes_for(console.encoding)) for outcome in outcomes]
    lines = [
        Text(heading, style="bold"),
        *_advertised(outcomes),
        *(line for outcome in outcomes for line in _pods(outcome, symbols)),
        Text(),
        *side_by_side(pictures, console.width),
        *draw_legend(symbols, console.width),
        *_no_choice(outcomes),
        Text(),
        Text(comparison(outcomes)),
    ]
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def _no_choice(outcomes: Sequence[Outcome]) -> Iterator[Text]:
    """Says why the policies do not differ, where they cannot."""
    if all(outcome.whole_gpus_only for outcome in outcomes):
        yield Text()
        yield Text("Nothing is shared or cut here, so whole GPUs are placed by `aligned` under any policy.")


def _advertised(outcomes: Sequence[Outcome]) -> Iterator[Text]:
    yield Text()
    yield Text("Resources advertised to kubelet", style="bold")
    by_counts: dict[tuple[tuple[str, Advertised], ...], list[str]] = {}
    for outcome in outcomes:
        by_counts.setdefault(tuple(sorted(outcome.advertised.items())), []).append(outcome.policy)
    for counts, policies in by_counts.items():
        if len(by_counts) > 1:
            yield Text(f"  under {', '.join(policies)}")
        for name, count in counts:
            unhealthy = count.capacity - count.allocatable
            sick = f", {unhealthy} of them unhealthy" if unhealthy else ""
            yield Text(f"  {name}  {_number(count.capacity, 'device')}{sick}")
        if not counts:
            yield Text("  none")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _pods(outcome: Outcome, symbols: Mapping[str, str]) -> Iterator[Text]:
    yield Text()
    yield Text(f"Pods under {outcome.policy}", style="bold")
    places = _places(outcome)
    left_out = [pod for pod in outcome.pods[MOST_PODS:] if not pod.refusals]
    for pod in (*outcome.pods[:MOST_PODS], *(pod for pod in outcome.pods[MOST_PODS:] if pod.refusals)):
        yield _pod(pod, symbols.get(pod.key, " "), places)
        yield from _earlier_refusals(pod)
        for container in pod.containers:
            yield from _container(container, named=len(pod.containers) > 1)
    if left_out:
        told = ", ".join(
            f"{sum(pod.phase is phase for pod in left_out)} {phase.value}"
            for phase in Phase
            if any(pod.phase is phase for pod in left_out)
        )
        yield Text(f"  and {_number(len(left_out), 'more pod')} ({told}); -o json lists all", style="dim")


def _listed(ids: Sequence[str]) -> list[str]:
    """Ids for reading: the replicas of one device in one word, as `GPU-...::0-3,7`."""
    replicas: dict[str, list[int]] = {}
    for id_ in ids:
        uuid, _, number = id_.partition(REPLICA_SEPARATOR)
        replicas.setdefault(uuid, []).extend([int(number)] if number else [])
    return [
        f"{uuid}{REPLICA_SEPARATOR}{_ranges(sorted(numbers))}" if numbers else uuid
        for uuid, numbers in replicas.items()
    ]


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as `0-3,7`."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _places(outcome: Outcome) -> dict[str, tuple[int, str]]:
    """Where a device lies, by its id: the GPU's index, and the MIG profile if it has one."""
    return {
        device.id: (device.gpu_index, "" if device.mig is None else f" {device.mig.profile.name}")
        for resource in outcome.resources
        for device in resource.devices
    }


def _pod(pod: PodOutcome, symbol: str, places: Mapping[str, tuple[int, str]]) -> Text:
    line = Text("  ").append(symbol, style=style_of(symbol)).append(f" {pod.key}  ")
    if pod.phase is Phase.UNSCHEDULABLE:
        return line.append(f"unschedulable: {pod.refusals[-1].message}", style="red")
    if pod.phase is Phase.REFUSED:
        return line.append(_refused(pod.refusals[-1]), style="red")
    line.append(pod.phase.value, style="green" if pod.phase is Phase.RUNNING else "dim")
    on = sorted({places[id_] for id_ in pod.device_ids if id_ in places})
    return line.append("  " + (", ".join(f"GPU {index}{profile}" for index, profile in on) or "no devices"))


def _earlier_refusals(pod: PodOutcome) -> Iterator[Text]:
    for refusal in pod.refusals[:-1] if pod.turned_away else pod.refusals:
        yield Text(f"      before that {_refused(refusal)}", style="red")


def _refused(refusal: Refusal) -> str:
    return f"refused ({refusal.reason}): {refusal.message}"


def _container(container: ContainerOutcome, *, named: bool) -> Iterator[Text]:
    if named:
        yield Text(f"      container {container.name}")
    for resource, ids in container.device_ids.items():
        listed = _listed(ids)
        more = f" and {len(listed) - MOST_IDS} more" if len(listed) > MOST_IDS else ""
        yield Text(f"      {resource}: {' '.join(listed[:MOST_IDS])}{more}")
    for name, value in container.envs.items():
        yield Text(f"      {name}={_shortened(value)}")
    for key, value in container.annotations.items():
        yield Text(f"      annotation {key}={_shortened(value)}")
    if container.cdi_devices:
        yield Text(f"      CDI devices: {_shortened(' '.join(container.cdi_devices))}")


def _shortened(value: str) -> str:
    return value if len(value) <= LONGEST_VALUE else f"{value[:LONGEST_VALUE]}..."
