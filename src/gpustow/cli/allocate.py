"""`gpustow allocate`: what a container would get, as the plugin would answer kubelet."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import SystemRandom
from typing import Annotated, Any

import typer

from gpustow.cli.options import HELP_FLAGS, ConfigFileName, NodeModelName, Output, OutputForm, SystemRoot
from gpustow.cli.plaindata import written
from gpustow.cli.question import device_named, resource_named
from gpustow.cli.reader import host_reader, reader_maker
from gpustow.cli.settingflags import FlagWords, flags_of
from gpustow.cli.simulatednode import assumptions
from gpustow.cli.standardoutput import write_out
from gpustow.config import load_config
from gpustow.errors import UsageError
from gpustow.hardware.node import Node
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import ContainerAllocateResponse
from gpustow.placement import Request, place
from gpustow.plugin.offer import Offer, ServedResource
from gpustow.plugin.service import container_answer, response_id
from gpustow.simulation.scenario import default_flags

_HELP = """Prints what a container would get: variables, mounts, device nodes, annotations and CDI devices.

It is the plugin's own answer to kubelet's Allocate: on a node model, or on this machine with the configuration of this
environment, which in the plugin's container is its own. Without --config or --flag mig-strategy, MIG devices of a node
model are served. Devices are named by id, or by
index as in `gpustow explain`; each --ids is one container. Without --ids, the devices are those that the plugin prefers
for --size on an idle node. What the node lacks, and what in the configuration has no effect, is told on stderr. The key
of an annotation is another one each time.

\b
Examples:
  gpustow allocate --node-model t4-4 --ids 0,1
  gpustow allocate --node-model t4-4 --size 2 --flag device-list-strategy=cdi-cri -o yaml
  gpustow allocate --node-model a100-4-mig-5 --config config.yaml --resource mig-1g.10gb --ids 0:0 --ids 1:0
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("allocate", help=_HELP, context_settings=HELP_FLAGS)(allocate)


def allocate(
    *,
    node_model: NodeModelName = None,
    system_root: SystemRoot = "/",
    config: ConfigFileName = None,
    flag: FlagWords = None,
    resource: Annotated[
        str | None, typer.Option("--resource", metavar="NAME", help="The resource asked for, if there are several.")
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--ids", metavar="DEVICE,...", help="The devices of a container; once for each container."),
    ] = None,
    size: Annotated[
        int | None, typer.Option("--size", help="How many devices the plugin is to choose.", show_default="1")
    ] = None,
    output: OutputForm = Output.TABLE,
) -> None:
    """The command."""
    if ids is not None and size is not None:
        raise UsageError("--ids and --size cannot be used together", advice="Name the devices, or say how many.")
    given = {} if config is None else {"config-file": config}
    node, offer = _offer({**given, **flags_of(flag or [])}, node_model, system_root)
    served = _asked(resource, offer, node)
    containers = [_preferred(served, 1 if size is None else size)] if ids is None else _named(served, ids)
    random = SystemRandom()
    answers = [container_answer(served, devices, response_id(random)) for devices in containers]
    write_out(_written(served.resource.name, list(zip(containers, answers, strict=True)), output))


def _offer(flags: dict[str, object], node_model: str | None, system_root: str) -> tuple[Node, Offer]:
    """The node and what it offers; tells what is to be said about it."""
    environ = os.environ if node_model is None else {}
    loaded = load_config(flags, environ)
    node = reader_maker(node_model, os.environ, system_root)(loaded.config).read()
    if node_model is not None and "config-file" not in flags and "mig-strategy" not in flags:
        loaded = load_config({**default_flags(node), **flags}, {})
    offer = Offer.of(node, loaded.config, host_reader(node_model)(loaded.config, node.platform))
    for warning in (*loaded.warnings, *offer.notes):
        typer.echo(f"warning: {warning}", err=True)
    for note in () if node_model is None else assumptions(loaded.config):
        typer.echo(f"note: {note}", err=True)
    return node, offer


def _asked(name: str | None, offer: Offer, node: Node) -> ServedResource:
    """The resource of that name; the first one where none is named."""
    resource = resource_named(name, [served.resource for served in offer.served], node.name)
    return next(served for served in offer.served if served.resource is resource)


def _named(served: ServedResource, containers: Sequence[str]) -> list[tuple[str, ...]]:
    """The ids that each word names; tells of those that a word names again. Raises UsageError."""
    named = [tuple(device_named(name, served.resource).id for name in word.split(",") if name) for word in containers]
    for ids in named:
        for twice in (id_ for id_, times in Counter(ids).items() if times > 1):
            typer.echo(f"warning: one --ids names {twice} {Counter(ids)[twice]} times; kubelet never does", err=True)
    return named


def _preferred(served: ServedResource, size: int) -> tuple[str, ...]:
    """What the plugin would choose on an idle node. Raises InfeasibleRequest."""
    healthy = tuple(device.id for device in served.resource.devices if device.healthy)
    return place(Request(healthy, (), size), served.inventory, served.policy).device_ids


def _written(resource: str, answers: Sequence[tuple[Sequence[str], ContainerAllocateResponse]], output: Output) -> str:
    if output is Output.TABLE:
        return "\n".join(line for ids, answer in answers for line in _table(resource, ids, answer)) + "\n"
    data = [{"ids": list(ids), "response": _data(answer)} for ids, answer in answers]
    return written({"resource": resource, "containers": data}, output)


def _data(answer: ContainerAllocateResponse) -> dict[str, Any]:
    """Kubelet's message, by the names that its fields have."""
    return {
        "envs": _sorted(answer.envs),
        "mounts": [
            {"container_path": each.container_path, "host_path": each.host_path, "read_only": each.read_only}
            for each in answer.mounts
        ],
        "devices": [
            {"container_path": each.container_path, "host_path": each.host_path, "permissions": each.permissions}
            for each in answer.devices
        ],
        "annotations": _sorted(answer.annotations),
        "cdi_devices": [{"name": each.name} for each in answer.cdi_devices],
    }


def _sorted(values: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(values.items()))


def _table(resource: str, ids: Sequence[str], answer: ContainerAllocateResponse) -> Iterator[str]:
    """One line for each thing, with the host's side first."""
    yield f"{resource}: {', '.join(ids)}"
    yield from (f"  env         {name}={value}" for name, value in _sorted(answer.envs).items())
    for mount in answer.mounts:
        yield f"  mount       {mount.host_path} at {mount.container_path}{', read-only' if mount.read_only else ''}"
    for node in answer.devices:
        yield f"  device      {node.host_path} at {node.container_path}, {node.permissions}"
    yield from (f"  annotation  {key}={value}" for key, value in _sorted(answer.annotations).items())
    yield from (f"  CDI device  {device.name}" for device in answer.cdi_devices)
