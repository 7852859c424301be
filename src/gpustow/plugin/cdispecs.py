"""The life of the CDI specifications: made with each offer, on disk before kubelet hears of it, and then tidied up.

They are made and written in the thread that builds the offer. A name that was there stays at first, for kubelet may
hold an answer with it that is given to the runtime again and again; the running offer, too, goes on answering with the
old names until the new one takes over. Once that has happened, and kubelet has listed later what containers hold, the
names that nobody can have in an answer any more are removed. Where kubelet does not list, they stay until the node is
booted. Names that appear after we have written our own are those of another instance, which is about to take our place
or has failed to; they are for it or its successor to remove.

Where CDI is not asked for from the start, nothing is touched: the files that may lie there can be those of another, and
harm nobody. A configuration that stops asking for CDI has the files removed once no container holds a device.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gpustow.config import Config
from gpustow.config.strategies import CDI_STRATEGIES
from gpustow.errors import CdiDirectoryError
from gpustow.hardware.node import Node
from gpustow.injection.cdi.directory import CdiDirectory, Publication
from gpustow.injection.cdi.generator import DriverRoot
from gpustow.injection.cdi.specification import CdiSpec
from gpustow.injection.cdi.specs import CdiSpecs, cdi_specs
from gpustow.injection.cdi.toolkit import Toolkit
from gpustow.injection.hostdevices import HostDevices
from gpustow.plugin.blocking import in_thread

log = logging.getLogger(__name__)

SpecMaker = Callable[[Node, Config, HostDevices], CdiSpecs]
"""Makes the specifications of a node; may block. Raises HardwareError and CdiSpecError."""


def machine_specs(node: Node, config: Config, host: HostDevices) -> CdiSpecs:
    """Those of this machine."""
    root = DriverRoot.of(config, environ=os.environ)
    return cdi_specs(node, config, host, root, Toolkit.find(config, environ=os.environ))


def simulated_specs(node: Node, config: Config, host: HostDevices) -> CdiSpecs:
    """Those of a simulated node, which has no driver and no toolkit."""
    return cdi_specs(node, config, host, DriverRoot.of_simulated(config))


def no_specs(_node: Node, _config: Config, _host: HostDevices) -> CdiSpecs:
    """None, where no runtime is to find any."""
    return CdiSpecs(())


class HeldUuids(Protocol):
    """Knows which devices of ours containers hold."""

    def held_uuids(self, since: float) -> frozenset[str] | None:
        """Their UUIDs by a list that kubelet made well after `since`; None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class SpecFiles:
    """The specifications that go with an offer, and where they are to be; nowhere if the offer does not name any."""

    directory: Path | None
    specs: tuple[CdiSpec, ...] = ()


class SpecKeeper:
    """Keeps our specifications on disk. `make` makes them, `clock` gives seconds that only go up.

    `publish` and `restore` are for the thread that builds an offer, the rest for the event loop.
    """

    def __init__(
        self, make: SpecMaker, clock: Callable[[], float], open_directory: Callable[[Path], CdiDirectory] = CdiDirectory
    ) -> None:
        self._make = make
        self._clock = clock
        self._open_directory = open_directory
        self._lock = threading.Lock()
        self._wanted: Mapping[Path, tuple[CdiSpec, ...]] = {}
        self._published: SpecFiles | None = None
        self._removable: Mapping[Path, frozenset[str]] = {}
        self._since: float | None = None
        self._tidied: frozenset[str] | None = None
        self._told: tuple[str, ...] = ()

    def publish(self, node: Node, config: Config, host: HostDevices) -> SpecFiles:
        """Makes and writes what `config` asks for on this node, beside what was there; if it is the same, gives that.

        Raises CdiDirectoryError, CdiSpecError and HardwareError; what was there is then still there.
        """
        if not any(strategy in CDI_STRATEGIES for strategy in config.device_list_strategies):
            files = SpecFiles(None)
        else:
            made = self._make(node, config, host)
            files = SpecFiles(Path(config.cdi_directory), made.specs) if made.specs else SpecFiles(None)
            self._tell_new(made)
        return self._put(files)

    def restore(self, files: SpecFiles) -> None:
        """Writes what was published before, where it has been changed or removed since. Tells of what fails."""
        try:
            self._put(files)
        except CdiDirectoryError as error:
            log.warning("%s", error)

    def serving(self, files: SpecFiles) -> None:
        """From now on Allocate answers with the names in these."""
        with self._lock:
            if files == self._published and self._since is None:
                self._since, self._tidied = self._clock(), None

    async def tidy(self, usage: HeldUuids) -> None:
        """Removes the names that no answer can have any more, as far as kubelet tells. Fails in no way."""
        since = self._since
        if since is None or not any(self._removable.values()):
            return
        held = usage.held_uuids(since)
        if held is None or held == self._tidied:
            return
        self._tidied = held
        try:
            await in_thread(lambda: self._remove_old(held, since), name="tidy CDI specifications")
        except CdiDirectoryError as error:
            log.warning("old names of CDI devices stay: %s", error)

    def _tell_new(self, made: CdiSpecs) -> None:
        """Logs what was not told with the specifications before."""
        for level, sentences in ((logging.WARNING, made.warnings), (logging.INFO, made.left_out)):
            for sentence in sentences:
                if sentence not in self._told:
                    log.log(level, "CDI: %s", sentence)
        self._told = (*made.warnings, *made.left_out)

    def _put(self, files: SpecFiles) -> SpecFiles:
        with self._lock:
            if files == self._published:
                files = self._published
            wanted: dict[Path, tuple[CdiSpec, ...]] = dict.fromkeys(self._wanted, ())
            if files.directory is not None:
                wanted[files.directory] = files.specs
            old_names = self._write(wanted, None)
            if files is not self._published:
                self._wanted, self._published, self._since = wanted, files, None
                self._removable = old_names
        return files

    def _remove_old(self, held: frozenset[str], since: float) -> None:
        with self._lock:
            if self._since == since:  # else other names are about to be served
                left = self._write(self._wanted, held)
                self._removable = {path: names & left[path] for path, names in self._removable.items()}

    def _write(
        self, wanted: Mapping[Path, tuple[CdiSpec, ...]], held: frozenset[str] | None
    ) -> Mapping[Path, frozenset[str]]:
        """Writes into each directory; gives the old names that are there now."""
        old_names = {}
        for path, specs in wanted.items():
            publication = self._open_directory(path).publish(specs, held, self._removable.get(path, ()))
            old_names[path] = frozenset(publication.old_names)
            _tell(path, publication)
        return old_names


def _tell(path: Path, publication: Publication) -> None:
    for name in publication.written:
        log.info("wrote %s", path / name)
    for name in publication.removed:
        log.info("removed %s, which no container needs any more", path / name)
    for note in publication.notes:
        log.warning("CDI: %s", note)
    if publication.written and publication.old_names:
        log.info("kept for containers that may have them: %s", ", ".join(publication.old_names))
