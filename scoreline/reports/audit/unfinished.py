"""Reasons why evaluations have not ended: a gap, a quarantined entry, or work in progress."""

from dataclasses import dataclass

from psycopg import AsyncConnection

from projections.queries.batch_summary import batch_unfinished
from scoreline.formatting import counted, printable, span
from scoreline.reports.replay.event_text import missing
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.origin import Origin
from scoreline.reports.replay.sources import open_sources
from scoreline.reports.replay.timeline_entry import EntryDisposition
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings

LISTED = 10
NOT_READ = "the reason is not known, because Redis does not answer"


@dataclass(frozen=True, slots=True)
class Pending:
    """An evaluation that has not ended, and why."""

    evaluation_id: str
    state: str
    why: str


async def why_unfinished(settings: Settings, servers: Servers, batch_id: str) -> list[Pending]:
    """Return the first open evaluations of a batch with the reason, read from Redis and Postgres."""
    async with await AsyncConnection.connect(servers.postgres_url) as conn:
        unfinished = await batch_unfinished(conn, batch_id, limit=LISTED)
    async with open_sources(settings, servers, Origin.BOTH) as sources:
        if sources.log is None:
            return [Pending(each.evaluation_id, each.state, NOT_READ) for each in unfinished]
        return [
            Pending(each.evaluation_id, each.state, reason(await sources.history(each.evaluation_id)))
            for each in unfinished
        ]


def reason(history: EvaluationHistory) -> str:
    """Return why an evaluation has not ended, from its history."""
    parts = []
    if history.gap:
        parts += [missing(history.gap, part, history.now) for part in history.gap.missing]
    unstored = [
        line for line in history.lines if line.pending and line.disposition is not EntryDisposition.WAITING
    ]
    if unstored:
        parts.append(f"{counted(len(unstored), 'event')} not stored yet")
    if history.refusals:
        parts.append(f"in quarantine: {', '.join(sorted({bad.reason for bad in history.refusals}))}")
    return "; ".join(parts) or _last_event(history)


def _last_event(history: EvaluationHistory) -> str:
    if not history.lines:
        return "neither Redis nor the log has an event of it"
    newest = max(history.lines, key=lambda line: line.arrived_at)
    ago = f" {span(history.now - newest.arrived_at)} ago" if history.now else ""
    return f"in progress; last event{ago}: {newest.event.type} from {printable(newest.event.source)}"
