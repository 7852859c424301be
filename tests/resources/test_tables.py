"""The tables of what each shipped node model offers are current, from the model and through the driver's library."""

import pytest

from gpustow.hardware.node import Platform
from gpustow.hardware.nodemodel import load_node_model, shipped_models
from tests.nvml.machine import machine, shared_process
from tests.nvml.readerprocess import ReaderProcess
from tests.resources.tables import FOLDER, table

__all__ = ["machine", "shared_process"]

NVML_MODELS = [name for name in shipped_models() if load_node_model(name).node.platform is Platform.NVML]


def written(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", shipped_models())
def test_the_table_of_each_node_model_is_current(name: str) -> None:
    assert table(load_node_model(name).node) == written(name), "python -m tests.resources.tables writes it anew"


def test_there_is_no_table_without_a_model() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(shipped_models())


@pytest.mark.parametrize("name", NVML_MODELS)
def test_the_same_is_offered_when_the_machine_is_read_through_the_library(name: str, machine: ReaderProcess) -> None:
    machine.start(load_node_model(name))
    assert table(machine.read()) == written(name)
