"""A history as text. In foreign text, neither markup nor escape sequences take effect."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from scoreline.formatting import clock, excerpt, span
from scoreline.reports.replay import event_text
from scoreline.reports.replay.grid import Row, grid
from scoreline.reports.replay.history import Attempt, EvaluationHistory
from scoreline.reports.replay.past_state import PastState
from scoreline.reports.replay.styles import STYLES
from scoreline.reports.replay.summary_text import heading, outcome, quarantine, state_then
from scoreline.reports.replay.timeline_entry import TimelineEntry


class TimelineColumn(NamedTuple):
    """A column of the timeline, and the terminal width from which it is shown."""

    heading: str
    cell: Callable[[TimelineEntry], Text]
    from_width: int = 0


def _verdict(line: TimelineEntry) -> Text:
    return Text(event_text.verdict(line), style="cyan" if line.pending else STYLES[line.disposition])


def _place(line: TimelineEntry) -> Text:
    return Text(event_text.place(line), style="yellow" if line.overtaken_by else "")


COLUMNS = (
    TimelineColumn("seq", lambda line: Text(str(line.event.sequence))),
    TimelineColumn("arrived", _place),
    TimelineColumn("at", lambda line: Text(clock(line.arrived_at)), from_width=136),
    TimelineColumn("event", lambda line: Text(line.event.type)),
    TimelineColumn(
        "state after", lambda line: Text(line.phase or "unchanged", style="" if line.phase else "dim")
    ),
    TimelineColumn("since last", lambda line: Text("" if line.since is None else span(line.since))),
    TimelineColumn("verdict", _verdict),
    # On a narrow terminal, the owner in the heading of the attempt is enough.
    TimelineColumn("by", lambda line: Text(excerpt(line.event.source, 20)), from_width=100),
    TimelineColumn("detail", lambda line: Text(event_text.detail(line))),
)


def show(
    console: Console,
    history: EvaluationHistory,
    *,
    attempt: int | None = None,
    then: PastState | None = None,
) -> None:
    """Print a history: heading, timeline, scorecard, quarantined entries."""
    for line in (
        *(state_then(history, then) if then else heading(history)),
        *timeline(history if attempt is None else history.only(attempt), console.width),
        *outcome(history),
        *quarantine(history),
    ):
        console.print(line, soft_wrap=True)


def timeline(history: EvaluationHistory, width: int) -> Iterator[Text]:
    """Return the lines of the timeline, attempt by attempt."""
    columns = [column for column in COLUMNS if width >= column.from_width]
    for attempt in history.attempts:
        yield Text()
        yield _title(attempt)
        rows: list[Row] = []
        after = -1
        for line in attempt.lines:
            rows += gaps_between(attempt, after, line.event.sequence, history.now)
            rows.append([column.cell(line) for column in columns])
            after = line.event.sequence
        yield from grid([column.heading for column in columns], rows, width)


def _title(attempt: Attempt) -> Text:
    opening = attempt.opening
    title = Text(f"Attempt {attempt.number}", style="bold")
    if opening is None:
        return title.append(" · its opening has not arrived", style="cyan")
    title.append(f" · {attempt.reason} · opened by {excerpt(opening.source, 40)}", style="")
    title.append(f" at {clock(opening.occurred_at)}")
    if attempt.owner:
        title.append(f" · owner {excerpt(attempt.owner, 60)}")
    return title


def gaps_between(attempt: Attempt, after: int, until: int, now: datetime | None) -> Iterator[Text]:
    """Return a line for each gap between two sequences, bridged or open."""
    for bridge in attempt.bridges:
        for part in bridge.missing:
            if after < part.start <= until:
                yield Text(f"  ⋯ {event_text.bridged(bridge, part)}", style="yellow")
    for part in attempt.gap.missing if attempt.gap else ():
        if attempt.gap and after < part.start <= until:
            yield Text(f"  ⋯ {event_text.missing(attempt.gap, part, now)}", style="cyan")
