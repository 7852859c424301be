"""`gpustow simulate`: the real plugin on a simulated node, pods admitted, policies side by side."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from gpustow.cli.logs import LogFormat, LogLevel, set_up_logs
from gpustow.cli.options import HELP_FLAGS, LogFormatName, LogLevelName, NodeModelName, Output, OutputForm
from gpustow.config import load_config
from gpustow.errors import CheckFailed
from gpustow.hardware.nodemodel import load_node_model
from gpustow.resources import build_catalog
from gpustow.simulation.experiment import Experiment
from gpustow.simulation.outcome import Outcome
from gpustow.simulation.report import render_json
from gpustow.simulation.scenario import FIRST_NODE_MODEL, FIRST_POLICIES, default_flags, three_pods
from gpustow.simulation.workload import load_workload

_MOST_NAMED = 10

_HELP = """Runs the real plugin on a simulated node, and shows which devices pods get.

Starts the daemon and an embedded kubelet in a temporary directory, admits the pods of a workload one after the other,
and shows what each got and how many GPUs are left wholly free. Needs no GPU, no cluster, no root. Without options:
three pods on four A100 cut into five MIG devices each, under distributed and packed. The environment of this shell has
no say in the plugin's configuration.

\b
Examples:
  gpustow simulate
  gpustow simulate --node-model t4-4 --config time-slicing.yaml --pods pods.yaml
  gpustow simulate --pods pods.yaml --policy packed -o json
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("simulate", help=_HELP, context_settings=HELP_FLAGS)(simulate)


def simulate(
    *,
    node_model: NodeModelName = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="The plugin's configuration file, v1. Where not given: its defaults, with MIG devices served.",
        ),
    ] = None,
    pods: Annotated[
        str | None, typer.Option("--pods", metavar="FILE", help="The workload: which pods come, and which go again.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Takes the place of sharedDevicesAllocationPolicy. Give it again to compare. Where not given: that of "
            "--config, or without one distributed and packed.",
        ),
    ] = None,
    output: OutputForm = Output.TABLE,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of all that is arbitrary in kubelet.")] = 0,
    strict: Annotated[bool, typer.Option("--strict", help="End with 8 if a pod was ever refused.")] = False,
    log_format: LogFormatName = LogFormat.TEXT,
    log_level: LogLevelName = LogLevel.ERROR,
) -> None:
    """The command."""
    set_up_logs(log_format, log_level)
    experiment = _experiment(node_model or FIRST_NODE_MODEL, config, pods, seed)
    policies = _policies(policy, config)
    for name in policies:
        experiment.config(name)
    outcomes = asyncio.run(_run(experiment, policies))
    _tell_warnings(outcomes)
    if output is Output.JSON:
        sys.stdout.write(render_json(outcomes))
    else:
        _print_table(outcomes, experiment)
    refused = {pod.key for outcome in outcomes for pod in outcome.refused()}
    if strict and refused:
        raise CheckFailed(f"pods were refused: {', '.join(sorted(refused)[:_MOST_NAMED])}")


def _experiment(node_model: str, config: str | None, pods: str | None, seed: int) -> Experiment:
    model = load_node_model(node_model)
    flags = default_flags(model.node) if config is None else {"config-file": config}
    workload = None if pods is None else load_workload(pods)
    if workload is None:
        catalog = build_catalog(model.node, load_config(flags, {}).config)
        workload = three_pods(catalog.resources[0].name if catalog.resources else "nvidia.com/gpu")
    return Experiment(node_model=model, workload=workload, flags=flags, seed=seed)


def _policies(named: Sequence[str] | None, config: str | None) -> tuple[str | None, ...]:
    if named:
        return tuple(dict.fromkeys(named))
    return FIRST_POLICIES if config is None else (None,)


async def _run(experiment: Experiment, policies: Sequence[str | None]) -> list[Outcome]:
    outcomes = []
    for name in policies:
        with _progress(name) as progress:
            outcomes.append(await experiment.run(name, progress))
    return outcomes


def _somebody_looks() -> bool:
    return sys.stderr.isatty()


@contextmanager
def _progress(policy: str | None) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr while a long workload runs, if somebody looks."""
    if not _somebody_looks():
        yield lambda _done, _total: None
        return
    from rich.console import Console  # noqa: PLC0415 - only for people who look
    from rich.progress import Progress  # noqa: PLC0415 - as above

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(policy or "simulating", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _tell_warnings(outcomes: Sequence[Outcome]) -> None:
    for warning in dict.fromkeys(warning for outcome in outcomes for warning in outcome.warnings):
        typer.echo(f"warning: {warning}", err=True)


def _print_table(outcomes: Sequence[Outcome], experiment: Experiment) -> None:
    from rich.console import Console  # noqa: PLC0415 - JSON needs none of it

    from gpustow.simulation.summary import print_summary  # noqa: PLC0415 - as above

    # NO_COLOR means no escape codes at all here, bold ones included.
    console = Console(color_system=None if os.environ.get("NO_COLOR") else "auto")
    print_summary(console, outcomes, _heading(outcomes[0], experiment))


def _heading(outcome: Outcome, experiment: Experiment) -> str:
    models = ", ".join(dict.fromkeys(gpu.model for gpu in outcome.node.gpus))
    flags = " ".join(f"--{name}={value}" for name, value in experiment.flags.items())
    pods = len({action.pod.key for action in experiment.workload.actions})
    return (
        f"node      {outcome.node.name}: {len(outcome.node.gpus)} x {models}\n"
        f"plugin    {flags or 'with its defaults'}\n"
        f"workload  {experiment.workload.source}: {pods} {'pod' if pods == 1 else 'pods'}"
    )
