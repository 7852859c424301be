"""One look at the node, and what a configuration makes of it.

A survey is made in a thread, since a driver may hang, and only one at a time: if one does not come back, the next is
not begun, so that a driver that hangs does not gather threads. Where nothing has changed since an earlier survey, that
one is the answer, and nothing is built.

That the driver can be read and that the configuration goes with what was read are two things: if only the latter fails,
the survey still says which devices are there.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from gpustow.config import Config
from gpustow.errors import GpustowError, HardwareError
from gpustow.hardware.node import Node, NodeReader
from gpustow.injection.hostdevices import HostDevices
from gpustow.plugin.blocking import in_thread
from gpustow.plugin.cdispecs import SpecFiles, SpecKeeper
from gpustow.plugin.hostreading import HostReader
from gpustow.plugin.offer import Offer


@dataclass(frozen=True, slots=True)
class Survey:
    """What was read, for which configuration; and the offer with its CDI specifications, or why there is none."""

    config: Config
    node: Node
    host: HostDevices | None
    offer: Offer | None
    refusal: GpustowError | None = None
    files: SpecFiles | None = None

    def is_of(self, config: Config, node: Node, host: HostDevices) -> bool:
        """Whether it was made of these."""
        return (self.config, self.node, self.host) == (config, node, host)

    def accepted(self) -> Offer:
        """The offer; raises the refusal if there is none."""
        if self.offer is None:
            raise self.refusal or HardwareError("nothing was read")
        return self.offer


class Surveyor:
    """Makes surveys. `make_reader` and `read_host` may block; a survey may take `limit` seconds.

    `on_late` is called when one that took longer has ended after all, which is the time to make another.

    The CDI specifications of an offer are on disk, by `specs`, before it is handed out. They are made anew where
    something has changed, and for each configuration that was loaded, be it equal to the one before: a reload is also
    how an operator has new files of the driver noticed.
    """

    def __init__(
        self,
        make_reader: Callable[[Config], NodeReader],
        read_host: HostReader,
        specs: SpecKeeper,
        limit: float,
        on_late: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_late = on_late
        self._make_reader = make_reader
        self._read_host = read_host
        self._specs = specs
        self._limit = limit
        self._specs_for: Config | None = None
        self._under_way: asyncio.Task[Survey] | None = None

    async def survey(self, config: Config, known: Survey | None = None) -> Survey:
        """The node as it is now; `known` itself if that still holds.

        Raises HardwareError if the node cannot be read.
        """
        if self._under_way is not None and not self._under_way.done():
            raise HardwareError(
                "the driver has not answered an earlier reading yet",
                advice="Look for the driver's messages in the kernel's log.",
            )
        task = self._under_way = asyncio.create_task(
            in_thread(lambda: self._look(config, known), name="read node"), name="survey"
        )
        try:
            await asyncio.wait([task], timeout=self._limit)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            task.add_done_callback(self._late)
            raise HardwareError(f"the driver has not answered for {self._limit:g} s")
        return task.result()

    def _late(self, task: asyncio.Task[Survey]) -> None:
        """A reading that was given up has ended: what it found may be old, but the driver answers again."""
        if not task.cancelled():
            task.exception()  # told by whoever reads next
            self._on_late()

    def _look(self, config: Config, known: Survey | None) -> Survey:
        node = self._make_reader(config).read()
        try:
            host = self._read_host(config, node.platform)
        except GpustowError as error:
            return Survey(config, node, None, None, error)
        try:
            if known is None or known.offer is None or not known.is_of(config, node, host):
                return Survey(config, node, host, Offer.of(node, config, host), files=self._publish(node, config, host))
            if config is not self._specs_for:
                files = self._publish(node, config, host)
                return known if files == known.files else replace(known, files=files)
        except GpustowError as error:
            return Survey(config, node, host, None, error)
        if known.files is not None:
            self._specs.restore(known.files)
        return known

    def _publish(self, node: Node, config: Config, host: HostDevices) -> SpecFiles:
        files = self._specs.publish(node, config, host)
        self._specs_for = config
        return files
