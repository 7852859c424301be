"""`gpustow config`: what a configuration says, before a daemon finds out.

check   whether a file can be used, and what a node would offer under it
show    the configuration that holds here, and where each value comes from
schema  the JSON schema of the file
"""

import inspect
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from gpustow.cli.arguments import Flag, rewrite, tell_ignored
from gpustow.cli.options import HELP_FLAGS, NodeModelName, Output, OutputForm
from gpustow.cli.plaindata import written
from gpustow.cli.settingflags import (
    SETTING_FLAGS,
    FlagWords,
    flags_of,
    given_settings,
    keyword,
    setting_parameters,
)
from gpustow.cli.simulatednode import assumptions
from gpustow.config import LoadedConfig, load_config
from gpustow.errors import CheckFailed, ConfigError, HardwareError

_HELP = """Checks, shows and describes the plugin's configuration."""

_CHECK_HELP = """Reads a configuration file as the plugin would, and tells all that is wrong or without effect in it.

With a node model also what such a node would offer, the labels that it would have, and notes about both. Neither this
shell's environment nor this machine has a say. Ends with 0 if there is nothing to say or notes alone, 8 if there are
warnings, 3 if the plugin would refuse the file, 5 if the node's MIG devices do not go with it.

\b
Examples:
  gpustow config check config.yaml
  gpustow config check config.yaml --node-model a100-4-mig-5
  gpustow config check config.yaml --flag mps-root=/run/nvidia/mps
"""

_SHOW_HELP = """Prints the configuration that the plugin would have here: every value, and where it comes from.

Takes the plugin's flags, and this shell's environment.

\b
Example:
  MIG_STRATEGY=single gpustow config show --config-file=config.yaml
"""

_SCHEMA_HELP = """Prints the JSON schema of the configuration file, for editors and for checks of your own."""


def prepare(words: Sequence[str]) -> Sequence[str]:
    """The words after the command's name in the form that the command library takes. Raises UsageError."""
    if list(words[:1]) != ["show"]:
        return words
    flags = ["--output" if word == "-o" else word for word in words[1:]]
    line = rewrite(flags, [*SETTING_FLAGS, Flag(("output",))])
    tell_ignored(line)
    return [*words[:1], *line.words]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None, context_settings=HELP_FLAGS)
    group.command("check", help=_CHECK_HELP, context_settings=HELP_FLAGS)(check)
    group.command("show", help=_SHOW_HELP, context_settings=HELP_FLAGS)(_show_command())
    group.command("schema", help=_SCHEMA_HELP, context_settings=HELP_FLAGS)(schema)
    app.add_typer(group, name="config")


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The configuration file.")],
    *,
    node_model: NodeModelName = None,
    flag: FlagWords = None,
    output: OutputForm = Output.TABLE,
) -> None:
    """`gpustow config check`."""
    flags = {**flags_of(flag or []), "config-file": file}
    warnings: list[str] = []
    try:
        loaded = load_config(flags, {})
        warnings += loaded.warnings
        forecast = Forecast() if node_model is None else _forecast(loaded, node_model)
    except (ConfigError, HardwareError) as error:
        if output is Output.TABLE:
            sys.stdout.write("".join(f"warning: {warning}\n" for warning in warnings))
        else:
            warnings += error.warnings if isinstance(error, ConfigError) else ()
            refusal = {"file": file, "refused": _refusal(error), "warnings": warnings}
            sys.stdout.write(written(refusal, output))
        raise
    warnings += forecast.notes
    from gpustow.features import label_differences  # noqa: PLC0415 - many checks need no node

    notes = [] if node_model is None else [*label_differences(loaded.config), *assumptions(loaded.config)]
    if output is Output.TABLE:
        lines = _told(file, node_model, forecast, warnings)
        sys.stdout.write("".join(f"{line}\n" for line in (*lines, *(f"note: {note}" for note in notes))))
    else:
        told = {"resources": forecast.resources, "labels": dict(forecast.labels), "warnings": warnings, "notes": notes}
        sys.stdout.write(written({"file": file, **told}, output))
    if warnings:
        raise CheckFailed(f"{file} can be used, with {len(warnings)} {'warning' if len(warnings) == 1 else 'warnings'}")


def _refusal(error: ConfigError | HardwareError) -> list[dict[str, str]]:
    """What is wrong, one entry a fault, with its place in the file where it has one."""
    if isinstance(error, ConfigError):
        return [{"path": problem.path, "message": problem.message} for problem in error.problems]
    return [{"path": "", "message": error.message}]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a node would offer, the labels that it would have, and what is to be said about both."""

    resources: Sequence[dict[str, Any]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


def _forecast(loaded: LoadedConfig, node_model: str) -> Forecast:
    from gpustow.features import node_labels  # noqa: PLC0415 - many checks need no node
    from gpustow.hardware.nodemodel import load_node_model  # noqa: PLC0415 - as above
    from gpustow.plugin.placementpolicy import placement_notes  # noqa: PLC0415 - as above
    from gpustow.resources import build_catalog  # noqa: PLC0415 - as above

    node = load_node_model(node_model).node
    catalog = build_catalog(node, loaded.config)
    labels = node_labels(node, loaded.config)
    resources = [
        {
            "name": resource.name,
            "devices": len(resource.devices),
            "gpus": len({device.gpu_index for device in resource.devices}),
            "sharing": resource.sharing.value,
            "first_ids": [device.id for device in resource.devices[:3]],
        }
        for resource in catalog.resources
    ]
    notes = [*catalog.warnings, *placement_notes(catalog.resources, loaded.config), *labels.notes]
    return Forecast(resources, labels.labels, notes)


def _told(file: str, node_model: str | None, forecast: Forecast, warnings: Sequence[str]) -> Iterator[str]:
    yield from (f"warning: {warning}" for warning in warnings)
    if node_model is None:
        yield f"{file} can be used"
        return
    yield f"under {file} a node like {node_model} offers {'' if forecast.resources else 'nothing'}".rstrip()
    for each in forecast.resources:
        gpus = "1 GPU" if each["gpus"] == 1 else f"{each['gpus']} GPUs"
        yield f"  {each['name']}: {each['devices']} on {gpus}, sharing {each['sharing']}; {each['first_ids'][0]}, ..."
    if forecast.labels:
        yield "and has these labels, beside those that only the machine can tell (its type, gpu.mode, vgpu.present)"
    yield from (f"  {key}={value}" for key, value in sorted(forecast.labels.items()))


def _show_command() -> Any:
    """The function of `gpustow config show`, with a parameter for each setting."""

    def show(**given: Any) -> None:
        loaded = load_config(given_settings(given), os.environ)
        _show(loaded, given["output"])

    parameters = [*setting_parameters(), keyword("output", OutputForm, Output.TABLE)]
    show.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # functions may carry one
    return show


def _show(loaded: LoadedConfig, output: Output) -> None:
    from gpustow.config import effective as shown  # noqa: PLC0415 - only here

    values = shown.effective(loaded)
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if output is not Output.TABLE:
        file = None if loaded.file is None else {"path": loaded.file.path, "sha256": loaded.file.sha256}
        told = [{"name": each.name, "value": each.value, "origin": each.origin.value} for each in values]
        sys.stdout.write(written({"file": file, "settings": told, "warnings": list(loaded.warnings)}, output))
        return
    wide = max(len(each.name) for each in values)
    lines = [
        shown.summary(loaded)[0],
        *(f"{each.name:<{wide}}  {each.origin.value:<11}  {shown.written(each.value)}" for each in values),
    ]
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def schema() -> None:
    """`gpustow config schema`."""
    from gpustow.config.fileschema import file_schema  # noqa: PLC0415 - only here

    sys.stdout.write(written(file_schema(), Output.JSON))
