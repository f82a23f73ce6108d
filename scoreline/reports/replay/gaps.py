"""Gaps in a history: bridged gaps, and the open one. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from eventlog.events import Event, EventKey
from eventlog.timeline import Bridge, Gap
from projections.queries.evaluation_records import RecordedBridge
from scoreline.reports.replay.timeline_entry import REPEATS, TimelineEntry, arrival_order, arrival_time


@dataclass(frozen=True, slots=True)
class Bridging:
    """A gap that was bridged to a closing event."""

    attempt: int
    missing: tuple[range, ...]
    closing: Event
    at: datetime
    waited: timedelta
    came_late: tuple[int, ...] = ()
    """Missing sequences that arrived after the bridge."""
    worked_out: bool = False
    """Whether it is computed from the stream alone, as a storage worker would bridge."""

    @property
    def closing_key(self) -> EventKey:
        """The key of the closing event."""
        return self.closing.key


@dataclass(frozen=True, slots=True)
class OpenGap:
    """An open gap: the missing sequences, since when, and the events that wait for them."""

    attempt: int
    missing: tuple[range, ...]
    since: datetime
    waiting: tuple[Event, ...]


def open_gap(gap: Gap | None) -> OpenGap | None:
    """Return the open gap of a replay, if there is one."""
    if gap is None:
        return None
    since = datetime.fromtimestamp(gap.since_ms / 1000, UTC)
    return OpenGap(gap.attempt, gap.missing, since, tuple(entry.event for entry in gap.waiting))


def recorded_bridgings(lines: Sequence[TimelineEntry], made: Iterable[RecordedBridge]) -> list[Bridging]:
    """Return the gaps that Postgres recorded as bridged, with the wait and the late arrivals."""
    bridgings = [_bridging(lines, (b.attempt, b.closing_sequence), b.missing, b.bridged_at) for b in made]
    return [bridge for bridge in bridgings if bridge]


def worked_out_bridgings(
    lines: Sequence[TimelineEntry], bridges: Iterable[Bridge], gap_timeout: timedelta
) -> list[Bridging]:
    """Return the gaps that a storage worker with this gap timeout would have bridged."""
    bridgings = [_bridging(lines, b.closing.key, b.missing, gap_timeout) for b in bridges]
    return [bridge for bridge in bridgings if bridge]


def _bridging(
    lines: Sequence[TimelineEntry], closing: EventKey, missing: tuple[range, ...], end: datetime | timedelta
) -> Bridging | None:
    attempt, last = closing
    arrived = {
        n.event.sequence: n for n in lines if n.event.attempt == attempt and n.disposition not in REPEATS
    }
    if last not in arrived:
        return None
    came_late = tuple(s for s in arrived if any(s in part for part in missing))
    first = missing[0].start if missing else last
    waited_for = [n.entry_id for s, n in arrived.items() if first <= s <= last and s not in came_late]
    since = arrival_time(min(waited_for, key=arrival_order))
    worked_out = isinstance(end, timedelta)
    at = since + end if isinstance(end, timedelta) else end
    return Bridging(attempt, missing, arrived[last].event, at, at - since, came_late, worked_out)
