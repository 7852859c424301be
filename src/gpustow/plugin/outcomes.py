"""What came of the last reload and of the last look at the node: kept for readiness, and told in the log.

Each is told when it is new. What somebody asked for is answered even if the answer is the same again; that a try of our
own was in vain once more is not told.
"""

import logging

from gpustow.plugin.observer import PluginObserver
from gpustow.plugin.offer import Offer
from gpustow.plugin.startlog import resource_lines

log = logging.getLogger(__name__)

_JUST_STARTED = "it has just been started"
_ENDED = "it has ended"


class Outcomes:
    """The outcomes, for `observer` as well. A node without devices is read again after `look_again` seconds.

    `trouble` says why not all is served that should be, `refusal` why the newest configuration is not in force; None
    where all is well.
    """

    def __init__(self, observer: PluginObserver, look_again: float) -> None:
        self.trouble: str | None = _JUST_STARTED
        self.refusal: str | None = None
        self._observer = observer
        self._look_again = look_again
        self._told: frozenset[str] = frozenset()

    @property
    def well(self) -> bool:
        """Whether there is nothing to try again."""
        return self.trouble is None and self.refusal is None

    def refuse(self, reason: str, fault: Exception | None = None, *, asked: bool) -> None:
        """The reload does not work, for this reason; with the traceback in the log if it is a fault of ours."""
        if reason != self.refusal:
            log.error("%s", reason, exc_info=fault)
        elif asked:
            log.error("refused again: %s", _on_one_line(reason))
        self.refusal = reason
        self._observer.reloaded(reason)

    def accept(self) -> bool:
        """The reload works; whether one before it did not."""
        before, self.refusal = self.refusal, None
        self._observer.reloaded(None)
        return before is not None

    def tell_readiness(self, not_ready: str | None) -> None:
        """Says of a configuration that is accepted after one that was refused whether all is ready again."""
        then = "ready again" if not_ready is None else f"and still not ready: {_on_one_line(not_ready)}"
        log.info("the configuration is accepted, %s", then)

    def surveyed(self, trouble: str | None, *, serving: bool) -> None:
        """Not all is served that should be, for this reason; or all is, if there is none. Is anything, `serving`?"""
        if trouble is not None and trouble != self.trouble:
            again = "" if serving else f"\n  Looking again every {self._look_again:g} s."
            log.warning("%s%s", trouble, again)
        elif trouble is None and self.trouble not in {None, _JUST_STARTED}:
            log.info("the node can be read, and what it has is served")
        self.trouble = trouble
        self._observer.surveyed(trouble)

    def offered(self, offer: Offer) -> None:
        """Tells what was not told with the offer before."""
        lines = resource_lines(served.resource for served in offer.served)
        for level, texts in ((logging.INFO, lines), (logging.WARNING, offer.notes)):
            for text in texts:
                if text not in self._told:
                    log.log(level, "%s", text)
        self._told = frozenset((*lines, *offer.notes))

    def end(self) -> None:
        """Nothing is served any more, because the daemon has ended."""
        self.trouble, self.refusal = _ENDED, None


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
