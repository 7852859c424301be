"""A machine with the fake library: a driver root, /sys and /proc as the reader sees them, and what goes wrong."""

import shutil
from collections import Counter
from pathlib import Path

from gpustow.hardware.miglayout import instance_minor
from gpustow.hardware.nodemodel import NodeModel
from gpustow.hardware.systemfiles import MIG_MINORS, sysfs_bus_id
from tests.nvml.build import LIBRARY, built_library
from tests.nvml.flatfile import node_lines

NO_INSTANCE = 0xFFFFFFFF
ANY_CALL = "*"


class FakeDriver:
    """The machine of a node model below `folder`. Changes act at once, also on processes that have the library."""

    def __init__(self, folder: Path, model: NodeModel) -> None:
        self.driver_root = folder / "driver"
        self.system_root = folder / "system"
        self.flat_file = folder / "node.txt"
        self.counts_file = folder / "counts.txt"
        self._model = model
        self._faults: list[str] = []
        self._events: list[str] = []
        libraries = self.driver_root / "usr/lib64"
        libraries.mkdir(parents=True)
        (libraries / LIBRARY).symlink_to(built_library())
        self.show(model)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment; LD_LIBRARY_PATH for one that looks for the library by name."""
        return {
            "FAKE_NVML_FILE": str(self.flat_file),
            "FAKE_NVML_COUNTS": str(self.counts_file),
            "LD_LIBRARY_PATH": str(built_library().parent),
        }

    def show(self, model: NodeModel) -> None:
        """The machine is this one from now on; what went wrong before still does."""
        self._model = model
        _write_system_files(self.system_root, model)
        self._write()

    def renew(self, model: NodeModel) -> None:
        """Another machine, on which nothing went wrong yet."""
        shutil.rmtree(self.system_root)
        self._faults.clear()
        self._events.clear()
        self.show(model)

    def lose(self, gpu: int) -> None:
        """The GPU with this index is lost for every call."""
        self._faults.append(f"gpu {gpu} lost 1")
        self._write()

    def fail(self, call: str, code: int, *, gpu: int = -1, start: int = 1) -> None:
        """The call ends with the code, for one GPU or any, from the `start`th such call on."""
        self._faults.append(f"fail {call} {gpu} {start} {code}")
        self._write()

    def hang(self, call: str, seconds: float, *, gpu: int = -1, start: int = 1) -> None:
        """The call takes this long, for one GPU or any, from the `start`th such call on."""
        self._faults.append(f"hang {call} {gpu} {start} {seconds}")
        self._write()

    def garble(self, call: str, *, gpu: int = -1, start: int = 1) -> None:
        """The call succeeds and answers with nonsense, for one GPU or any, from the `start`th such call on."""
        self._faults.append(f"garble {call} {gpu} {start}")
        self._write()

    def change(self, line: str) -> None:
        """A line of the flat file that overrides what the model says."""
        self._faults.append(line)
        self._write()

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        self._faults.clear()
        self._write()

    def event(
        self, kind: int, data: int, *, gpu: int = -1, gpu_instance: int = NO_INSTANCE, compute: int = NO_INSTANCE
    ) -> None:
        """An event reaches whoever waits for its kind on this GPU; -1: the driver names no GPU."""
        self._events.append(f"event {len(self._events) + 1} {gpu} {kind:x} {data} {gpu_instance} {compute}")
        self._write()

    def counts(self) -> Counter[tuple[str, int]]:
        """How often each call was made for each GPU (-1: none), as of the last nvmlShutdown or end of a process."""
        if not self.counts_file.exists():
            return Counter()
        lines = (line.split() for line in self.counts_file.read_text().splitlines())
        return Counter({(call, int(gpu)): int(times) for call, gpu, times in lines})

    def _write(self) -> None:
        lines = [*node_lines(self._model), *self._faults, *self._events]
        fresh = self.flat_file.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.replace(self.flat_file)


def _write_system_files(root: Path, model: NodeModel) -> None:
    """/sys and /proc of the machine: NUMA nodes, and the minor numbers of every MIG instance that can exist."""
    minors = ["config 1", "monitor 2"]
    for gpu in model.node.gpus:
        if gpu.pci_bus_id:
            device = root / "sys/bus/pci/devices" / sysfs_bus_id(gpu.pci_bus_id)
            device.mkdir(parents=True, exist_ok=True)
            (device / "numa_node").write_text(f"{-1 if gpu.numa_node is None else gpu.numa_node}\n")
        for instance in range(15):
            place = f"gpu{gpu.minor}/gi{instance}"
            minors.append(f"{place}/access {instance_minor(gpu.minor, instance)}")
            minors += [f"{place}/ci{ci}/access {instance_minor(gpu.minor, instance, ci)}" for ci in range(8)]
    file = root / MIG_MINORS
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(minors) + "\n")
