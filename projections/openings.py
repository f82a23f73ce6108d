"""Openings as the tables take them: they are committed before they are in any stream. Pure."""

from collections.abc import Sequence
from datetime import date

from eventlog.codec import Entry
from eventlog.events import Event
from eventlog.keys import shard_of
from eventlog.timeline import unfold
from projections.change import Change, EventRow, Row, fold
from projections.ledger import Accepted

SUBMITTED_ENTRY = 1_000_000
"""Second half of the entry ids of events that are committed before they are in any stream."""


def opening_change(row: Row, events: Sequence[tuple[Event, bytes]], *, shards: int) -> Change:
    """Fold openings into the change they make, as if they had just arrived."""
    first = events[0][0]
    at_ms = int(first.occurred_at.timestamp() * 1000)
    entries = [
        Entry(b"%d-%d" % (at_ms, SUBMITTED_ENTRY + place), event, body)
        for place, (event, body) in enumerate(events)
    ]
    walked = unfold(row.cursor, entries)
    change = fold(row, shard_of(row.evaluation_id, shards), walked, exists=True)
    change.head = row.head  # they are in no stream yet
    return change


def accepted_row(month: date, one: Accepted) -> EventRow:
    """Lay out the first event of an evaluation as it is accepted."""
    event = one.event
    entry_id = f"{int(event.occurred_at.timestamp() * 1000)}-{SUBMITTED_ENTRY}"
    key = event.evaluation_id
    return EventRow(month, key, 1, 0, event.type, "applied", event.occurred_at, entry_id, one.body)
