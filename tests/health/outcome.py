"""What comes of a call that fails, for those who watch health, in words, for the table in docs/reliability.md."""

from collections.abc import Iterable

from gpustow.health.event import EventKind, HealthEvent, RecoveryProof
from gpustow.health.wording import lacks

ALL_WELL = "as ever"

_WORDS = {
    EventKind.LOST: "is lost",
    EventKind.UNWATCHED: "is not watched",
    EventKind.UNSUPPORTED: "counts as one without events",
}


def begun(events: Iterable[HealthEvent], struck: frozenset[str]) -> str:
    """What beginning to watch told, when all was well but for the GPUs with the UUIDs `struck`."""
    return _outcome(events, struck) or ALL_WELL


def watched(events: Iterable[HealthEvent], struck: frozenset[str], sent: set[str]) -> str:
    """What watching told, when the GPUs in `sent` have sent an XID."""
    events = list(events)
    heard = {event.gpu_uuid for event in events if event.kind is EventKind.XID}
    outcome = _outcome((event for event in events if event.kind is not EventKind.XID), struck)
    if heard == sent:
        return outcome or ALL_WELL
    assert any(event.kind is EventKind.SOURCE_FAILED for event in events), "an event is missed and nobody is told"
    return outcome


def proven(proof: RecoveryProof) -> str:
    """What the proof of a GPU is good for that is well but for the call."""
    if not lacks(proof, unknown_is_proof=False):
        return ALL_WELL
    return "does not recover" if lacks(proof, unknown_is_proof=True) else "cannot tell"


def _outcome(events: Iterable[HealthEvent], struck: frozenset[str]) -> str:
    told: dict[EventKind, set[str | None]] = {}
    for event in events:
        assert event.detail or event.kind is EventKind.UNSUPPORTED
        told.setdefault(event.kind, set()).add(event.gpu_uuid)
    if told.pop(EventKind.SOURCE_FAILED, None):
        assert not told
        return "nothing is watched"
    assert all(gpus == struck for gpus in told.values()), "other GPUs than the struck ones are told"
    who = "that GPU" if len(struck) == 1 else "each GPU"
    return "; ".join(f"{who} {_WORDS[kind]}" for kind in told)
