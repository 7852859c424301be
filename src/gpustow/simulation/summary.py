"""The outcomes for a human in a terminal: what was advertised, each pod with what it got, the pictures, one sentence.

The order is that of a terminal, where the end stays on the screen: long lists first, then the pictures side by side,
and the sentence that sums up as the last line. What is long is shortened here, and says so; `-o json` has all of it.

Limits: plain lines rather than tables with borders, so that ids and environment can be selected, copied and grepped.
"""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from gpustow.simulation.outcome import Advertised, ContainerOutcome, Outcome, Phase, PodOutcome, comparison
from gpustow.simulation.picture import assign_symbols, draw, draw_legend, side_by_side, strokes_for, style_of

MOST_PODS = 40
"""How many pods are listed a policy."""

MOST_IDS = 8
"""How many ids are listed a container and resource."""

LONGEST_VALUE = 400
"""How many characters of an environment variable are shown."""


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
        Text(),
        Text(comparison(outcomes)),
    ]
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


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
    for pod in outcome.pods[:MOST_PODS]:
        yield _pod(pod, symbols.get(pod.key, " "), places)
        for container in pod.containers:
            yield from _container(container, named=len(pod.containers) > 1)
    left_out = outcome.pods[MOST_PODS:]
    if left_out:
        told = ", ".join(
            f"{sum(pod.phase is phase for pod in left_out)} {phase.value}"
            for phase in Phase
            if any(pod.phase is phase for pod in left_out)
        )
        yield Text(f"  and {_number(len(left_out), 'more pod')} ({told}); -o json lists all", style="dim")


def _places(outcome: Outcome) -> dict[str, str]:
    """Where a device lies, in words, by its id."""
    return {
        device.id: f"GPU {device.gpu_index}"
        if device.mig is None
        else f"GPU {device.gpu_index} {device.mig.profile.name}"
        for resource in outcome.resources
        for device in resource.devices
    }


def _pod(pod: PodOutcome, symbol: str, places: Mapping[str, str]) -> Text:
    line = Text("  ").append(symbol, style=style_of(symbol)).append(f" {pod.key}  ")
    if pod.phase is Phase.REFUSED:
        return line.append(f"refused ({pod.reason}): {pod.message}", style="red")
    line.append(pod.phase.value, style="green" if pod.phase is Phase.RUNNING else "dim")
    on = dict.fromkeys(places.get(id_, "unknown") for id_ in pod.device_ids)
    return line.append(f"  {', '.join(on)}" if on else "  no devices")


def _container(container: ContainerOutcome, *, named: bool) -> Iterator[Text]:
    if named:
        yield Text(f"      container {container.name}")
    for resource, ids in container.device_ids.items():
        more = f" and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else ""
        yield Text(f"      {resource}: {' '.join(ids[:MOST_IDS])}{more}")
    for name, value in container.envs.items():
        shown = value if len(value) <= LONGEST_VALUE else f"{value[:LONGEST_VALUE]}..."
        yield Text(f"      {name}={shown}")
