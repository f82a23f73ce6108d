"""A history as one JSON document."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import from_json

from eventlog.events import EVENT_ADAPTER, EventKey
from eventlog.timeline import Cursor
from projections.folds.scorecard import Scorecard
from scoreline.reports.replay.gaps import Bridging, OpenGap
from scoreline.reports.replay.history import Attempt, EvaluationHistory, SourceStatus
from scoreline.reports.replay.past_state import PastState
from scoreline.reports.replay.timeline_entry import RejectedTimelineEntry, TimelineEntry

Json = dict[str, Any]


def document(
    history: EvaluationHistory, *, attempt: int | None = None, then: PastState | None = None
) -> Json:
    """Return the history of an evaluation as JSON, with its state at a moment where one is given."""
    selected = history if attempt is None else history.only(attempt)
    as_of = {} if then is None else {"as_of": _then(then)}
    return {
        "evaluation_id": history.evaluation_id,
        "batch_id": history.batch_id,
        "case_id": history.case_id,
        **as_of,
        "state": _cursor(history.cursor),
        "state_once_stored": history.ahead and _cursor(history.ahead),
        "began_at": _time(history.began_at),
        "ended_at": _time(history.ended_at),
        "duration_s": _seconds(
            history.ended_at - history.began_at if history.ended_at and history.began_at else None
        ),
        "arrivals": history.arrivals,
        "attempts": [_attempt(one) for one in selected.attempts],
        "scorecard": history.scorecard and _scorecard(history.scorecard),
        "quarantine": [refusal_json(refusal) for refusal in history.refusals],
        "quarantined": history.refused,
        "sources": {"postgres": _probe(history.postgres), "redis": _probe(history.redis)},
    }


def _attempt(attempt: Attempt) -> Json:
    return {
        "attempt": attempt.number,
        "reason": attempt.reason,
        "owner": attempt.owner,
        "entries": [line_json(line) for line in attempt.lines],
        "bridges": [bridge_json(bridge) for bridge in attempt.bridges],
        "gap": attempt.gap and gap_json(attempt.gap),
    }


def line_json(line: TimelineEntry) -> Json:
    """Return an entry as JSON."""
    return {
        "attempt": line.event.attempt,
        "sequence": line.event.sequence,
        "arrived": line.rank,
        "arrived_at": _time(line.arrived_at),
        "entry_id": line.entry_id.decode(),
        "overtaken_by": _key(line.overtaken_by),
        "type": line.event.type,
        "state_after": line.phase,
        "since_previous_s": _seconds(line.since),
        "verdict": line.disposition,
        "stored": not line.pending,
        "stored_at": _time(line.recorded_at),
        "source": line.event.source,
        "note": line.note or None,
        "event": EVENT_ADAPTER.dump_python(line.event, mode="json", exclude_none=True),
    }


def bridge_json(bridge: Bridging) -> Json:
    """Return a bridged gap as JSON."""
    return {
        "attempt": bridge.attempt,
        "missing": _ranges(bridge.missing),
        "closing_sequence": bridge.closing.sequence,
        "closing_type": bridge.closing.type,
        "bridged_at": _time(bridge.at),
        "waited_s": _seconds(bridge.waited),
        "came_late": list(bridge.came_late),
        "worked_out": bridge.worked_out,
    }


def gap_json(gap: OpenGap) -> Json:
    """Return an open gap as JSON."""
    return {
        "attempt": gap.attempt,
        "missing": _ranges(gap.missing),
        "since": _time(gap.since),
        "waiting": [event.sequence for event in gap.waiting],
    }


def refusal_json(refusal: RejectedTimelineEntry) -> Json:
    """Return a quarantined entry as JSON."""
    return {
        "id": refusal.id,
        "arrived": refusal.rank,
        "arrived_at": _time(refusal.arrived_at),
        "entry_id": refusal.entry_id.decode(),
        "reason": refusal.reason,
        "detail": refusal.detail,
        "size": refusal.size,
        "quarantined_at": _time(refusal.quarantined_at),
    }


def _scorecard(card: Scorecard) -> Json:
    return {
        **card._asdict(),
        "scores": from_json(card.scores),
        "cost_usd": float(card.cost_usd),
        "error": from_json(card.error) if card.error else None,
        "ended_at": _time(card.ended_at),
    }


def _then(then: PastState) -> Json:
    return {
        "at": _time(then.at),
        "arrived": then.arrived,
        "of": then.of,
        "stored": then.stored,
        "state": _cursor(then.cursor),
        "owner": then.owner,
        "answer": then.answer and _key(then.answer.key),
        "waiting": [_key(line.key) for line in then.waiting],
    }


def _cursor(cursor: Cursor) -> Json:
    return {"phase": cursor.phase, "attempt": cursor.attempt, "sequence": cursor.sequence}


def _probe(status: SourceStatus) -> Json:
    return {"asked": status.queried, "found": status.found, "problem": status.problem or None}


def _key(key: EventKey | None) -> Json | None:
    return key and {"attempt": key[0], "sequence": key[1]}


def _ranges(missing: Iterable[range]) -> list[list[int]]:
    """Return the first and the last sequence of each range."""
    return [[part.start, part.stop - 1] for part in missing]


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _seconds(span: timedelta | None) -> float | None:
    return span.total_seconds() if span is not None else None
