"""Gaps in a history: those that were bridged, and the one that is open. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from eventlog.events import Event, EventKey
from eventlog.timeline import Bridge, Gap
from projections.queries.evaluation_records import RecordedBridge
from scoreline.reports.replay.timeline_entry import REPEATS, TimelineEntry, arrival_order, arrival_time


@dataclass(frozen=True, slots=True)
class Bridging:
    """A gap that was stepped over to a closing event."""

    attempt: int
    missing: tuple[range, ...]
    closing: Event
    at: datetime
    waited: timedelta
    came_late: tuple[int, ...] = ()
    """Missing sequences that arrived all the same."""
    worked_out: bool = False
    """Whether the stream alone says so: what a storage worker would have done."""

    @property
    def closing_key(self) -> EventKey:
        """The place of the event it led to."""
        return self.closing.key


@dataclass(frozen=True, slots=True)
class OpenGap:
    """A gap that is still open: what is missing, since when, and what waits for it."""

    attempt: int
    missing: tuple[range, ...]
    since: datetime
    waiting: tuple[Event, ...]


def open_gap(gap: Gap | None) -> OpenGap | None:
    """Tell of a gap that is still open."""
    if gap is None:
        return None
    since = datetime.fromtimestamp(gap.since_ms / 1000, UTC)
    return OpenGap(gap.attempt, gap.missing, since, tuple(entry.event for entry in gap.waiting))


def recorded_bridgings(lines: Sequence[TimelineEntry], made: Iterable[RecordedBridge]) -> list[Bridging]:
    """Tell of gaps that were bridged: how long was waited, and what came all the same."""
    told = [_bridging(lines, (b.attempt, b.closing_sequence), b.missing, b.bridged_at) for b in made]
    return [bridge for bridge in told if bridge]


def worked_out_bridgings(
    lines: Sequence[TimelineEntry], bridges: Iterable[Bridge], patience: timedelta
) -> list[Bridging]:
    """Tell of gaps that a storage worker of such patience would have bridged."""
    told = [_bridging(lines, b.closing.key, b.missing, patience) for b in bridges]
    return [bridge for bridge in told if bridge]


def _bridging(
    lines: Sequence[TimelineEntry], closing: EventKey, missing: tuple[range, ...], end: datetime | timedelta
) -> Bridging | None:
    attempt, last = closing
    there = {
        n.event.sequence: n for n in lines if n.event.attempt == attempt and n.disposition not in REPEATS
    }
    if last not in there:
        return None
    came_late = tuple(s for s in there if any(s in hole for hole in missing))
    first = missing[0].start if missing else last
    waited_for = [n.entry_id for s, n in there.items() if first <= s <= last and s not in came_late]
    since = arrival_time(min(waited_for, key=arrival_order))
    worked_out = isinstance(end, timedelta)
    at = since + end if isinstance(end, timedelta) else end
    return Bridging(attempt, missing, there[last].event, at, at - since, came_late, worked_out)
