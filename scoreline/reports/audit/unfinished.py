"""Why evaluations have not ended: a gap, a quarantine, or simply work in progress."""

from dataclasses import dataclass

from psycopg import AsyncConnection

from projections.queries.batch_status import batch_unfinished
from scoreline.formatting import counted, printable, span
from scoreline.reports.replay.lines import Fate
from scoreline.reports.replay.origin import Origin
from scoreline.reports.replay.sources import open_sources
from scoreline.reports.replay.story import Story
from scoreline.reports.replay.wording import missing
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings

LISTED = 10
NOT_ASKED = "why is not known, as Redis does not answer"


@dataclass(frozen=True, slots=True)
class Pending:
    """An evaluation that has not ended, and why."""

    evaluation_id: str
    state: str
    why: str


async def why_unfinished(settings: Settings, servers: Servers, batch_id: str) -> list[Pending]:
    """Look at the first of a batch's open evaluations, in Redis and in Postgres."""
    async with await AsyncConnection.connect(servers.postgres_url) as conn:
        found = await batch_unfinished(conn, batch_id, limit=LISTED)
    async with open_sources(settings, servers, Origin.BOTH) as sources:
        if sources.log is None:
            return [Pending(each.evaluation_id, each.state, NOT_ASKED) for each in found]
        return [
            Pending(each.evaluation_id, each.state, reason(await sources.story(each.evaluation_id)))
            for each in found
        ]


def reason(story: Story) -> str:
    """Say why an evaluation has not ended, as far as its story tells."""
    parts = []
    if story.gap:
        parts += [missing(story.gap, hole, story.now) for hole in story.gap.missing]
    unstored = [line for line in story.lines if line.pending and line.fate is not Fate.WAITING]
    if unstored:
        parts.append(f"{counted(len(unstored), 'event')} not stored yet")
    if story.refusals:
        parts.append(f"in quarantine: {', '.join(sorted({bad.reason for bad in story.refusals}))}")
    return "; ".join(parts) or _last_word(story)


def _last_word(story: Story) -> str:
    if not story.lines:
        return "neither Redis nor the log has an event of it"
    newest = max(story.lines, key=lambda line: line.arrived_at)
    ago = f" {span(story.now - newest.arrived_at)} ago" if story.now else ""
    return f"in progress; last heard{ago}: {newest.event.type} from {printable(newest.event.source)}"
