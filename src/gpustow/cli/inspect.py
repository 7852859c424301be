"""`gpustow inspect`: the node as it is read, to look at, to attach to a bug report, or to simulate elsewhere."""

import os
from enum import StrEnum
from typing import Annotated, assert_never

import typer

from gpustow.cli import options
from gpustow.cli.nodepicture import draw_node
from gpustow.cli.options import HELP_FLAGS, NodeModelName, SystemRoot, output_option
from gpustow.cli.plaindata import written
from gpustow.cli.reader import reader_maker
from gpustow.cli.standardoutput import write_out
from gpustow.config import Config, load_config
from gpustow.hardware.modelwriter import write_node_model
from gpustow.hardware.node import Node
from gpustow.hardware.nodedata import node_data

_HELP = """Prints the node as gpustow reads it: GPUs, MIG devices, links, and what could not be read.

Reads this machine's driver, where the environment and the configuration file of `gpustow plugin` say that it is, or a
node model. Attach the output to a bug report; with -o node-model it is a file that makes any machine simulate this one.

\b
Examples:
  gpustow inspect
  gpustow inspect -o node-model > node.yaml
  gpustow inspect --node-model node.yaml -o json
"""


class Output(StrEnum):
    """The forms in which a node is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NODE_MODEL = "node-model"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("inspect", help=_HELP, context_settings=HELP_FLAGS)(inspect)


def inspect(
    *,
    node_model: NodeModelName = None,
    system_root: SystemRoot = "/",
    output: Annotated[Output, output_option(Output)] = Output.TABLE,
) -> None:
    """The command."""
    loaded = None if node_model is not None else load_config({}, os.environ)
    for warning in () if loaded is None else loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    config = Config() if loaded is None else loaded.config
    node = reader_maker(node_model, os.environ, system_root)(config).read()
    write_out(_written(node, output))


def _written(node: Node, output: Output) -> str:
    match output:
        case Output.TABLE:
            return draw_node(node)
        case Output.JSON:
            return written(node_data(node), options.Output.JSON)
        case Output.YAML:
            return written(node_data(node), options.Output.YAML)
        case Output.NODE_MODEL:
            return write_node_model(node)
        case _:
            assert_never(output)
