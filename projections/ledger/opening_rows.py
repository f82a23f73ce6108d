"""Rows of opening events, which are committed before they are appended to a stream. Pure."""

from collections.abc import Sequence
from datetime import date

from eventlog.codec import Entry
from eventlog.events import Event
from eventlog.keys import shard_of
from eventlog.timeline import committed_entry_id, replay
from projections.folds.change import Change, EvaluationRow, EventRow, fold
from projections.ledger.contract import AcceptedEvaluation


def opening_change(row: EvaluationRow, events: Sequence[tuple[Event, bytes]], *, shards: int) -> Change:
    """Fold opening events into the change they make, as if they had just arrived."""
    entries = [
        Entry(committed_entry_id(event.occurred_at, place), event, body)
        for place, (event, body) in enumerate(events)
    ]
    walked = replay(row.cursor, entries)
    change = fold(row, shard_of(row.evaluation_id, shards), walked, exists=True)
    change.head = row.head  # they are in no stream yet: the head stays
    return change


def newest_attempt(events: Sequence[tuple[Event, bytes]]) -> tuple[tuple[Event, bytes], ...]:
    """Return the events of the newest attempt; those that close an unpublished one are not published."""
    newest = events[-1][0].attempt
    return tuple(each for each in events if each[0].attempt == newest)


def accepted_row(month: date, one: AcceptedEvaluation) -> EventRow:
    """Make the row of the first event of an accepted evaluation."""
    event = one.event
    entry_id = committed_entry_id(event.occurred_at).decode()
    key = event.evaluation_id
    return EventRow(month, key, 1, 0, event.type, "applied", event.occurred_at, entry_id, one.body)
