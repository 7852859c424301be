"""`gpustow models`: the node models that come with the package, and what each looks like."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from gpustow.cli.nodepicture import draw_node, wrapped_columns
from gpustow.cli.options import HELP_FLAGS, Output, OutputForm
from gpustow.cli.plaindata import written
from gpustow.cli.standardoutput import write_out
from gpustow.hardware.fabrics import FABRICS
from gpustow.hardware.modelfile import node_model_schema
from gpustow.hardware.node import Gpu
from gpustow.hardware.nodemodel import NodeModel, load_node_model, shipped_models

_HELP = """Lists the node models that come with gpustow: simulated machines for --node-model.

\b
Examples:
  gpustow models
  gpustow models show dgx-a100
  gpustow models show ./my-node.yaml
  gpustow models fabrics
  gpustow models schema > node-model.schema.json
"""

_SHOW_HELP = """Draws a node model: GPUs, links, MIG layout.

The name is that of a shipped model, or the path of a file, which is checked on the way.
"""

_FABRICS_HELP = """Lists the fabrics: how the GPUs of a node model are linked, for links.fabric in its file.

\b
  links: {fabric: islands}
  links: {fabric: random, seed: 7}
"""

_MORE = """\
MIG counts MIG devices. A file of your own is a node model, too: start from
`gpustow inspect -o node-model`. `gpustow models fabrics` lists the links that
such a file can name, synthetic ones among them."""

_SCHEMA_HELP = "Prints the JSON schema of node model files, for editors and checkers."


def register(app: typer.Typer) -> None:
    """Adds the command and those below it."""
    models = typer.Typer(invoke_without_command=True, context_settings=HELP_FLAGS)
    models.callback(help=_HELP, context_settings=HELP_FLAGS)(list_models)
    models.command("show", help=_SHOW_HELP, context_settings=HELP_FLAGS)(show)
    models.command("fabrics", help=_FABRICS_HELP, context_settings=HELP_FLAGS)(fabrics)
    models.command("schema", help=_SCHEMA_HELP, context_settings=HELP_FLAGS)(schema)
    app.add_typer(models, name="models")


def list_models(
    context: typer.Context,
    *,
    output: OutputForm = Output.TABLE,
) -> None:
    """The command, unless one below it is named."""
    if context.invoked_subcommand is not None:
        return
    models = [load_node_model(name) for name in shipped_models()]
    if output is not Output.TABLE:
        entries = [
            {
                "name": model.name,
                "description": model.description,
                "platform": model.node.platform.value,
                "gpus": len(model.node.gpus),
                "mig_devices": sum(len(gpu.mig_devices) for gpu in model.node.gpus),
            }
            for model in models
        ]
        write_out(written(entries, output))
        return
    rows = [(model.name, str(len(model.node.gpus)), _mig(model.node.gpus), model.description) for model in models]
    write_out(wrapped_columns([("NAME", "GPUS", "MIG", "DESCRIPTION"), *rows]) + f"\n\n{_MORE}\n")


def _mig(gpus: Sequence[Gpu]) -> str:
    return str(sum(len(gpu.mig_devices) for gpu in gpus) or "-")


def show(name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="Which node model.")]) -> None:
    """The command that draws one."""
    model = load_node_model(name)
    write_out(draw_node(model.node, model.description) + _faults(model))


def _faults(model: NodeModel) -> str:
    """The schedule of faults, in the words of the file."""
    if not model.faults:
        return ""
    lines = (
        f"  after {fault.after:g} s  {fault.text}" for fault in sorted(model.faults, key=lambda fault: fault.after)
    )
    return "\nFaults\n" + "\n".join(lines) + "\n"


def fabrics() -> None:
    """The command that lists the fabrics."""
    rows = [(name, _sizes(fabric.sizes), fabric.description) for name, fabric in FABRICS.items()]
    write_out(wrapped_columns([("FABRIC", "GPUS", "DESCRIPTION"), *rows]) + "\n")


def _sizes(sizes: Sequence[int]) -> str:
    return " ".join(map(str, sizes)) or "any"


def schema() -> None:
    """The command that prints the schema."""
    write_out(json.dumps(node_model_schema(), indent=2, ensure_ascii=False) + "\n")
