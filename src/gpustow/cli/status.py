"""`gpustow status`: what a running daemon knows of its node, in the terminal."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated, Any, assert_never

import typer

from gpustow.cli.daemonclient import fetch_status
from gpustow.cli.options import HELP_FLAGS
from gpustow.cli.standardoutput import write_out
from gpustow.errors import DaemonError

DEFAULT_ADDRESS = "127.0.0.1:9402"

_HELP = """Shows the node as a running daemon sees it: who holds which device, what is sick, and what it decided.

Asks the daemon at the address that its --metrics-address gave it; where both share an environment, as in the daemon's
container, GPUSTOW_METRICS_ADDRESS is enough. Each cell is a MIG device or replica, its letter the pod that holds it.
JSON and YAML are what the daemon answers at /api/v1/node.

\b
Examples:
  gpustow status
  gpustow status --address 10.0.0.7:9402 --watch
  gpustow status -o json
  kubectl exec -n kube-system ds/gpustow-device-plugin -- gpustow status
"""

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_LEAST_SECONDS = 0.1


class Output(StrEnum):
    """The forms in which the status is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("status", help=_HELP, context_settings=HELP_FLAGS)(status)


def _or_default(value: str) -> str:
    return value or DEFAULT_ADDRESS


def status(
    *,
    address: Annotated[
        str,
        typer.Option(
            "--address",
            metavar="HOST:PORT",
            envvar="GPUSTOW_METRICS_ADDRESS",
            callback=_or_default,
            help="Where the daemon listens; :PORT is this machine.",
        ),
    ] = DEFAULT_ADDRESS,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on, and draw anew, until interrupted.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", min=_LEAST_SECONDS, metavar="SECONDS", help="Between two looks of --watch.")
    ] = 2.0,
    output: Annotated[Output, typer.Option("--output", "-o", help="How the status is written.")] = Output.TABLE,
) -> None:
    """The command."""
    first = _written(address, output)
    if not watch:
        write_out(first)
        return
    drawn = output is Output.TABLE
    try:
        for text in _looks(first, lambda: _written(address, output), interval):
            write_out(f"{_before(drawn=drawn)}{text}")
    except KeyboardInterrupt:
        write_out("\n" if drawn and sys.stdout.isatty() else "")


def _looks(first: str, look: Callable[[], str], interval: float) -> Iterator[str]:
    """The first text, and a new one again and again; an error that passes is told on stderr."""
    yield first
    while True:
        time.sleep(interval)
        try:
            text = look()
        except DaemonError as error:
            typer.echo(f"{error.message}; trying again", err=True)
        else:
            yield text


def _before(*, drawn: bool) -> str:
    """What a picture starts with: a clear screen where somebody looks, a line of its own where it goes to a file."""
    if not drawn:
        return ""
    return _CLEAR if sys.stdout.isatty() else "\n"


def _written(address: str, output: Output) -> str:
    data = fetch_status(address)
    match output:
        case Output.TABLE:
            return _table(address, data)
        case Output.JSON:
            return json.dumps(data, indent=2) + "\n"
        case Output.YAML:
            import yaml  # noqa: PLC0415 - only here

            return yaml.safe_dump(data, sort_keys=False, explicit_start=True)
        case _:
            assert_never(output)


def _table(address: str, data: Any) -> str:
    from rich.console import Console  # noqa: PLC0415 - JSON needs none of it

    from gpustow.cli.statuspicture import draw_status  # noqa: PLC0415 - as above
    from gpustow.simulation.picture import strokes_for  # noqa: PLC0415 - as above
    from gpustow.telemetry.statusreader import read_status  # noqa: PLC0415 - as above

    try:
        known = read_status(_printable(data))
    except ValueError as error:
        raise DaemonError(
            address,
            f"the answer is not understood: {error}",
            advice="It may be of another version: -o json shows it as it is.",
        ) from error
    # NO_COLOR means no escape codes at all here, bold ones included.
    console = Console(color_system=None if os.environ.get("NO_COLOR") else "auto")
    with console.capture() as written:
        for line in draw_status(known, strokes_for(console.encoding)):
            console.print(line, soft_wrap=True)
    return written.get()


def _printable(data: Any) -> Any:
    """The data without characters that would act on the terminal: names and reasons come from elsewhere."""
    if isinstance(data, dict):
        return {_printable(key): _printable(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_printable(each) for each in data]
    if isinstance(data, str):
        return "".join(character if character.isprintable() else " " for character in data)
    return data
