"""The contract of the ledger for evaluations, on memory and on Postgres."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from eventlog import payloads as p
from eventlog.lifecycle import Phase
from projections.folds.progress import Progress
from projections.ledger.contract import SerialLink
from tests.builders import CASE, FAULT, PAYLOADS
from tests.conformance.projections.ledger.ledger_forms import (
    EPOCHS,
    LATER,
    NOW,
    B,
    LedgerForm,
    accept,
    accepted,
    batch_of,
    key,
    open_next,
    opens,
    publish,
    state_of,
    store,
)

CLAIM = p.Provisioning(executor="executor-1", nonce="1")
RUNNING = p.Running(target="simulated")
FAILED = PAYLOADS["failed"]
CANCELLED = p.Cancelled(by="operator")
AGAIN = p.Queued(case=CASE, reason=p.OpeningReason.LOST)
SECOND = timedelta(seconds=1)

# Evaluations without progress.


async def unmoved(
    ledgers: LedgerForm, *, after: str = "", live: Sequence[str] = (), queued: bool = True, limit: int = 9
) -> list[int]:
    """List evaluations without progress for 5 seconds; those of a live owner count as hung after 60."""
    found = await ledgers.ledger.unmoved(
        await batch_of(ledgers),
        after=after,
        unchanged_for=5 * SECOND,
        hung_after=60 * SECOND,
        live=live,
        queued=queued,
        limit=limit,
    )
    return [int(one.row.evaluation_id[-1]) for one in found]


async def test_evaluations_without_progress_are_listed_page_by_page(ledgers):
    """Only published evaluations that have not ended and are old enough are listed."""
    await accept(ledgers, *map(accepted, (1, 2, 3, 4)))
    await publish(ledgers, 3)
    assert await unmoved(ledgers) == []
    await ledgers.wait(10)
    await open_next(ledgers, 2, CANCELLED)
    assert await unmoved(ledgers) == [1, 3]
    assert await unmoved(ledgers, limit=1) == [1]
    assert await unmoved(ledgers, after=key(1)) == [3]
    await store(ledgers, 1, CLAIM)
    assert await unmoved(ledgers) == [3]


async def test_evaluations_with_a_live_owner_or_a_task_are_omitted(ledgers):
    """A live owner within its deadline, or a task in the queue, will still make progress."""
    await accept(ledgers, *map(accepted, (1, 2)))
    await publish(ledgers, 2)
    await store(ledgers, 1, CLAIM)
    await ledgers.wait(10)
    assert await unmoved(ledgers, live=["executor-2"]) == [1, 2]
    assert await unmoved(ledgers, live=["executor-1"]) == [2]
    assert await unmoved(ledgers, live=["executor-1"], queued=False) == []
    assert await unmoved(ledgers, queued=False) == [1]
    await ledgers.wait(60)
    assert await unmoved(ledgers, live=["executor-1"], queued=False) == [1]


async def test_a_retry_is_listed_when_it_is_due(ledgers):
    """It is not listed as one without progress, nor before its time."""
    await accept(ledgers, *map(accepted, (1, 2)))
    batch = await publish(ledgers, 1)
    for number in (1, 2):
        retrying = p.Retrying(error=FAULT, retry_at=NOW + 30 * SECOND)
        await store(ledgers, number, CLAIM, retrying, occurred_at=NOW)
    await ledgers.wait(10)
    assert await unmoved(ledgers) == []
    assert await ledgers.ledger.due_retries(batch, now=await ledgers.time(), limit=9) == []
    await ledgers.wait(21)
    [due] = await ledgers.ledger.due_retries(batch, now=await ledgers.time(), limit=9)
    assert (due.row.evaluation_id, due.row.cursor.phase) == (key(1), Phase.RETRYING)


@pytest.mark.parametrize("days", [400_000, -400_000], ids=["ahead", "behind"])
async def test_the_clock_of_an_executor_does_not_change_the_retry_delay(ledgers, days):
    """The delay counts from the time when the event was stored."""
    await accept(ledgers, accepted(1))
    batch = await publish(ledgers, 1)
    there = NOW + timedelta(days=days)
    retrying = p.Retrying(error=FAULT, retry_at=there + 30 * SECOND)
    await store(ledgers, 1, CLAIM, retrying, occurred_at=there)
    assert await ledgers.ledger.due_retries(batch, now=await ledgers.time(), limit=9) == []
    await ledgers.wait(31)
    [due] = await ledgers.ledger.due_retries(batch, now=await ledgers.time(), limit=9)
    assert due.row.evaluation_id == key(1)


# Opening attempts.


async def test_an_attempt_is_opened_with_the_row_and_its_events(ledgers):
    """`decide` gets the current row and all its events, and its decision is committed."""
    await accept(ledgers, accepted(1))
    await publish(ledgers, 1)
    await store(ledgers, 1, CLAIM, RUNNING)
    seen = {}

    def decide(one, logged):
        seen[one.row.evaluation_id] = one.row.owner, sorted(logged)
        return opens(AGAIN, epoch="01-7")(one, logged)

    [opened] = await ledgers.ledger.open_attempts([key(1), "unknown"], decide)
    assert seen == {key(1): ("executor-1", [(1, 0), (1, 1), (1, 2)])}
    assert (opened.evaluation_id, opened.epoch, opened.was_published) == (key(1), "01-7", True)
    [(event, _)] = opened.events
    now = await state_of(ledgers, 1)
    assert (now.row.cursor[:2], now.row.owner, now.epoch, now.published) == ((2, 0), None, "01-7", True)
    assert (await ledgers.ledger.stored([now.row]))[key(1)][2, 0] == event
    assert await ledgers.total() == Progress(total=1, retried=1)


async def test_an_evaluation_is_unchanged_if_no_attempt_opens(ledgers):
    """A second coordinator finds that the row has changed, and opens nothing."""
    await accept(ledgers, *map(accepted, (1, 2)))
    expected = {key(1): 1, key(2): 7}

    def decide(one, logged):
        as_expected = one.row.cursor.attempt == expected[one.row.evaluation_id]
        return opens(AGAIN)(one, logged) if as_expected else None

    ids = [key(2), key(1)]
    assert [one.evaluation_id for one in await ledgers.ledger.open_attempts(ids, decide)] == [key(1)]
    assert await ledgers.ledger.open_attempts(ids, decide) == []
    assert (await state_of(ledgers, 1)).row.cursor.attempt == 2
    assert (await ledgers.total()).retried == 1


async def test_an_end_is_unpublished_until_it_is_marked_as_published(ledgers):
    """Only ends of published evaluations are listed."""
    await accept(ledgers, *map(accepted, (1, 2)))
    await publish(ledgers, 1)
    opened = await ledgers.ledger.open_attempts([key(1), key(2)], opens(CANCELLED))
    assert [one.was_published for one in opened] == [True, False]
    [ending] = await ledgers.ledger.unpublished_endings(limit=9)
    assert (ending.evaluation_id, ending.events) == (key(1), opened[0].events)
    assert not (await state_of(ledgers, 1)).published
    await ledgers.ledger.mark_published([key(1)])
    assert await ledgers.ledger.unpublished_endings(limit=9) == []
    assert await ledgers.total() == Progress(total=2, cancelled=2)


async def test_an_attempt_can_open_and_fail_in_one_commit(ledgers):
    """Both events are returned as its opening, to be published."""
    await accept(ledgers, accepted(1))
    await publish(ledgers, 1)
    opened = await open_next(ledgers, 1, AGAIN, FAILED)
    assert (await state_of(ledgers, 1)).row.cursor == (2, 1, Phase.FAILED)
    [opening] = await ledgers.ledger.openings([key(1)])
    assert opening.events == opened.events
    assert [event.type for event, _ in opening.events] == ["queued", "failed"]
    assert await ledgers.ledger.dead_ids(B, after="", limit=9) == [key(1)]


async def test_an_opening_has_only_events_of_the_newest_attempt(ledgers):
    """Events that its owner appended are not part of it."""
    await accept(ledgers, accepted(1))
    await publish(ledgers, 1)
    opened = await open_next(ledgers, 1, AGAIN)
    await store(ledgers, 1, CLAIM, RUNNING)
    [opening] = await ledgers.ledger.openings([key(1)])
    assert opening.events == opened.events


async def test_a_reopened_evaluation_is_not_listed_as_ended(ledgers):
    """Its counters are taken back, and its epoch is that of its newest attempt."""
    await accept(ledgers, accepted(1))
    await publish(ledgers, 1)
    await store(ledgers, 1, CLAIM, FAILED)
    assert await ledgers.total() == Progress(total=1, failed=1)
    await open_next(ledgers, 1, p.Queued(case=CASE, reason=p.OpeningReason.OPERATOR), epoch="")
    assert await ledgers.total() == Progress(total=1, retried=1)
    assert (await state_of(ledgers, 1)).epoch == ""
    assert await ledgers.ledger.unpublished_endings(limit=9) == []
    assert await ledgers.ledger.dead_ids(B, after="", limit=9) == []


async def test_open_evaluations_and_dead_letters_are_listed_page_by_page(ledgers):
    """Both are listed in order; cancelled evaluations are in neither list."""
    await accept(ledgers, *map(accepted, (1, 2, 3, 4, 5)))
    for number in (2, 4):
        await store(ledgers, number, CLAIM, FAILED)
    await open_next(ledgers, 5, CANCELLED)
    assert await ledgers.ledger.open_ids(B, after="", limit=1) == [key(1)]
    assert await ledgers.ledger.open_ids(B, after=key(1), limit=9) == [key(3)]
    assert await ledgers.ledger.dead_ids(B, after="", limit=1) == [key(2)]
    assert await ledgers.ledger.dead_ids(B, after=key(2), limit=9) == [key(4)]


# Serial groups.

LINK = SerialLink(key(1), ((key(1), None), (key(1), "before")))


async def test_the_next_member_of_a_group_is_due_when_its_predecessor_has_ended(ledgers):
    """Only published members are due, and a released member is not due again."""
    await accept(ledgers, accepted(1), accepted(2, link=LINK), accepted(3, link=SerialLink(key(2))))
    await publish(ledgers, 2)
    assert await ledgers.ledger.due_links(B, limit=9) == []
    await store(ledgers, 1, CLAIM, FAILED)
    assert await ledgers.ledger.due_links(B, limit=9) == [(key(2), LINK)]
    [released] = await ledgers.ledger.release([key(2)], EPOCHS)
    assert (released.evaluation_id, [event.key for event, _ in released.events]) == (key(2), [(1, 0)])
    assert (await state_of(ledgers, 2)).epoch in EPOCHS
    assert await ledgers.ledger.due_links(B, limit=9) == []
    await store(ledgers, 2, CLAIM, FAILED)
    assert await ledgers.ledger.due_links(B, limit=9) == []
    await publish(ledgers, 3)
    assert [one.evaluation_id for one in await ledgers.ledger.due_links(B, limit=9)] == [key(3)]


async def test_a_member_of_a_group_is_released_once(ledgers):
    """A second coordinator releases nothing, and an ended evaluation is not released."""
    await accept(ledgers, accepted(1), accepted(2, link=LINK), accepted(3, link=LINK))
    await publish(ledgers, 3)
    await store(ledgers, 1, CLAIM, FAILED)
    await open_next(ledgers, 3, CANCELLED, epoch="")
    assert [one.evaluation_id for one in await ledgers.ledger.release([key(2), key(3)], EPOCHS)] == [key(2)]
    assert await ledgers.ledger.release([key(2), key(3)], LATER) == []
    assert (await state_of(ledgers, 2)).epoch in EPOCHS


@pytest.mark.parametrize("number", [1, 2])
async def test_links_name_the_answers_that_a_member_needs(ledgers, number):
    """A member gets the evaluations whose answers it needs, and their names in its prompt."""
    await accept(ledgers, accepted(1), accepted(2, link=LINK))
    expected = {key(2): LINK} if number == 2 else {}
    assert dict(await ledgers.ledger.links([key(number), "unknown"])) == expected


async def test_a_retried_member_waits_for_its_predecessor(ledgers):
    """Reopened without an epoch, it is due again once its predecessor has ended again."""
    await accept(ledgers, accepted(1), accepted(2, link=LINK))
    await publish(ledgers, 2)
    for number in (1, 2):
        await store(ledgers, number, CLAIM, FAILED)
    operator = p.Queued(case=CASE, reason=p.OpeningReason.OPERATOR)
    await open_next(ledgers, 1, operator)
    await open_next(ledgers, 2, operator, epoch="")
    assert await ledgers.ledger.due_links(B, limit=9) == []
    await store(ledgers, 1, CLAIM, FAILED)
    assert await ledgers.ledger.due_links(B, limit=9) == [(key(2), LINK)]
    [released] = await ledgers.ledger.release([key(2)], EPOCHS)
    assert [event.key for event, _ in released.events] == [(2, 0)]
