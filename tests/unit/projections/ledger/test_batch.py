"""A stored batch: its budget and progress, read from the last columns of its row."""

from datetime import date, timedelta
from decimal import Decimal

from projections.folds.progress import Progress
from projections.ledger.batch import Batch, Budget, with_totals
from tests.batches import changed
from tests.builders import START

BATCH = Batch("b", date(2026, 1, 1), "", "p", 1, b"", "running", "", 5, "b.5", None, False)
LIMITS = (Decimal(2), None, Decimal("0.75"), 80, Decimal(0), 0, Decimal("0.25"), 10)
COUNTERS = (9, 4, 3, 1, 1, 1, 2, 0, 4, Decimal(3), 70, Decimal("0.5"))


def test_the_last_columns_become_budget_and_progress() -> None:
    """Columns are in the order of the fields; those before them stay as they are."""
    *head, budget, progress = with_totals(("b", "nightly", *LIMITS, *COUNTERS))
    assert head == ["b", "nightly"]
    assert budget == Budget(*LIMITS)
    assert progress == Progress(*COUNTERS)


def test_derived_counters_follow_from_the_stored_ones() -> None:
    """Cancelled evaluations have ended, and were not executed; pending is never negative."""
    progress = Progress(*COUNTERS)
    assert (progress.ended, progress.executed, progress.pending, progress.dead_letters) == (7, 6, 2, 2)
    assert (progress.score, Progress().score, Progress(failed=1).pending) == (0.75, None, 0)


def test_only_published_evaluations_are_in_flight() -> None:
    """The count is never negative: evaluations end before their window is counted."""
    assert changed(BATCH, completed=2, cancelled=1).in_flight == 2
    assert changed(BATCH, completed=6).in_flight == 0


def test_a_budget_limits_cost_or_tokens() -> None:
    """A limit of zero is a limit."""
    limited = [Budget(), Budget(max_tokens=0), Budget(max_cost_usd=Decimal(0))]
    assert [each.is_limited for each in limited] == [False, True, True]


def test_the_time_limit_is_counted_from_acceptance() -> None:
    """Without a deadline there is no limit."""
    limited = changed(BATCH, accepted_at=START, deadline=START + timedelta(minutes=2))
    assert (BATCH.allowed_seconds, limited.allowed_seconds) == (0.0, 120.0)
