"""Tables of what each shipped node model offers, under every MIG strategy, shared and not: to review, and to compare.

    python -m tests.resources.tables

writes them anew into the folder `tables` beside this file.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from gpustow.config import Config, MigStrategy, ReplicatedResource, ReplicatedResources
from gpustow.errors import GpustowError
from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import load_node_model, shipped_models
from gpustow.resources import Catalog, Resource, build_catalog

FOLDER = Path(__file__).parent / "tables"
REPLICAS = 4
_HEAD = "| MIG strategy | sharing | resource | devices | GPUs | first ids |\n|---|---|---|---|---|---|\n"


def table(node: Node) -> str:
    """What the node offers, as a Markdown page."""
    rows = "".join(row for strategy in MigStrategy for row in _rows(node, strategy))
    return f"# {node.name}\n\n{_HEAD}{rows}"


def _rows(node: Node, strategy: MigStrategy) -> Iterator[str]:
    try:
        plain = build_catalog(node, Config(mig_strategy=strategy))
        shared = build_catalog(node, Config(mig_strategy=strategy, time_slicing=_all_of(plain)))
    except GpustowError as error:
        yield f"| {strategy.value} | any | refused: {error.message} | | | |\n"
        return
    for sharing, catalog in _by_sharing(plain, shared).items():
        for resource in catalog.resources:
            yield f"| {strategy.value} | {sharing} | {_row(resource)} |\n"
        for warning in catalog.warnings:
            yield f"| {strategy.value} | {sharing} | warning: {warning} | | | |\n"


def _by_sharing(plain: Catalog, shared: Catalog) -> Mapping[str, Catalog]:
    return {"none": plain, f"{REPLICAS} replicas": shared} if plain.resources else {"any": plain}


def _all_of(catalog: Catalog) -> ReplicatedResources | None:
    entries = tuple(ReplicatedResource(resource.name, REPLICAS) for resource in catalog.resources)
    return ReplicatedResources(entries) if entries else None


def _row(resource: Resource) -> str:
    gpus = len({device.gpu_index for device in resource.devices})
    first = ", ".join(f"`{device.id}`" for device in resource.devices[:2])
    return f"{resource.name} | {len(resource.devices)} | {gpus} | {first}"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in shipped_models():
        (FOLDER / f"{name}.md").write_text(table(load_node_model(name).node), encoding="utf-8")
