"""The contract of the ledger, about what a batch costs and how it fails."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from eventlog import payloads as p
from projections.ledger.contract import Budget, FailedEvaluation, NewBatch, UnreachableEvaluation
from tests.conformance.projections.ledger_forms import (
    NOW,
    SPEC,
    B,
    accept,
    accepted,
    batch_of,
    key,
    one_by_one,
    open_next,
    publish,
    store,
)

CLAIM = p.Provisioning(executor="executor-1", nonce="1")
RUNNING = p.Running(target="simulated")
ANSWER = p.Responded(output="4", usage=p.TokenUsage(input_tokens=6, output_tokens=1), cost_usd=0.1)
TIMED_OUT = p.TimedOut(limit="task", seconds=1.0)
RETRYING = p.Retrying(error=p.ErrorDetail(kind="transient"), retry_at=NOW)


def failed(message: str) -> p.Failed:
    return p.Failed(error=p.ErrorDetail(kind="permanent", message=message))


async def test_a_budget_is_accepted_with_the_batch(books):
    """To the last digit; one that nobody gave is none."""
    batch = NewBatch(B, SPEC, max_cost_usd=Decimal("0.10"), max_tokens=10**12)
    await books.ledger.accept(batch, one_by_one([accepted(1)]), now=NOW)
    assert (await batch_of(books)).budget == Budget(Decimal("0.10"), 10**12, Decimal(0), 0)
    await accept(books, batch_id="other")
    assert (await batch_of(books, "other")).budget == Budget()


async def test_all_that_was_paid_is_spent(books):
    """Answers of attempts that came to nothing, too, whatever follows them; a digit is never lost."""
    await accept(books, accepted(1), accepted(2), accepted(3))
    await store(books, 1, CLAIM, RUNNING, ANSWER, RETRYING)
    await store(books, 2, CLAIM, RUNNING, ANSWER, failed("no"))
    await open_next(books, 1, p.Queued(case=p.Case(id="c"), reason=p.OpeningReason.RETRY))
    judged = p.Scored(evaluator="judge", score=1.0, usage=p.TokenUsage(output_tokens=3), cost_usd=0.01)
    await store(books, 1, CLAIM, RUNNING, ANSWER, judged, p.Completed(verdict="passed", cost_usd=0.11))
    batch = await batch_of(books)
    assert (batch.spent_usd, batch.spent_tokens) == (Decimal("0.31"), 24)
    assert (batch.ended, batch.failed) == (2, 1)


async def test_another_budget_may_be_given_at_any_time(books):
    """Each word has its author; what is spent is nobody's to change."""
    await accept(books, accepted(1))
    await store(books, 1, CLAIM, RUNNING, ANSWER)
    await books.ledger.set_budget(
        B, Budget(Decimal(5), None, Decimal(99), 99), by="ann", reason="at most $5.00"
    )
    assert (await batch_of(books)).budget == Budget(Decimal(5), None, Decimal("0.1"), 7)
    await books.ledger.set_budget(B, Budget(None, 9), by="bob", reason="9 tokens")
    assert (await batch_of(books)).budget == Budget(None, 9, Decimal("0.1"), 7)
    assert (await books.asked(B))[1:] == [("budget", "ann", "at most $5.00"), ("budget", "bob", "9 tokens")]
    await books.ledger.set_budget("unknown", Budget(), by="ann")
    assert await books.asked("unknown") == []


async def test_the_newest_failures_are_told_with_how_soon_they_came(books):
    """At the first try, after a retry, after executors were lost, or without any try at all.

    The newest is the one that was stored last: executors date what they record by clocks of their own.
    """
    await accept(books, *map(accepted, range(1, 8)))
    case, behind = p.Case(id="c"), NOW - timedelta(hours=1)
    for number in range(1, 5):
        await store(books, number, CLAIM, failed(f"first {number}"))
        await books.wait(1)
    await store(books, 5, CLAIM, RETRYING)
    await open_next(books, 5, p.Queued(case=case, reason=p.OpeningReason.RETRY))
    await store(books, 5, CLAIM, failed("again"), occurred_at=behind)
    await books.wait(1)
    await open_next(books, 4, p.Queued(case=case, reason=p.OpeningReason.OPERATOR))
    await store(books, 4, CLAIM, failed("operator"), occurred_at=behind - timedelta(hours=1))
    await store(books, 6, CLAIM, TIMED_OUT)
    await books.wait(1)
    await open_next(books, 7, p.Queued(case=case, reason=p.OpeningReason.LOST), failed("lost"))
    await books.wait(1)
    await open_next(books, 1, p.Queued(case=case, reason=p.OpeningReason.OPERATOR), failed("given up"))
    found = await books.ledger.failures(B, limit=10)
    assert [(each.message, each.was_tried, each.is_at_once) for each in found] == [
        ("given up", False, True),
        ("lost", True, False),
        ("operator", True, True),
        ("again", True, False),
        ("first 3", True, True),
        ("first 2", True, True),
    ]
    assert found[2] == FailedEvaluation("permanent", "operator", was_tried=True, is_at_once=True)
    assert await books.ledger.failures(B, limit=2) == found[:2]
    assert await books.ledger.failures("unknown", limit=2) == []


async def test_evaluations_that_wait_for_a_first_connection_are_found_until_one_is_completed(books):
    """Only published ones, whose newest attempt was closed with that fault."""
    unreachable = p.Retrying(error=p.ErrorDetail(kind="unreachable", message="refused"), retry_at=NOW)
    await accept(books, *(accepted(number) for number in range(1, 6)))
    batch = await publish(books, 4, size=4)
    for number in (1, 2, 5):
        await store(books, number, CLAIM, RUNNING, unreachable)
    await store(books, 3, CLAIM, RUNNING, RETRYING)
    await open_next(books, 2, p.Queued(case=p.Case(id="c"), reason=p.OpeningReason.RETRY))
    found = await books.ledger.unreached(batch, kind="unreachable", limit=10)
    assert found == [UnreachableEvaluation(key(1), 1, 0, "refused")]
    await store(books, 2, CLAIM, RUNNING, unreachable)
    found = await books.ledger.unreached(batch, kind="unreachable", limit=10)
    assert [(each.evaluation_id, each.attempt) for each in found] == [(key(1), 1), (key(2), 2)]
    await store(books, 4, CLAIM, RUNNING, ANSWER, p.Completed(verdict="passed"))
    assert await books.ledger.unreached(batch, kind="unreachable", limit=10) == []


async def test_spend_that_no_event_records_counts_against_the_budget(books):
    """It only grows; what the next call may cost is kept until the batch goes on."""
    batch = NewBatch(B, SPEC, max_cost_usd=Decimal(1))
    await books.ledger.accept(batch, one_by_one([accepted(1)]), now=NOW)
    await store(books, 1, CLAIM, RUNNING, ANSWER)
    await books.ledger.note_unrecorded(B, Decimal("0.25"), 5)
    await books.ledger.note_unrecorded(B, Decimal("0.20"), 9)
    await books.ledger.note_next(B, Decimal("0.7"), 40)
    spent, unknown = (Decimal("0.35"), 16), (Decimal("0.25"), 9)
    assert (await batch_of(books)).budget == Budget(Decimal(1), None, *spent, Decimal("0.7"), 40, *unknown)
    await books.ledger.request_state(B, "paused", by="coordinator", reason="budget")
    assert (await batch_of(books)).budget.next_tokens == 40
    await books.ledger.request_state(B, "running", by="ann")
    assert (await batch_of(books)).budget == Budget(Decimal(1), None, *spent, Decimal(0), 0, *unknown)


async def test_recorded_spend_is_known_by_its_source(books):
    """What each writer has put on record, but for answers that were there before."""
    await accept(books, accepted(1), accepted(2))
    judged = p.Scored(evaluator="judge", score=1.0, usage=p.TokenUsage(output_tokens=3), cost_usd=0.01)
    await store(books, 1, CLAIM, RUNNING, ANSWER, judged, p.Completed(verdict="passed", cost_usd=0.11))
    await store(books, 2, CLAIM, RUNNING, replace(ANSWER, cached=True), judged)
    found = await books.ledger.spent_by_source(B)
    assert list(found.values()) == [(Decimal("0.12"), 13)]
    assert await books.ledger.spent_by_source("unknown") == {}
