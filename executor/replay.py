"""What the log knows of an evaluation when its attempt is claimed: pure, from the stream the claim brought.

Answers and scores count from whichever attempt they are: what was paid for once is not paid for again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from eventlog import payloads as p
from eventlog.codec import Entry, RawEntry, read_entry
from eventlog.events import Event, EventKey, QueuedEvent
from executor.contract import Permanent

_TELLING = frozenset({b"queued", b"responded", b"scored"})
"""Types that say something here; the others need not even be decoded."""


@dataclass(frozen=True, slots=True)
class ReplayedAttempt:
    """What is to be done, and what of it is done already."""

    opening: p.Queued
    answer: p.Answer | None
    scores: Mapping[str, p.Score]
    """By evaluator; all of them are judgements of this very answer."""
    opened_at: datetime | None = field(default=None, compare=False)
    traceparent: str | None = None
    """What the opening carries, if the evaluation is traced."""


def replay(evaluation_id: str, attempt: int, stream: Iterable[RawEntry]) -> ReplayedAttempt:
    """Fold a stream; raises `Permanent` where the attempt's opening can't be read."""
    events = _first_of_each_key(evaluation_id, stream)
    opening = events.get((attempt, 0))
    if not isinstance(opening, QueuedEvent):
        raise Permanent("invalid", f"the opening of attempt {attempt} can't be read")
    answer, scores = _paid_for(events[key] for key in sorted(events))
    return ReplayedAttempt(opening.data, answer, scores, opening.occurred_at, opening.traceparent)


def _first_of_each_key(evaluation_id: str, stream: Iterable[RawEntry]) -> dict[EventKey, Event]:
    """Read what matters; for every reader the first entry of a key is the event."""
    found: dict[EventKey, Event] = {}
    for raw in stream:
        if _may_tell(raw[1]) and isinstance(entry := read_entry(evaluation_id, raw), Entry):
            found.setdefault(entry.key, entry.event)
    return found


def _may_tell(fields: Sequence[bytes]) -> bool:
    """Whether an entry is worth reading, as far as its fields say; a foreign layout always is."""
    return len(fields) != 8 or fields[4] != b"type" or fields[5] in _TELLING


def _paid_for(events: Iterable[Event]) -> tuple[p.Answer | None, dict[str, p.Score]]:
    """Find the newest answer, and the scores that were given to it and not to an older one."""
    answer: p.Answer | None = None
    scores: dict[str, p.Score] = {}
    for event in events:
        match event.data:
            case p.Queued(answer=known, scores=given) if known:
                answer, scores = _newer(known, answer, scores)
                scores |= {score.evaluator: score for score in given}
            case p.Responded() as known:
                answer, scores = _newer(known, answer, scores)
            case p.Scored() as score if answer:
                scores[score.evaluator] = score
            case _:
                pass  # it opened an attempt without an answer
    return answer, scores


def _newer(
    known: p.Answer, answer: p.Answer | None, scores: dict[str, p.Score]
) -> tuple[p.Answer, dict[str, p.Score]]:
    same = answer is not None and known.output == answer.output
    return known, scores if same else {}
