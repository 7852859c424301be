"""`gpustow explain`: which devices a request would get, and why, from a node, a configuration and what is in use."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated

import typer

from gpustow.cli.nodepicture import columns
from gpustow.cli.options import HELP_FLAGS, ConfigFileName, NodeModelName, Output, OutputForm, SystemRoot
from gpustow.cli.plaindata import written
from gpustow.cli.question import Question, Questioned, answer_data, resource_named
from gpustow.cli.reader import reader_maker
from gpustow.config import Config, load_config
from gpustow.errors import InfeasibleRequest, InputFileError, Problem, UsageError
from gpustow.placement import Placement, Policy
from gpustow.placement.explain import Explanation
from gpustow.placement.policy import SHARED_POLICIES
from gpustow.plugin.placementpolicy import policy_of
from gpustow.resources import build_catalog
from gpustow.resources.device import REPLICA_SEPARATOR, Resource
from gpustow.simulation.scenario import default_flags

_HELP = """Says which devices a request would get, and why: the policy's objective, and the next best answer.

Asks the same code as the plugin, about this machine or a node model. Devices are named by id, or by index: 3 for a GPU,
3:1 for a MIG device, 3::0 for a replica; several in one option are separated by commas. With --batch, questions are
read from stdin, one JSON object a line with size, offered, must_include, policy and in_use, and answered one a line.

\b
Examples:
  gpustow explain --node-model dgx-1-v100 --size 2
  gpustow explain --node-model a100-4-mig-5 --policy packed --in-use 2:0,3:0
  gpustow explain --node-model t4-4 --config sharing.yaml --size 2 -o json
  gpustow explain --node-model t4-4 --batch < questions.jsonl
"""

_SINGLY = 2
"""Up to how many equal entries of a value are written one by one."""

_RUNS_SHOWN = 4
"""The most entries of a value, equal ones taken together, that the table shows; JSON has them all."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("explain", help=_HELP, context_settings=HELP_FLAGS)(explain)


def _devices(flag: str, meaning: str) -> object:
    return typer.Option(flag, metavar="DEVICE,...", help=meaning)


def explain(
    *,
    node_model: NodeModelName = None,
    system_root: SystemRoot = "/",
    config: ConfigFileName = None,
    resource: Annotated[
        str | None, typer.Option("--resource", metavar="NAME", help="The resource asked for, if there are several.")
    ] = None,
    size: Annotated[int, typer.Option("--size", help="How many devices are asked for.")] = 1,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="NAME", help="Takes the place of the configured policy.")
    ] = None,
    in_use: Annotated[list[str] | None, _devices("--in-use", "Devices in use, of any resource of the node.")] = None,
    offered: Annotated[
        list[str] | None,
        _devices("--offered", "What kubelet offers. Where not given: all healthy devices that are not in use."),
    ] = None,
    must_include: Annotated[
        list[str] | None, _devices("--must-include", "Devices that the answer has to hold.")
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Answer questions from stdin, JSON lines.")] = False,
    output: OutputForm = Output.TABLE,
) -> None:
    """The command."""
    if batch and (size != 1 or policy or in_use or offered or must_include):
        raise UsageError(
            "--batch takes its questions from stdin alone",
            advice="Write size, policy, in_use, offered and must_include into each line.",
        )
    node = reader_maker(node_model, os.environ, system_root)(Config()).read()
    flags = default_flags(node) if config is None else {"config-file": config}
    settings = load_config(flags, {}).config
    resources = build_catalog(node, settings).resources
    asked = resource_named(resource, resources, node.name)
    questioned = Questioned(asked, resources, node.links, _policies(asked, settings))
    if batch:
        _answer_lines(questioned)
        return
    question = Question(size, _names(offered), _names(must_include) or (), policy, _names(in_use))
    placement = questioned.answer(question)
    if asked.requests_limited_to_one and size > 1 and any(device.replica is not None for device in asked.devices):
        typer.echo(
            f"warning: Allocate would refuse {size} devices of {asked.name}, because of failRequestsGreaterThanOne",
            err=True,
        )
    if output is Output.TABLE:
        sys.stdout.write("\n".join(_table(asked, placement)) + "\n")
    else:
        sys.stdout.write(written({"resource": asked.name, **answer_data(placement)}, output))


def _names(words: Sequence[str] | None) -> list[str] | None:
    """The names in options that hold several, separated by commas."""
    return None if words is None else [name for word in words for name in word.split(",") if name]


def _policies(resource: Resource, config: Config) -> dict[str | None, Policy]:
    """The policies that a question can name, each with the rule of the resource, and the configured one for None."""
    configured = policy_of(resource.name, config)
    named: dict[str | None, Policy] = {
        name: configured if name == configured.name.value else Policy.named(name, rule=configured.rule)
        for name in SHARED_POLICIES
    }
    return named | {None: configured}


def _answer_lines(questioned: Questioned) -> None:
    """Answer each line of stdin on a line of stdout; at the end, raise InputFileError for those that are none."""
    problems: list[Problem] = []
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        try:
            answer = answer_data(questioned.answer(Question.parse(json.loads(line))))
        except InfeasibleRequest as error:
            answer = {"error": error.message}
        except (ValueError, RecursionError, UsageError) as error:
            message = error.message if isinstance(error, UsageError) else f"it is not JSON: {error}"
            problems.append(Problem(f"line {number}", message))
            answer = {"error": message}
        sys.stdout.write(json.dumps(answer) + "\n")
    if problems:
        raise InputFileError("stdin", problems)


def _table(resource: Resource, placement: Placement) -> Iterator[str]:
    """The answer for people: each GPU, each line of the objective, the devices, and the sentence."""
    explanation = placement.explanation()
    yield columns([("GPU", "FREE", "IN USE", "LOAD", "TAKES", "LOAD AFTER"), *_gpu_rows(explanation)])
    yield ""
    yield columns([("OBJECTIVE", "ANSWER", "NEXT BEST", ""), *_line_rows(explanation)])
    yield ""
    yield f"{resource.name}: {', '.join(_shortened(placement.device_ids)) or 'nothing'}"
    yield explanation.sentence
    if not placement.exact:
        yield "There are too many answers to weigh them all: this is the best one that was found."


def _shortened(ids: Sequence[str]) -> Iterator[str]:
    """The ids, replicas of one device that follow each other as `<uuid>::0-7`."""
    start = 0
    while start < len(ids):
        uuid, separator, first = ids[start].partition(REPLICA_SEPARATOR)
        stop = start + 1
        while first.isdigit() and stop < len(ids) and ids[stop] == f"{uuid}{separator}{int(first) + stop - start}":
            stop += 1
        yield ids[start] if stop == start + 1 else f"{ids[start]}-{int(first) + stop - start - 1}"
        start = stop


def _gpu_rows(explanation: Explanation) -> Iterator[Sequence[str]]:
    for gpu in explanation.gpus:
        numbers = (gpu.index, gpu.free, gpu.in_use, gpu.load, gpu.takes or "-", gpu.load_after)
        yield [str(number) for number in numbers]


def _line_rows(explanation: Explanation) -> Iterator[Sequence[str]]:
    other = explanation.runner_up
    for name, value in explanation.winner.objective.items():
        theirs = "-" if other is None else _shown(other.objective[name])
        yield name, _shown(value), theirs, "decided" if name == explanation.decided_by else ""


def _shown(value: object) -> str:
    """A value as it fits a column: `3x 1/10` for equal entries that follow each other, and no more than a few."""
    if not isinstance(value, list):
        return str(value)
    runs = [(entry, len(list(run))) for entry, run in groupby(value)]
    parts = [f"{number}x {entry}" if number > _SINGLY else " ".join([str(entry)] * number) for entry, number in runs]
    return " ".join(parts[:_RUNS_SHOWN] + ["..."] * (len(parts) > _RUNS_SHOWN))
