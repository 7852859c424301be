"""`gpustow simulate`: the real plugin on a simulated node, pods admitted, policies side by side."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Container, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from gpustow.cli.logs import LogFormat, LogLevel, set_up_logs
from gpustow.cli.options import HELP_FLAGS, ConfigFileName, LogFormatName, LogLevelName, Output, OutputForm
from gpustow.cli.plaindata import written
from gpustow.cli.standardoutput import write_out
from gpustow.config import load_config
from gpustow.config.strategies import SHARED_POLICIES
from gpustow.errors import CheckFailed, ConfigError, Problem
from gpustow.hardware.nodemodel import load_node_model
from gpustow.resources import build_catalog
from gpustow.simulation.experiment import Experiment
from gpustow.simulation.outcome import Outcome
from gpustow.simulation.report import report_data
from gpustow.simulation.scenario import FIRST_NODE_MODEL, FIRST_POLICIES, default_flags, three_pods
from gpustow.simulation.workload import load_workload

_MOST_NAMED = 10

_ENDING = (signal.SIGTERM, signal.SIGHUP)

_SUPERVISOR_LOG = "gpustow.plugin.supervisor"

_HELP = """Runs the real plugin on a simulated node, and shows which devices pods get.

Starts the daemon and an embedded kubelet in a temporary directory, admits the pods of a workload one after the other,
and shows what each got and how many GPUs are left wholly free. Needs no GPU, no cluster, no root. Without options:
three pods on four A100 cut into five MIG devices each, under distributed and packed. The environment of this shell has
no say in node and configuration.

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
    node_model: Annotated[
        str | None,
        typer.Option(
            "--node-model",
            metavar="NAME|FILE",
            help="The node: the name of a shipped node model (gpustow models lists them), or a file.",
        ),
    ] = None,
    config: ConfigFileName = None,
    pods: Annotated[
        str | None, typer.Option("--pods", metavar="FILE", help="The workload: which pods come, and which go again.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Takes the place of the policies in the configuration. Give it again to compare. Where not given: "
            "those of --config, or without one distributed and packed.",
        ),
    ] = None,
    output: OutputForm = Output.TABLE,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of all that is arbitrary in kubelet.")] = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 8 if a pod was ever refused or unschedulable.")
    ] = False,
    log_format: LogFormatName = LogFormat.TEXT,
    log_level: LogLevelName = LogLevel.ERROR,
) -> None:
    """The command."""
    set_up_logs(log_format, log_level)
    told = _WarningsToldOnce()
    for handler in logging.getLogger().handlers:
        handler.addFilter(told)
    _check_policies(policy or ())
    experiment = _experiment(node_model or FIRST_NODE_MODEL, config, pods, seed)
    policies = _policies(policy, config)
    for name in policies:
        experiment.config(name)
    outcomes = _unless_signalled(_run(experiment, policies))
    _tell_warnings(outcomes, told.messages)
    write_out(_table(outcomes, experiment) if output is Output.TABLE else written(report_data(outcomes), output))
    refused = {pod.key for outcome in outcomes for pod in outcome.refused()}
    if strict and refused:
        raise CheckFailed(f"pods were refused: {', '.join(sorted(refused)[:_MOST_NAMED])}")


class _WarningsToldOnce(logging.Filter):
    """Of the daemon's warnings, which it has under each policy anew, lets each through once, and keeps them."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is shown."""
        if record.name != _SUPERVISOR_LOG or record.levelno != logging.WARNING:
            return True
        message = record.getMessage()
        first = message not in self.messages
        self.messages.add(message)
        return first


def _check_policies(named: Sequence[str]) -> None:
    """Refuses a policy that there is not, by the name of our flag rather than of the plugin's."""
    problems = [
        Problem("--policy", f"unknown policy {name!r} (choose from {', '.join(SHARED_POLICIES)})")
        for name in dict.fromkeys(named)
        if name not in SHARED_POLICIES
    ]
    if problems:
        raise ConfigError("from the command line", problems)


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


def _unless_signalled(work: Coroutine[Any, Any, list[Outcome]]) -> list[Outcome]:
    """Does the work; SIGTERM and SIGHUP end it and the process, after everything was taken down."""
    told: list[int] = []
    outcomes = asyncio.run(_until_told(work, told))
    if outcomes is None:
        sys.exit(128 + told[0])
    return outcomes


async def _until_told(work: Coroutine[Any, Any, list[Outcome]], told: list[int]) -> list[Outcome] | None:
    """What the work gives, or None if a signal ended it, which then stands in `told`."""
    loop, task = asyncio.get_running_loop(), asyncio.create_task(work)

    def end(number: int) -> None:
        if not told:
            # Servers that are taken down half started complain, which nobody can act upon.
            logging.disable()
            task.cancel()
        told.append(number)

    # Who ignores a signal, as nohup does, means it.
    numbers = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, end, number)
    try:
        await asyncio.wait({task})
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
    return None if task.cancelled() else task.result()


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


def _tell_warnings(outcomes: Sequence[Outcome], logged: Container[str]) -> None:
    for warning in dict.fromkeys(warning for outcome in outcomes for warning in outcome.warnings):
        if warning not in logged:
            typer.echo(f"warning: {warning}", err=True)


def _table(outcomes: Sequence[Outcome], experiment: Experiment) -> str:
    from rich.console import Console  # noqa: PLC0415 - JSON needs none of it

    from gpustow.simulation.summary import print_summary  # noqa: PLC0415 - as above

    # NO_COLOR means no escape codes at all here, bold ones included.
    console = Console(color_system=None if os.environ.get("NO_COLOR") else "auto")
    with console.capture() as written:
        print_summary(console, outcomes, _heading(outcomes[0], experiment))
    return written.get()


def _heading(outcome: Outcome, experiment: Experiment) -> str:
    models = ", ".join(dict.fromkeys(gpu.model for gpu in outcome.node.gpus))
    flags = " ".join(f"--{name}={value}" for name, value in experiment.flags.items())
    pods = len({action.pod.key for action in experiment.workload.actions})
    return (
        f"node      {outcome.node.name}: {len(outcome.node.gpus)} x {models}\n"
        f"plugin    {flags or 'with its defaults'}\n"
        f"workload  {experiment.workload.source}: {pods} {'pod' if pods == 1 else 'pods'}"
    )
