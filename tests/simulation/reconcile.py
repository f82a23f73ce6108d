"""What a coordinator does next about one evaluation: a pure decision, by the rules of the protocol."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from eventlog import payloads as p
from eventlog.codec import Entry
from eventlog.events import Event, EventKey
from eventlog.lifecycle import CLOSING_TYPES, ENDED, Phase
from eventlog.timeline import arrival_ms
from projections.change import Row

GRACE = 4.0
"""Seconds that owners have to put their attempts back after Redis was lost."""
TASK_TIMEOUT = 12.0
"""Seconds after which an owner is taken for hung, whatever its heartbeat says."""


class Next(StrEnum):
    """What to do."""

    WAIT = "wait"
    PUBLISH = "publish"
    ENQUEUE = "enqueue"
    RETRY = "open: retry"
    LOST = "open: lost"


@dataclass(frozen=True, slots=True)
class Glance:
    """What there is to know about an evaluation that has not moved for a while."""

    row: Row
    logged: Mapping[EventKey, Event]
    """What Postgres has of it."""
    stream: Mapping[EventKey, Entry]
    """What Redis has of it, the first of each key."""
    epoch: str
    epoch_held: float
    """Seconds that the epoch is known to have held."""
    now: datetime
    now_ms: int
    is_live: Callable[[str], bool]
    is_on_its_way: bool
    """Whether its task is queued, or with somebody who lives."""


def reconcile(seen: Glance) -> Next:
    """Decide; each step may be repeated."""
    cursor, stream = seen.row.cursor, seen.stream
    if cursor.phase in ENDED or _closed_unapplied(seen):
        return Next.WAIT
    if cursor.phase is Phase.RETRYING:
        return Next.RETRY if _retry_is_due(seen) and seen.epoch_held >= GRACE else Next.WAIT
    claim = stream.get((cursor.attempt, 1))
    if claim and _works(seen, claim):
        return Next.WAIT
    opening = seen.logged[cursor.attempt, 0].data
    opened_in = opening.epoch if isinstance(opening, p.Queued) else ""
    if claim or seen.row.owner or opened_in != seen.epoch:
        return Next.LOST if seen.epoch_held >= GRACE else Next.WAIT
    if (cursor.attempt, 0) not in stream:
        return Next.PUBLISH
    return Next.WAIT if seen.is_on_its_way else Next.ENQUEUE


def _closed_unapplied(seen: Glance) -> bool:
    """Whether the newest attempt is closed in the stream: then the storage worker has the next word."""
    place = seen.row.cursor[:2]
    return any(
        key > place and entry.event.type in CLOSING_TYPES and key[0] == place[0]
        for key, entry in seen.stream.items()
    )


def _retry_is_due(seen: Glance) -> bool:
    closing = seen.logged[seen.row.cursor[:2]].data
    return not isinstance(closing, p.Retrying) or closing.retry_at <= seen.now


def _works(seen: Glance, claim: Entry) -> bool:
    """Whether an attempt's owner may be presumed to work on it."""
    data = claim.event.data
    hung = seen.now_ms - arrival_ms(claim.id) > TASK_TIMEOUT * 1000
    return isinstance(data, p.Provisioning) and seen.is_live(data.executor) and not hung
