"""The contract of the ledger for the cost and the failures of a batch."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from eventlog import payloads as p
from projections.ledger.batch import Budget, NewBatch
from projections.ledger.contract import FailedEvaluation, UnreachableEvaluation
from tests.conformance.projections.ledger.ledger_forms import (
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


async def test_a_budget_is_accepted_with_the_batch(ledgers):
    """Amounts are exact to the last digit; a batch without a budget has none."""
    batch = NewBatch(B, SPEC, max_cost_usd=Decimal("0.10"), max_tokens=10**12)
    await ledgers.ledger.accept(batch, one_by_one([accepted(1)]), now=NOW)
    assert (await batch_of(ledgers)).budget == Budget(Decimal("0.10"), 10**12, Decimal(0), 0)
    await accept(ledgers, batch_id="other")
    assert (await batch_of(ledgers, "other")).budget == Budget()


async def test_every_paid_answer_counts_as_spent(ledgers):
    """Answers of failed attempts count too, and sums are exact to the last digit."""
    await accept(ledgers, accepted(1), accepted(2), accepted(3))
    await store(ledgers, 1, CLAIM, RUNNING, ANSWER, RETRYING)
    await store(ledgers, 2, CLAIM, RUNNING, ANSWER, failed("no"))
    await open_next(ledgers, 1, p.Queued(case=p.Case(id="c"), reason=p.OpeningReason.RETRY))
    judged = p.Scored(evaluator="judge", score=1.0, usage=p.TokenUsage(output_tokens=3), cost_usd=0.01)
    await store(ledgers, 1, CLAIM, RUNNING, ANSWER, judged, p.Completed(verdict="passed", cost_usd=0.11))
    batch = await batch_of(ledgers)
    assert (batch.progress.cost_usd, batch.progress.tokens) == (Decimal("0.31"), 24)
    assert (batch.progress.ended, batch.progress.failed) == (2, 1)


async def test_the_budget_can_be_changed_at_any_time(ledgers):
    """Each change is recorded with its author, and the recorded spend is unchanged."""
    await accept(ledgers, accepted(1))
    await store(ledgers, 1, CLAIM, RUNNING, ANSWER)
    await ledgers.ledger.set_budget(
        B, Budget(Decimal(5), None, Decimal(99), 99), by="ann", reason="at most $5.00"
    )
    assert (await batch_of(ledgers)).budget == Budget(Decimal(5), None, Decimal("0.1"), 7)
    await ledgers.ledger.set_budget(B, Budget(None, 9), by="bob", reason="9 tokens")
    assert (await batch_of(ledgers)).budget == Budget(None, 9, Decimal("0.1"), 7)
    assert (await ledgers.operations(B))[1:] == [
        ("budget", "ann", "at most $5.00"),
        ("budget", "bob", "9 tokens"),
    ]
    await ledgers.ledger.set_budget("unknown", Budget(), by="ann")
    assert await ledgers.operations("unknown") == []


async def test_the_newest_failures_are_listed_with_how_they_came_about(ledgers):
    """They failed at the first try, after a retry, after lost executors, or without any try.

    The newest is the one that was stored last, since the clocks of executors differ.
    """
    await accept(ledgers, *map(accepted, range(1, 8)))
    case, behind = p.Case(id="c"), NOW - timedelta(hours=1)
    for number in range(1, 5):
        await store(ledgers, number, CLAIM, failed(f"first {number}"))
        await ledgers.wait(1)
    await store(ledgers, 5, CLAIM, RETRYING)
    await open_next(ledgers, 5, p.Queued(case=case, reason=p.OpeningReason.RETRY))
    await store(ledgers, 5, CLAIM, failed("again"), occurred_at=behind)
    await ledgers.wait(1)
    await open_next(ledgers, 4, p.Queued(case=case, reason=p.OpeningReason.OPERATOR))
    await store(ledgers, 4, CLAIM, failed("operator"), occurred_at=behind - timedelta(hours=1))
    await store(ledgers, 6, CLAIM, TIMED_OUT)
    await ledgers.wait(1)
    await open_next(ledgers, 7, p.Queued(case=case, reason=p.OpeningReason.LOST), failed("lost"))
    await ledgers.wait(1)
    await open_next(ledgers, 1, p.Queued(case=case, reason=p.OpeningReason.OPERATOR), failed("dead letter"))
    found = await ledgers.ledger.failures(B, limit=10)
    assert [(each.message, each.was_tried, each.is_at_once) for each in found] == [
        ("dead letter", False, True),
        ("lost", True, False),
        ("operator", True, True),
        ("again", True, False),
        ("first 3", True, True),
        ("first 2", True, True),
    ]
    assert found[2] == FailedEvaluation("permanent", "operator", was_tried=True, is_at_once=True)
    assert await ledgers.ledger.failures(B, limit=2) == found[:2]
    assert await ledgers.ledger.failures("unknown", limit=2) == []


async def test_evaluations_waiting_for_first_contact_are_listed_until_one_completes(ledgers):
    """Only published evaluations whose newest attempt was closed with that fault are listed."""
    unreachable = p.Retrying(error=p.ErrorDetail(kind="unreachable", message="refused"), retry_at=NOW)
    await accept(ledgers, *(accepted(number) for number in range(1, 6)))
    batch = await publish(ledgers, 4, size=4)
    for number in (1, 2, 5):
        await store(ledgers, number, CLAIM, RUNNING, unreachable)
    await store(ledgers, 3, CLAIM, RUNNING, RETRYING)
    await open_next(ledgers, 2, p.Queued(case=p.Case(id="c"), reason=p.OpeningReason.RETRY))
    found = await ledgers.ledger.unreached(batch, kind="unreachable", limit=10)
    assert found == [UnreachableEvaluation(key(1), 1, 0, "refused")]
    await store(ledgers, 2, CLAIM, RUNNING, unreachable)
    found = await ledgers.ledger.unreached(batch, kind="unreachable", limit=10)
    assert [(each.evaluation_id, each.attempt) for each in found] == [(key(1), 1), (key(2), 2)]
    await store(ledgers, 4, CLAIM, RUNNING, ANSWER, p.Completed(verdict="passed"))
    assert await ledgers.ledger.unreached(batch, kind="unreachable", limit=10) == []


async def test_unrecorded_spend_counts_against_the_budget(ledgers):
    """It only grows; the cost of the next call is kept until the batch is resumed."""
    batch = NewBatch(B, SPEC, max_cost_usd=Decimal(1))
    await ledgers.ledger.accept(batch, one_by_one([accepted(1)]), now=NOW)
    await store(ledgers, 1, CLAIM, RUNNING, ANSWER)
    await ledgers.ledger.set_unrecorded_spend(B, Decimal("0.25"), 5)
    await ledgers.ledger.set_unrecorded_spend(B, Decimal("0.20"), 9)
    await ledgers.ledger.set_next_call_cost(B, Decimal("0.7"), 40)
    spent, unknown = (Decimal("0.35"), 16), (Decimal("0.25"), 9)
    assert (await batch_of(ledgers)).budget == Budget(
        Decimal(1), None, *spent, Decimal("0.7"), 40, *unknown
    )
    await ledgers.ledger.request_state(B, "paused", by="coordinator", reason="budget")
    assert (await batch_of(ledgers)).budget.next_tokens == 40
    await ledgers.ledger.request_state(B, "running", by="ann")
    assert (await batch_of(ledgers)).budget == Budget(Decimal(1), None, *spent, Decimal(0), 0, *unknown)


async def test_recorded_spend_is_listed_by_source(ledgers):
    """The spend of each writer is listed without cached answers."""
    await accept(ledgers, accepted(1), accepted(2))
    judged = p.Scored(evaluator="judge", score=1.0, usage=p.TokenUsage(output_tokens=3), cost_usd=0.01)
    await store(ledgers, 1, CLAIM, RUNNING, ANSWER, judged, p.Completed(verdict="passed", cost_usd=0.11))
    await store(ledgers, 2, CLAIM, RUNNING, replace(ANSWER, cached=True), judged)
    found = await ledgers.ledger.spent_by_source(B)
    assert list(found.values()) == [(Decimal("0.12"), 13)]
    assert await ledgers.ledger.spent_by_source("unknown") == {}
