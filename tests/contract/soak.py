"""Pods come and go without an end while the configuration is reloaded and kubelet restarts, in real time.

No admission may fail that a healthy plugin could have served. So one is tried only while kubelet is up and what it says
to be allocatable suffices; in between nothing is owed. A reload owes more: once kubelet has all devices after its own
restart, it has all of them until the next one.

Both ends are in this process, which makes open files, threads, tasks and memory easy to count: whatever either of them
leaks shows. `python -m tests.contract.soak --seconds 600` prints what came of it.
"""

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path
from random import Random
from statistics import median

import psutil

from gpustow.config import load_config
from gpustow.errors import AdmissionError
from gpustow.plugin import Supervisor
from gpustow.plugin.cdispecs import simulated_specs
from gpustow.simulation.kubelet import AdmittedPod, Container, EmbeddedKubelet, Pod
from tests.plugin.samples import GPU, MIG, Reader, gpu, node

EXPECTED = {GPU: 16, MIG: 28}
"""Four GPUs shared into four replicas each, and four cut into seven MIG devices each."""

RELOAD_EVERY = 2.0
RESTART_EVERY = 5.0
PAUSE = 0.03
"""Seconds between two admissions or releases."""

CONFIGURATIONS = tuple(
    f"""
version: v1
flags: {{migStrategy: mixed, plugin: {{deviceListStrategy: {strategy}}}}}
sharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: 4}}]}}}}
placement: {{resources: [{{name: nvidia.com/gpu, policy: {policy}}}]}}
health: {{rescanInterval: 7s}}
"""
    for policy, strategy in (
        ("packed", "envvar"),
        ("distributed", "envvar"),
        ("distributed", "volume-mounts"),
        ("distributed", "volume-mounts"),
        ("packed-aligned", "cdi-cri"),
    )
)
"""What one reload after the other brings; one of them nothing."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the process holds; memory in MiB."""

    files: int
    threads: int
    tasks: int
    memory: float

    @classmethod
    def now(cls) -> "Holdings":
        gc.collect()
        process = psutil.Process()
        memory = process.memory_info().rss / 2**20
        return cls(process.num_fds(), process.num_threads(), len(asyncio.all_tasks()), memory)


@dataclass(slots=True)
class Outcome:
    """What came of it. `dips` are looks at allocatable that found less than all, although nothing allowed for that."""

    admitted: int = 0
    not_tried: int = 0
    reloads: int = 0
    restarts: int = 0
    dips: int = 0
    failures: list[str] = field(default_factory=list)
    holdings: list[Holdings] = field(default_factory=list)
    longest_admission: float = 0.0
    cpu_share: float = 0.0

    def growth(self) -> Holdings:
        """How much more the process holds in the last third than in the second."""
        third = len(self.holdings) // 3
        before, after = self.holdings[third : 2 * third], self.holdings[-third:]

        def grown(of: Callable[[Holdings], float]) -> float:
            return median(map(of, after)) - median(map(of, before))

        return Holdings(
            round(grown(lambda held: held.files)),
            round(grown(lambda held: held.threads)),
            round(grown(lambda held: held.tasks)),
            grown(lambda held: held.memory),
        )

    def summary(self) -> str:
        last, grown = self.holdings[-1], self.growth()
        counts = f"{self.admitted} admitted, {len(self.failures)} failed, {self.not_tried} not tried"
        open_things = f"open files {last.files} ({grown.files:+}), threads {last.threads} ({grown.threads:+})"
        rest = f"tasks {last.tasks} ({grown.tasks:+}), memory {last.memory:.1f} MiB ({grown.memory:+.1f})"
        return "\n".join(
            [
                f"{counts}; longest {1000 * self.longest_admission:.0f} ms",
                f"{self.reloads} reloads, {self.restarts} restarts of kubelet, {self.dips} dips of allocatable",
                f"{open_things}, {rest}, CPU {100 * self.cpu_share:.0f} %",
                *self.failures,
            ]
        )


class Soak:
    """One run in `directory`, which is kubelet's."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.outcome = Outcome()
        self._random = Random(seed)
        self._kubelet = EmbeddedKubelet(directory, random=Random(seed))
        self._kubelet.plugin_directory.mkdir()
        self._file = directory / "config.yaml"
        self._file.write_text(CONFIGURATIONS[0], encoding="utf-8")
        flags: dict[str, object] = {
            "kubelet-socket": str(self._kubelet.registration_socket),
            "config-file": str(self._file),
            "cdi-directory": str(directory / "cdi"),
        }
        reader = Reader(node(*(gpu(index, mig_devices=7 * (index // 4)) for index in range(8))))
        self._supervisor = Supervisor(
            lambda: load_config(flags, {}), reader.make, make_specs=simulated_specs, random=Random(seed)
        )
        self._held: list[AdmittedPod] = []
        self._restarting = asyncio.Lock()
        self._has_had_all = False

    async def run(self, seconds: float) -> Outcome:
        cpu, start = time.process_time(), time.monotonic()
        async with self._kubelet, asyncio.TaskGroup() as group:
            daemon = group.create_task(self._supervisor.run())
            for resource, number in EXPECTED.items():
                await self._kubelet.wait_for(resource, at_least=number)
            work = [group.create_task(each()) for each in (self._admit_and_release, self._reload, self._restart)]
            await asyncio.sleep(seconds)
            async with self._restarting:
                for task in work:
                    task.cancel()
            await self._come_to_rest()
            self._supervisor.stop()
            await daemon
        self.outcome.cpu_share = (time.process_time() - cpu) / (time.monotonic() - start)
        return self.outcome

    async def _come_to_rest(self) -> None:
        """In the end all is well; whatever is not is a failure."""
        with suppress(TimeoutError):
            await self._kubelet.wait_until(lambda: self._supervisor.not_ready is None, timeout=30)
        if self._supervisor.not_ready is not None:
            self.outcome.failures.append(f"in the end: {self._supervisor.not_ready}")
        if self._kubelet.allocatable() != EXPECTED:
            self.outcome.failures.append(f"in the end allocatable is {self._kubelet.allocatable()}")

    async def _admit_and_release(self) -> None:
        for number in count():
            async with self._restarting:
                self._look()
                wanted = self._random.choice(({GPU: 1}, {GPU: 3}, {MIG: 1}, {MIG: 4}, {GPU: 1, MIG: 2}))
                if self._suffices(wanted):
                    await self._admit(f"pod-{number}", wanted)
                else:
                    self.outcome.not_tried += 1
                    self._release()
                if self._random.random() < len(self._held) / 20:
                    self._release()
            await asyncio.sleep(PAUSE)

    def _look(self) -> None:
        has_all = self._kubelet.allocatable() == EXPECTED
        if self._has_had_all and not has_all:
            self.outcome.dips += 1
        self._has_had_all = self._has_had_all or has_all

    def _suffices(self, wanted: dict[str, int]) -> bool:
        allocatable = self._kubelet.allocatable()
        used: Counter[str] = Counter()
        for pod in self._held:
            used.update({resource: len(pod.device_ids(resource)) for resource in EXPECTED})
        return all(allocatable.get(resource, 0) - used[resource] >= size for resource, size in wanted.items())

    async def _admit(self, name: str, wanted: dict[str, int]) -> None:
        began = time.monotonic()
        try:
            pod = await self._kubelet.admit(Pod(name, containers=(Container("main", wanted),)))
        except AdmissionError as error:
            self.outcome.failures.append(str(error))
            return
        self.outcome.longest_admission = max(self.outcome.longest_admission, time.monotonic() - began)
        self.outcome.admitted += 1
        self._held.append(pod)
        for resource in EXPECTED:
            ids = [id_ for held in self._held for id_ in held.device_ids(resource)]
            if len(ids) != len(set(ids)):
                self.outcome.failures.append(f"a device of {resource} was given twice to {name}")

    def _release(self) -> None:
        if self._held:
            pod = self._held.pop(self._random.randrange(len(self._held))).pod
            self._kubelet.remove(pod.namespace, pod.name)

    async def _reload(self) -> None:
        """By turns as SIGHUP does, and by what the daemon sees of the file."""
        for number, text in enumerate(cycle(CONFIGURATIONS)):
            await asyncio.sleep(RELOAD_EVERY)
            self._file.write_text(text, encoding="utf-8")
            if number % 2:
                self._supervisor.reload()
            self.outcome.reloads += 1

    async def _restart(self) -> None:
        for number in count():
            await asyncio.sleep(RESTART_EVERY)
            async with self._restarting:
                self.outcome.holdings.append(Holdings.now())
                self._kubelet.journal.clear()
                self._has_had_all = False
                for readmission in await self._kubelet.restart(killed=number % 2 == 1):
                    if readmission.refusal is not None:
                        self.outcome.failures.append(f"a running pod was refused: {readmission.refusal}")
            self.outcome.restarts += 1


async def soak(seconds: float, seed: int = 1) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="kubelet-") as directory:
        return await Soak(Path(directory), seed).run(seconds)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(words)
    if given.seconds < 4 * RESTART_EVERY:
        parser.error(
            f"growth shows only over several restarts of kubelet; give it {4 * RESTART_EVERY:g} seconds or more"
        )
    outcome = asyncio.run(soak(given.seconds, given.seed))
    sys.stdout.write(outcome.summary() + "\n")
    return 1 if outcome.failures or outcome.dips else 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
