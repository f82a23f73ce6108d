"""Replay of an evaluation's stream when its attempt is claimed: pure.

Answers and scores count from whichever attempt recorded them: what was paid for is not paid for again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from eventlog import payloads as p
from eventlog.codec import RawEntry, readable_entries
from eventlog.events import Event, QueuedEvent
from eventlog.timeline import first_of_each_key
from executor.contract import Permanent

_RELEVANT = frozenset({b"queued", b"responded", b"scored"})
"""Types that matter here; the others are not decoded."""


@dataclass(frozen=True, slots=True)
class ReplayedAttempt:
    """The opening of an attempt, and the work on record for its evaluation."""

    opening: p.Queued
    answer: p.Answer | None
    scores: Mapping[str, p.Score]
    """By evaluator; all of them score this very answer."""
    opened_at: datetime | None = field(default=None, compare=False)
    traceparent: str | None = None
    """The trace context of the opening, if the evaluation is traced."""


def replay(evaluation_id: str, attempt: int, stream: Iterable[RawEntry]) -> ReplayedAttempt:
    """Fold a stream; raises `Permanent` where the attempt's opening can't be read."""
    relevant = (raw for raw in stream if _is_relevant(raw[1]))
    first = first_of_each_key(readable_entries(evaluation_id, relevant))
    events = {key: entry.event for key, entry in first.items()}
    opening = events.get((attempt, 0))
    if not isinstance(opening, QueuedEvent):
        raise Permanent("invalid", f"the opening of attempt {attempt} can't be read")
    answer, scores = _paid_for(events[key] for key in sorted(events))
    return ReplayedAttempt(opening.data, answer, scores, opening.occurred_at, opening.traceparent)


def _is_relevant(fields: Sequence[bytes]) -> bool:
    """Whether an entry must be decoded, by its fields; one of an unknown layout always must."""
    return len(fields) != 8 or fields[4] != b"type" or fields[5] in _RELEVANT


def _paid_for(events: Iterable[Event]) -> tuple[p.Answer | None, dict[str, p.Score]]:
    """Return the newest answer, and the scores of that answer."""
    answer: p.Answer | None = None
    scores: dict[str, p.Score] = {}
    for event in events:
        match event.data:
            case p.Queued(answer=newer, scores=given) if newer:
                answer, scores = _replaced(newer, answer, scores)
                scores |= {score.evaluator: score for score in given}
            case p.Responded() as newer:
                answer, scores = _replaced(newer, answer, scores)
            case p.Scored() as score if answer:
                scores[score.evaluator] = score
            case _:
                pass  # it opened an attempt without an answer
    return answer, scores


def _replaced(
    newer: p.Answer, answer: p.Answer | None, scores: dict[str, p.Score]
) -> tuple[p.Answer, dict[str, p.Score]]:
    is_same = answer is not None and newer.output == answer.output
    return newer, scores if is_same else {}
