"""What the demo shows while it runs, and at its end."""

import json
import time
from collections import Counter
from dataclasses import asdict
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from scoreline.demo.outcome import LISTED, Outcome, percentile

PLAIN_EVERY = 2.0
"""Seconds between lines where there is no terminal to draw on."""


class Display:
    """A live bar on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("evaluations ended"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=total, note="")
        self._said: set[str] = set()
        self._next_line = 0.0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, outcome: Outcome) -> None:
        """Show how far things are."""
        status = outcome.status
        if status is None:
            return
        ended = status.total - status.pending
        note = f"passed {status.passed} · retried {status.retried} · bridged {status.bridged}"
        self._bar.update(self._task, completed=ended, note=note)
        now = time.monotonic()
        if not self._console.is_terminal and now >= self._next_line:
            self._next_line = now + PLAIN_EVERY
            self._console.print(f"{ended} of {len(outcome.expected)} ended · {note}")

    def say(self, line: str) -> None:
        """Say something once."""
        if line not in self._said:
            self._said.add(line)
            self._console.print(line, markup=False)


def print_report(console: Console, outcome: Outcome) -> None:
    """Print scorecards, what was put right, and whether anything is stuck."""
    console.print(_scorecards(outcome))
    console.print(_disorder(outcome))
    if outcome.bridges:
        console.print(_bridges(outcome))
    for one in outcome.unfinished[:LISTED]:
        why = f", in quarantine: {one.quarantined}" if one.quarantined else ""
        place = f"{one.state} at attempt {one.attempt}, sequence {one.sequence}"
        console.print(f"{one.evaluation_id}: {place}{why}: no writer has more of it", markup=False)
    for evaluation_id in outcome.unknown[:LISTED]:
        console.print(f"{evaluation_id}: nothing of it is in Postgres, and no writer has it", markup=False)
    console.print(f"batch {outcome.batch_id}, {outcome.seconds:.1f} s, again with --seed {outcome.seed}")
    _print_verified(console, outcome)
    console.print(f"[bold {'green' if outcome.stuck == 0 else 'red'}]{outcome.stuck} stuck[/]")


def _print_verified(console: Console, outcome: Outcome) -> None:
    verified = outcome.verified
    if verified is None:
        return
    if verified.differing:
        console.print(f"the tables differ from the log: {verified.differences[0]}", markup=False)
    else:
        console.print(f"the tables equal the log: all {verified.events:,} events folded again")
    one = outcome.bridges[0].evaluation_id if outcome.bridges else min(outcome.expected)
    console.print(f"see for yourself: scoreline replay {one}", soft_wrap=True)
    console.print(f"                  scoreline replay --batch {outcome.batch_id}", soft_wrap=True)


def _scorecards(outcome: Outcome) -> Table:
    table = Table("ended", "evaluations", title="Scorecards", title_justify="left")
    status = outcome.status
    if status is None:
        return table
    table.add_row("completed, passed", str(status.passed))
    table.add_row("completed, failed", str(status.completed - status.passed))
    table.add_row("failed with an error", str(status.failed))
    table.add_row("timed out, cancelled", str(status.timed_out + status.cancelled))
    table.add_row("mean score", f"{status.score:.3f}" if status.score is not None else "-")
    table.add_row("tokens, cost", f"{status.tokens}, ${status.cost_usd:.4f}")
    return table


def _disorder(outcome: Outcome) -> Table:
    events, evaluations = outcome.reordered
    done = totals(outcome)
    status = outcome.status
    table = Table("on the way", "events", title="What was put right", title_justify="left")
    table.add_row("sent by the writers", str(done["sent"]))
    table.add_row("arrived after a successor, reordered", f"{events} (in {evaluations} evaluations)")
    table.add_row("sent twice", str(done["duplicated"]))
    table.add_row("lost on purpose", str(done["lost"]))
    table.add_row("gaps bridged to a closing event", str(status.bridged if status else 0))
    table.add_row(
        "stored, by verdict", ", ".join(f"{n} {verdict}" for verdict, n in outcome.verdicts.items())
    )
    delay = percentile(outcome.delays, 0.99) * 1000
    table.add_row("queue of an evaluation, p99", f"{percentile(outcome.depths, 0.99):.0f} events")
    table.add_row("recorded to acknowledged, p99", f"{delay:.0f} ms on this network")
    return table


def _bridges(outcome: Outcome) -> Table:
    table = Table("evaluation", "attempt", "missing", "closed by", title="Bridged", title_justify="left")
    for bridge in outcome.bridges:
        table.add_row(bridge.evaluation_id, str(bridge.attempt), bridge.missing, bridge.closed_by)
    return table


def totals(outcome: Outcome) -> Counter[str]:
    """Add up what all writers' connections did."""
    counted: Counter[str] = Counter()
    for mischief in outcome.mischief:
        counted.update(asdict(mischief))
    return counted


def print_json(outcome: Outcome) -> None:
    """Print one object for machines."""
    status = asdict(outcome.status) if outcome.status else {}
    result = {
        "batch_id": outcome.batch_id,
        "seed": outcome.seed,
        "stuck": outcome.stuck,
        "unfinished": [one.evaluation_id for one in outcome.unfinished] + outcome.unknown,
        **status,
        "reordered": outcome.reordered[0],
        "verdicts": outcome.verdicts,
        "differing": outcome.verified.differing if outcome.verified else None,
        "network": dict(totals(outcome)),
        "restarts": outcome.restarts,
        "duration_s": round(outcome.seconds, 3),
    }
    print(json.dumps(result, default=float))  # noqa: T201 - machines read stdout
