"""The progress of a batch: updated in place on a terminal, else a plain line every few seconds.

with ProgressDisplay(Console(stderr=True)) as display:
    display.show(snapshot, fleet)
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from projections.queries.batches import BatchSnapshot
from scoreline.formatting import counted, printable, span
from scoreline.reports.batch_status import is_over, status_word
from scoreline.reports.budgets import spending
from scoreline.reports.fleet_status import FLEET_NOT_READ, FleetStatus
from scoreline.reports.pace import Pace
from scoreline.reports.pass_rate import batch_pass_rate

PLAIN_EVERY = timedelta(seconds=10)
"""How often a plain line is printed where there is no terminal."""
BAR_WIDTH = 40
NARROWEST_BAR = 8
BAR = (("━", "green"), ("x", "red"), ("-", "yellow"))
"""Completed, dead letters, cancelled: the signs differ, too, for terminals without colours."""


class ProgressDisplay:
    """Shows snapshots of one batch within a `with` block, and measures its rate."""

    def __init__(
        self,
        console: Console,
        *,
        pace: Pace | None = None,
        every: timedelta = PLAIN_EVERY,
        stamped: bool = False,
        plain: bool = False,
    ) -> None:
        self._console = console
        self._pace = pace or Pace()
        self._every = every
        self._stamped = stamped
        in_place = console.is_terminal and not plain
        self._live = Live(console=console, auto_refresh=False) if in_place else None
        self._printed: tuple[datetime, str] | None = None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(
        self, snapshot: BatchSnapshot, fleet: FleetStatus = FLEET_NOT_READ, *, remarks: Sequence[str] = ()
    ) -> None:
        """Show a snapshot; remarks are the reasons why the batch makes no progress."""
        self._pace.observe(snapshot.progress.ended, snapshot.now)
        rate, eta = self._pace.rate, self._pace.eta(snapshot.progress.pending)
        if self._live:
            lines = [Text(remark, style="yellow") for remark in remarks]
            facts = Text(" · ".join(facts_of(snapshot, fleet, rate=rate, eta=eta)))
            self._live.update(Group(bar(snapshot, self._console.width), facts, *lines), refresh=True)
        elif self._is_due(snapshot):
            parts = [progress_words(snapshot), *facts_of(snapshot, fleet, rate=rate, eta=eta), *remarks]
            time = f"[{snapshot.now.astimezone(UTC):%H:%M:%S}] " if self._stamped else ""
            self._console.print(Text(time + " · ".join(parts)), soft_wrap=True)

    def _is_due(self, snapshot: BatchSnapshot) -> bool:
        status = status_word(snapshot)
        before, self._printed = self._printed, self._printed or (snapshot.now, status)
        due = (
            before is None
            or is_over(snapshot)
            or before[1] != status
            or snapshot.now - before[0] >= self._every
        )
        if due:
            self._printed = snapshot.now, status
        return due


def bar(snapshot: BatchSnapshot, width: int) -> Text:
    """Return the bar of a batch: completed, dead letters, cancelled; the rest is empty."""
    words, progress = progress_text(snapshot), snapshot.progress
    length = max(NARROWEST_BAR, min(BAR_WIDTH, width - words.cell_len - 1))
    drawn, shares = Text(), (progress.completed, progress.dead_letters, progress.cancelled)
    reached = 0
    for (sign, style), (so_far, share) in zip(BAR, _running_sums(shares), strict=True):
        until = round(length * so_far / max(1, progress.total))
        # Even one dead letter of a million gets a cell.
        until = max(until, min(length, reached + 1)) if share else until
        drawn.append(sign * max(0, until - reached), style=style)
        reached = max(reached, until)
    drawn.append(" " * (length - reached + 1))
    return drawn.append_text(words)


def _running_sums(shares: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(accumulate(shares), shares, strict=True)


def progress_text(snapshot: BatchSnapshot) -> Text:
    """Return the progress of a batch: completed evaluations count, dead letters and cancelled do not."""
    progress, status = snapshot.progress, status_word(snapshot)
    share = f" ({progress.completed / progress.total:.1%})" if progress.total else ""
    counts = f"{progress.completed:,} of {progress.total:,}"
    verb = f"{status}, completed" if status in {"cancelled", "expired"} else status
    text = Text(f"{verb} {counts}{share}")
    if progress.dead_letters:
        text.append(f", {counted(progress.dead_letters, 'dead letter')}", style="bold red")
    if progress.cancelled:
        text.append(f", {progress.cancelled:,} cancelled", style="yellow")
    return text


def progress_words(snapshot: BatchSnapshot) -> str:
    """Return the same without colours."""
    return progress_text(snapshot).plain


def facts_of(
    snapshot: BatchSnapshot,
    fleet: FleetStatus,
    *,
    rate: float | None,
    eta: timedelta | None,
    on_average: bool = False,
) -> Iterator[str]:
    """Return rate, remaining time, pass rate, retries, cost and executors, as far as there are any."""
    goes_on = snapshot.progress.pending > 0 and not is_over(snapshot)
    if rate is not None:
        yield f"{rate:,.1f}/s{' on average' if on_average else ''}"
        if goes_on:
            yield "no end in sight" if eta is None else f"{span(eta)} to go"
    if passed := batch_pass_rate(snapshot).words():
        yield passed
    if snapshot.progress.retried:
        yield counted(snapshot.progress.retried, "retry", "retries")
    yield from spending(snapshot)
    if goes_on and fleet is not FLEET_NOT_READ:
        yield executors_text(fleet, snapshot)


def executors_text(fleet: FleetStatus, snapshot: BatchSnapshot) -> str:
    """Return how many executors serve a batch, and how many of their slots are busy."""
    if fleet.unavailable:
        return "executors not known"
    serving = fleet.serving(snapshot)
    if not serving:
        return "no executor"
    busy, slots = sum(each.busy for each in serving), sum(each.slots for each in serving)
    names = f" ({printable(serving[0].name)})" if len(serving) == 1 else ""
    return f"{counted(len(serving), 'executor')}{names}, {busy}/{slots} slots busy"
