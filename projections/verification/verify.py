"""Verification: every row of every table of a batch, compared with a fold of its events.

Used by `scoreline replay --verify` and by the fault tests. It reads one snapshot of the database, page by
page, while workers continue to write.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from eventlog.codec import Entry, QuarantineReason, RejectedEntry, decode
from eventlog.keys import shard_of
from eventlog.timeline import Cursor
from projections.database.connection import Connection, one_snapshot
from projections.folds.change import EvaluationRow, EventRow, QuarantineRow, quarantine_row
from projections.folds.progress import Progress
from projections.folds.refold import RefoldResult, refold
from projections.folds.scorecard import Scorecard
from projections.verification.page_workers import PageJob, over_pages
from projections.verification.pages import (
    BatchExtent,
    DerivedRow,
    Page,
    Since,
    read_batch,
    read_page,
    read_progress,
)
from projections.verification.plain_page import clear_plain

TableRow = DerivedRow | Scorecard
NOTHING = "no such row"
DERIVED = frozenset({"evaluations", "scorecards", "batch_progress"})
REASONS = {reason.value for reason in QuarantineReason}
MAX_NAMED = 100
"""Differences that are listed; all are counted."""


class Difference(NamedTuple):
    """One column or row that differs from the fold of the log."""

    table: str
    key: str
    column: str
    found: str
    expected: str

    @property
    def is_mendable(self) -> bool:
        """Whether a rebuild corrects it: it is derived from the log."""
        return self.table in DERIVED or self.found == NOTHING

    @property
    def where(self) -> str:
        """Table, key and column."""
        return " ".join(part for part in (self.table, self.key, self.column) if part)

    def __str__(self) -> str:
        if not self.expected:
            return f"{self.where}: {self.found}"
        return f"{self.where}: is {self.found}, should be {self.expected}"


@dataclass(slots=True)
class VerificationResult:
    """The result of a verification."""

    batch_id: str
    evaluations: int = 0
    events: int = 0
    open: int = 0
    """Evaluations that have not ended."""
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)
    """The first of them."""

    def take(self, page: "PageResult") -> None:
        """Add the result of one page."""
        self.evaluations += page.evaluations
        self.events += page.events
        self.open += page.open
        for difference in page.differences:
            self.add(difference)

    def add(self, difference: Difference) -> None:
        """Count a difference, and list it if it is among the first."""
        self.differing += 1
        if len(self.differences) < MAX_NAMED:
            self.differences.append(difference)


@dataclass(slots=True)
class PageResult:
    """The result of one page."""

    evaluations: int = 0
    events: int = 0
    open: int = 0
    differences: list[Difference] = field(default_factory=list)
    recount: defaultdict[int, Progress] = field(default_factory=lambda: defaultdict(Progress))


async def verify(  # noqa: PLR0913 - what to verify, and how
    conn: Connection,
    batch_id: str,
    *,
    shards: int,
    processes: int = 1,
    since: Since | None = None,
    on_page: Callable[[int], None] = lambda _: None,
) -> VerificationResult:
    """Fold a batch's log and compare; `on_page` is called with the number of compared evaluations.

    With `since`, only the evaluations that changed are compared, and not the counters, which all share.
    """
    verified = VerificationResult(batch_id)
    recount: defaultdict[int, Progress] = defaultdict(Progress)
    async with one_snapshot(conn):
        batch = await read_batch(conn, batch_id)
        if wrong := wrong_month(batch):
            # Its events are read from the partition of its month: nothing else can be compared.
            verified.add(Difference("batches", batch_id, "month", *wrong))
            return verified
        pages = over_pages(conn, batch, verify_page, shards=shards, processes=processes, since=since)
        async with aclosing(pages):
            async for job, found in pages:
                verified.take(found)
                for shard, counted in found.recount.items():
                    recount[shard] += counted
                on_page(len(job.ids))
        counters = {} if since else await read_progress(conn, batch_id)
        for difference in _compare_batch(batch, {} if since else recount, counters):
            verified.add(difference)
    return verified


async def verify_page(conn: Connection, job: PageJob) -> PageResult:
    """Fold some evaluations and compare them with their rows: most at once, the others one by one."""
    plain = await clear_plain(conn, job.batch, job.ids, shards=job.shards)
    found = PageResult(len(plain.cleared), plain.events, plain.open, recount=plain.recount)
    others = [key for key in job.ids if key not in plain.cleared]
    if not others:
        return found
    page = await read_page(conn, job.batch.month, others)
    for key in page.ids:
        found.differences += _compare_one(page, key, job, found)
    found.differences += _compare_quarantined(page.quarantined.values())
    return found


def expected_row(retraced: RefoldResult) -> DerivedRow:
    """Lay out the row that an evaluation should have."""
    change = retraced.change
    attempt, sequence, phase = change.after
    return DerivedRow(
        change.evaluation_id,
        change.batch_id,
        change.month,
        change.shard,
        attempt,
        sequence,
        phase.value,
        change.owner,
        change.bridged,
        change.ended_at,
    )


def wrong_month(batch: BatchExtent) -> tuple[str, str] | None:
    """Return the month of a batch's row and the expected one, if they differ."""
    if batch.month == batch.month_of_acceptance:
        return None
    return f"{batch.month}", f"{batch.month_of_acceptance}"


def lacks_its_log(page: Page, evaluation_id: str) -> str:
    """Return the rule that is broken by results without events; empty if none is."""
    row = page.evaluations.get(evaluation_id)
    has_results = (row is not None and row.attempt > 0) or evaluation_id in page.scorecards
    lost = has_results and not page.events.get(evaluation_id)
    return "has results, but the log has none of its events" if lost else ""


def is_of(batch: BatchExtent, page: Page, evaluation_id: str) -> bool:
    """Whether an evaluation belongs to a batch: by its row, or where that names another by its events.

    One with a row and no events waits for its opening; one with neither has only a scorecard.
    """
    row, logged = page.evaluations.get(evaluation_id), page.events.get(evaluation_id, [])
    if row is None:
        return bool(logged)
    return row.batch_id == batch.batch_id or any(_names(batch, each) for each in logged)


def _names(batch: BatchExtent, logged: EventRow) -> bool:
    entry = decode(logged.entry_id.encode(), logged.event)
    return isinstance(entry, Entry) and entry.event.batch_id == batch.batch_id


def retrace_in(page: Page, evaluation_id: str, job: PageJob) -> RefoldResult:
    """Fold one evaluation of a page."""
    row = EvaluationRow(evaluation_id, job.batch.batch_id, job.batch.month, Cursor())
    logged = page.events.get(evaluation_id, [])
    return refold(row, shard_of(evaluation_id, job.shards), logged, page.bridged_gaps_of(evaluation_id))


def _compare_one(page: Page, key: str, job: PageJob, found: PageResult) -> Iterator[Difference]:
    if lost := lacks_its_log(page, key):
        yield Difference("events", key, "", lost, "")
        return
    if not is_of(job.batch, page, key):
        yield from _compare("scorecards", key, page.scorecards.get(key), None)
        return
    retraced = retrace_in(page, key, job)
    found.recount[retraced.change.shard] += retraced.progress
    found.evaluations += 1
    found.events += len(page.events.get(key, ()))
    found.open += retraced.change.ended_at is None
    yield from _compare_evaluation(page, key, retraced)
    for bad in retraced.change.quarantined:
        if bad.id not in page.quarantined:
            yield Difference("quarantine", key, bad.id[:12], NOTHING, f"{bad.reason}: {bad.detail}")


def _compare_evaluation(page: Page, key: str, retraced: RefoldResult) -> Iterator[Difference]:
    for rule in retraced.broken:
        yield Difference("events", key, "", rule, "")
    yield from _compare("evaluations", key, page.evaluations.get(key), expected_row(retraced))
    yield from _compare("scorecards", key, page.scorecards.get(key), retraced.change.scorecard)


def _compare(
    table: str, key: str, found: TableRow | None, expected: TableRow | None
) -> Iterator[Difference]:
    """Yield the columns that differ, or that one of the rows is missing."""
    if found == expected:
        return
    if found is None or expected is None:
        yield Difference(table, key, "", _shown_row(found), _shown_row(expected))
        return
    for column, is_now, should_be in zip(expected._fields, found, expected, strict=True):
        if is_now != should_be:
            yield Difference(table, key, column, _shown(is_now), _shown(should_be))


def _compare_quarantined(rows: Iterable[QuarantineRow]) -> Iterator[Difference]:
    """Yield quarantined entries whose id does not match their content."""
    for row in rows:
        if row.reason not in REASONS:
            yield Difference("quarantine", row.evaluation_id or "-", "reason", row.reason, "a known one")
            continue
        again = quarantine_row(
            row.evaluation_id,
            RejectedEntry(row.entry_id.encode(), QuarantineReason(row.reason), row.detail, row.body),
        )
        if again.id != row.id:
            what = "is no longer what its id was made of: reason, evaluation or body was altered"
            yield Difference("quarantine", row.evaluation_id or "-", row.id[:12], what, "")


def _compare_batch(
    batch: BatchExtent, recount: dict[int, Progress], found: dict[int, Progress]
) -> Iterator[Difference]:
    for shard in sorted(recount.keys() | found.keys()):
        key = f"{batch.batch_id} shard {shard}"
        is_now, should_be = asdict(found.get(shard, Progress())), asdict(recount.get(shard, Progress()))
        for column, value in should_be.items():
            if is_now[column] != value:
                yield Difference("batch_progress", key, column, f"{is_now[column]}", f"{value}")


def _shown_row(row: TableRow | None) -> str:
    if row is None:
        return NOTHING
    return ", ".join(_shown(value) for value in row[2:] if value is not None)


def _shown(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else "nothing" if value is None else str(value)
