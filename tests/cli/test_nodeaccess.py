from gpustow.cli.nodeaccess import node_access
from gpustow.config import Config
from gpustow.hardware.machine import MachineReader
from gpustow.health.nvmlsource import NvmlSource


def test_reader_and_source_of_a_machine_are_counted_together() -> None:
    access = node_access(None, {})
    reader, source = access.make_reader(Config()), access.make_source(Config())
    assert isinstance(reader, MachineReader)
    assert isinstance(source, NvmlSource)
    callers = (reader._caller, reader._nvml._caller, reader._wsl._caller, source._caller)
    assert access.nvml_counts is not None
    assert all(caller.observer is access.nvml_counts for caller in callers)


def test_a_simulated_node_calls_no_driver() -> None:
    assert node_access("t4-4", {}).nvml_counts is None
