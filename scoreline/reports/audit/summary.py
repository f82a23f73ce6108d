"""`scoreline replay --summary`: rates, waits, retries, disorder and executors of a batch on one screen."""

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from projections.database.connection import one_snapshot
from projections.queries.batch_summary import BatchSummary, batch_summary
from scoreline.formatting import money, printable, span, stamp
from scoreline.reports.pass_rate import PassRate
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected

COUNTERS_SHOWN = (
    *("total", "pending", "completed", "passed", "failed", "timed_out", "cancelled", "retried", "bridged"),
    *("score", "tokens", "cost_usd"),
)
"""The counters in the JSON document, in their order."""


def run_summary(servers: Servers, batch_id: str, *, as_json: bool) -> int:
    """Print the summary of a batch."""

    async def read(url: str) -> BatchSummary:
        async with connected(url) as conn, one_snapshot(conn):
            return await batch_summary(conn, batch_id)

    summary = asyncio.run(read(servers.postgres_url))
    if as_json:
        print(json.dumps(_document(summary), default=_plain))  # noqa: T201 - machines read stdout
    else:
        show(Console(highlight=False), summary)
    return 0


def show(console: Console, summary: BatchSummary) -> None:
    """Print the summary as text."""
    for line in (*_headline(summary), *_disorder(summary)):
        console.print(Text(line), soft_wrap=True)
    for table in (_waits(summary), _executors(summary), _slowest(summary)):
        if table.row_count:
            console.print()
            console.print(table)


def _headline(summary: BatchSummary) -> list[str]:
    began, ended, length = summary.span.began_at, summary.span.ended_at, summary.span.length
    lines = [
        f"{printable(summary.batch_id)} ({summary.span.kind}), accepted {stamp(summary.span.accepted_at)}"
    ]
    if began and ended:
        lines.append(f"from {stamp(began)} to {stamp(ended)}: {span(length)}")
    seconds = length.total_seconds()
    progress = summary.progress
    if progress is not None:
        rates = f", {progress.ended / seconds:,.1f} a second" if seconds else ""
        lines.append(
            f"{progress.ended:,} of {progress.total:,} evaluations ended{rates}: {_counts(summary.states)}"
        )
        score = "" if progress.score is None else f", mean score {progress.score:.3f}"
        rate = PassRate.of(progress, is_scored=summary.span.is_scored)
        spent = f"{progress.tokens:,} tokens, {money(float(progress.cost_usd))}"
        lines.append(f"{rate.words() or 'none ended'}{score}, {spent}")
    return lines


def _disorder(summary: BatchSummary) -> list[str]:
    events, evaluations = summary.reordered
    seconds = summary.span.length.total_seconds()
    rate = f" ({summary.span.events / seconds:,.0f} a second)" if seconds else ""
    bridged = 0 if summary.progress is None else summary.progress.bridged
    return [
        f"{summary.span.events:,} events{rate}: {_counts(summary.verdicts)}",
        f"reordered: {events:,} events of {evaluations:,} evaluations · bridged gaps: {bridged:,}",
        f"in quarantine: {_counts(summary.quarantined)}",
        f"attempts: {summary.span.attempts:,}, of which opened again: {_counts(summary.retries)}",
    ]


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {printable(what)}" for what, number in counted.items()) or "none"


def _waits(summary: BatchSummary) -> Table:
    table = _table("step", "times", "median", "p95", "longest")
    for wait in summary.waits:
        table.add_row(wait.step, f"{wait.times:,}", *map(_seconds, (wait.median, wait.p95, wait.longest)))
    return table


def _executors(summary: BatchSummary) -> Table:
    table = _table(
        "executor", "attempts", "completed", "retried", "failed", "unclosed", "median", "longest"
    )
    for share in summary.executors:
        closed = (share.attempts, share.completed, share.retried, share.failed, share.unclosed)
        times = (_seconds(share.median), _seconds(share.longest))
        table.add_row(Text(printable(share.executor)), *(f"{number:,}" for number in closed), *times)
    return table


def _slowest(summary: BatchSummary) -> Table:
    table = _table("slowest", "took", "attempt", "state", "owner")
    for slow in summary.slowest:
        owner = Text(printable(slow.owner or "-"))
        name = Text(printable(slow.evaluation_id))
        table.add_row(name, _seconds(slow.seconds), str(slow.attempt), slow.state, owner)
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="left" if name in {"state", "owner"} else "right")
    return table


def _seconds(seconds: float) -> str:
    return span(timedelta(seconds=seconds))


def _document(summary: BatchSummary) -> dict[str, object]:
    progress = summary.progress
    return {
        "batch_id": summary.batch_id,
        "span": summary.span._asdict(),
        "status": None if progress is None else {name: getattr(progress, name) for name in COUNTERS_SHOWN},
        "states": summary.states,
        "waits": [wait._asdict() for wait in summary.waits],
        "retries": summary.retries,
        "verdicts": summary.verdicts,
        "reordered": dict(zip(("events", "evaluations"), summary.reordered, strict=True)),
        "quarantined": summary.quarantined,
        "slowest": [slow._asdict() for slow in summary.slowest],
        "executors": [share._asdict() for share in summary.executors],
    }


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat()
        case Decimal():
            return float(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form")
