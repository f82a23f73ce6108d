"""The contract of the ledger, about evaluations; the memory form and Postgres keep it alike."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from eventlog import payloads as p
from eventlog.lifecycle import Phase
from projections.folds.progress import Progress
from projections.ledger.contract import SerialLink
from tests.builders import CASE, FAULT, PAYLOADS
from tests.conformance.projections.ledger_forms import (
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
    standing,
    store,
)

CLAIM = p.Provisioning(executor="executor-1", nonce="1")
RUNNING = p.Running(target="simulated")
FAILED = PAYLOADS["failed"]
CANCELLED = p.Cancelled(by="operator")
AGAIN = p.Queued(case=CASE, reason=p.OpeningReason.LOST)
SECOND = timedelta(seconds=1)

# What has not moved.


async def unmoved(
    books: LedgerForm, *, after: str = "", live: Sequence[str] = (), queued: bool = True, limit: int = 9
) -> list[int]:
    """Name what has not moved for 5 seconds; whoever lives counts as hung after 60."""
    found = await books.ledger.unmoved(
        await batch_of(books),
        after=after,
        unchanged_for=5 * SECOND,
        hung_after=60 * SECOND,
        live=live,
        queued=queued,
        limit=limit,
    )
    return [int(one.row.evaluation_id[-1]) for one in found]


async def test_what_has_not_moved_is_found_page_by_page(books):
    """Only what is published, has not ended, and is old enough."""
    await accept(books, *map(accepted, (1, 2, 3, 4)))
    await publish(books, 3)
    assert await unmoved(books) == []
    await books.wait(10)
    await open_next(books, 2, CANCELLED)
    assert await unmoved(books) == [1, 3]
    assert await unmoved(books, limit=1) == [1]
    assert await unmoved(books, after=key(1)) == [3]
    await store(books, 1, CLAIM)
    assert await unmoved(books) == [3]


async def test_those_are_left_out_who_are_in_good_hands(books):
    """A live owner within its time, and what is queued where somebody is sure to come."""
    await accept(books, *map(accepted, (1, 2)))
    await publish(books, 2)
    await store(books, 1, CLAIM)
    await books.wait(10)
    assert await unmoved(books, live=["executor-2"]) == [1, 2]
    assert await unmoved(books, live=["executor-1"]) == [2]
    assert await unmoved(books, live=["executor-1"], queued=False) == []
    assert await unmoved(books, queued=False) == [1]
    await books.wait(60)
    assert await unmoved(books, live=["executor-1"], queued=False) == [1]


async def test_what_waits_to_be_tried_again_is_found_when_it_is_due(books):
    """Not among the unmoved, and not before its time."""
    await accept(books, *map(accepted, (1, 2)))
    batch = await publish(books, 1)
    for number in (1, 2):
        retrying = p.Retrying(error=FAULT, retry_at=NOW + 30 * SECOND)
        await store(books, number, CLAIM, retrying, occurred_at=NOW)
    await books.wait(10)
    assert await unmoved(books) == []
    assert await books.ledger.due_retries(batch, now=await books.time(), limit=9) == []
    await books.wait(21)
    [due] = await books.ledger.due_retries(batch, now=await books.time(), limit=9)
    assert (due.row.evaluation_id, due.row.cursor.phase) == (key(1), Phase.RETRYING)


@pytest.mark.parametrize("days", [400_000, -400_000], ids=["ahead", "behind"])
async def test_the_clock_of_an_executor_does_not_move_a_retry(books, days):
    """How long it wanted to wait counts from when its word was stored, neither later nor sooner."""
    await accept(books, accepted(1))
    batch = await publish(books, 1)
    there = NOW + timedelta(days=days)
    retrying = p.Retrying(error=FAULT, retry_at=there + 30 * SECOND)
    await store(books, 1, CLAIM, retrying, occurred_at=there)
    assert await books.ledger.due_retries(batch, now=await books.time(), limit=9) == []
    await books.wait(31)
    [due] = await books.ledger.due_retries(batch, now=await books.time(), limit=9)
    assert due.row.evaluation_id == key(1)


# Opening attempts.


async def test_an_attempt_is_opened_with_all_that_is_known(books):
    """`decide` sees the row as it stands and all its events; what it says is committed."""
    await accept(books, accepted(1))
    await publish(books, 1)
    await store(books, 1, CLAIM, RUNNING)
    seen = {}

    def decide(one, logged):
        seen[one.row.evaluation_id] = one.row.owner, sorted(logged)
        return opens(AGAIN, epoch="01-7")(one, logged)

    [opened] = await books.ledger.open_attempts([key(1), "unknown"], decide)
    assert seen == {key(1): ("executor-1", [(1, 0), (1, 1), (1, 2)])}
    assert (opened.evaluation_id, opened.epoch, opened.was_published) == (key(1), "01-7", True)
    [(event, _)] = opened.events
    now = await standing(books, 1)
    assert (now.row.cursor[:2], now.row.owner, now.epoch, now.published) == ((2, 0), None, "01-7", True)
    assert (await books.ledger.stored([now.row]))[key(1)][2, 0] == event
    assert await books.total() == Progress(total=1, retried=1)


async def test_what_is_not_to_be_opened_stays_as_it_is(books):
    """Whoever comes second finds the row moved, and decides against it."""
    await accept(books, *map(accepted, (1, 2)))
    expected = {key(1): 1, key(2): 7}

    def decide(one, logged):
        as_expected = one.row.cursor.attempt == expected[one.row.evaluation_id]
        return opens(AGAIN)(one, logged) if as_expected else None

    ids = [key(2), key(1)]
    assert [one.evaluation_id for one in await books.ledger.open_attempts(ids, decide)] == [key(1)]
    assert await books.ledger.open_attempts(ids, decide) == []
    assert (await standing(books, 1)).row.cursor.attempt == 2
    assert (await books.total()).retried == 1


async def test_an_ending_is_unpublished_until_somebody_says_so(books):
    """Where executors had heard of the evaluation; else it concerns nobody."""
    await accept(books, *map(accepted, (1, 2)))
    await publish(books, 1)
    opened = await books.ledger.open_attempts([key(1), key(2)], opens(CANCELLED))
    assert [one.was_published for one in opened] == [True, False]
    [ending] = await books.ledger.unpublished_endings(limit=9)
    assert (ending.evaluation_id, ending.events) == (key(1), opened[0].events)
    assert not (await standing(books, 1)).published
    await books.ledger.mark_published([key(1)])
    assert await books.ledger.unpublished_endings(limit=9) == []
    assert await books.total() == Progress(total=2, cancelled=2)


async def test_what_is_given_up_opens_and_fails_at_once(books):
    """Both events are its opening, for whoever publishes them."""
    await accept(books, accepted(1))
    await publish(books, 1)
    opened = await open_next(books, 1, AGAIN, FAILED)
    assert (await standing(books, 1)).row.cursor == (2, 1, Phase.FAILED)
    [opening] = await books.ledger.openings([key(1)])
    assert opening.events == opened.events
    assert [event.type for event, _ in opening.events] == ["queued", "failed"]
    assert await books.ledger.dead_ids(B, after="", limit=9) == [key(1)]


async def test_an_opening_is_that_of_the_newest_attempt_alone(books):
    """What its owner has written is not part of it."""
    await accept(books, accepted(1))
    await publish(books, 1)
    opened = await open_next(books, 1, AGAIN)
    await store(books, 1, CLAIM, RUNNING)
    [opening] = await books.ledger.openings([key(1)])
    assert opening.events == opened.events


async def test_a_reopened_evaluation_is_no_ending_any_more(books):
    """Its counters go back, and what it is published in is the epoch of its newest attempt."""
    await accept(books, accepted(1))
    await publish(books, 1)
    await store(books, 1, CLAIM, FAILED)
    assert await books.total() == Progress(total=1, failed=1)
    await open_next(books, 1, p.Queued(case=CASE, reason=p.OpeningReason.OPERATOR), epoch="")
    assert await books.total() == Progress(total=1, retried=1)
    assert (await standing(books, 1)).epoch == ""
    assert await books.ledger.unpublished_endings(limit=9) == []
    assert await books.ledger.dead_ids(B, after="", limit=9) == []


async def test_what_is_open_and_what_is_dead_is_named_page_by_page(books):
    """In order; what was cancelled is neither."""
    await accept(books, *map(accepted, (1, 2, 3, 4, 5)))
    for number in (2, 4):
        await store(books, number, CLAIM, FAILED)
    await open_next(books, 5, CANCELLED)
    assert await books.ledger.open_ids(B, after="", limit=1) == [key(1)]
    assert await books.ledger.open_ids(B, after=key(1), limit=9) == [key(3)]
    assert await books.ledger.dead_ids(B, after="", limit=1) == [key(2)]
    assert await books.ledger.dead_ids(B, after=key(2), limit=9) == [key(4)]


# Serial groups.

LINK = SerialLink(key(1), ((key(1), None), (key(1), "before")))


async def test_the_next_of_a_group_is_due_when_its_predecessor_has_ended(books):
    """And within what is published; once somebody was told, it is not due again."""
    await accept(books, accepted(1), accepted(2, link=LINK), accepted(3, link=SerialLink(key(2))))
    await publish(books, 2)
    assert await books.ledger.due_links(B, limit=9) == []
    await store(books, 1, CLAIM, FAILED)
    assert await books.ledger.due_links(B, limit=9) == [(key(2), LINK)]
    [released] = await books.ledger.release([key(2)], EPOCHS)
    assert (released.evaluation_id, [event.key for event, _ in released.events]) == (key(2), [(1, 0)])
    assert (await standing(books, 2)).epoch in EPOCHS
    assert await books.ledger.due_links(B, limit=9) == []
    await store(books, 2, CLAIM, FAILED)
    assert await books.ledger.due_links(B, limit=9) == []
    await publish(books, 3)
    assert [one.evaluation_id for one in await books.ledger.due_links(B, limit=9)] == [key(3)]


async def test_a_release_happens_once(books):
    """Whoever comes second releases nothing, and what has ended is not released at all."""
    await accept(books, accepted(1), accepted(2, link=LINK), accepted(3, link=LINK))
    await publish(books, 3)
    await store(books, 1, CLAIM, FAILED)
    await open_next(books, 3, CANCELLED, epoch="")
    assert [one.evaluation_id for one in await books.ledger.release([key(2), key(3)], EPOCHS)] == [key(2)]
    assert await books.ledger.release([key(2), key(3)], LATER) == []
    assert (await standing(books, 2)).epoch in EPOCHS


@pytest.mark.parametrize("number", [1, 2])
async def test_links_are_those_of_who_is_in_a_group(books, number):
    """Whose answers it needs, and under which names."""
    await accept(books, accepted(1), accepted(2, link=LINK))
    expected = {key(2): LINK} if number == 2 else {}
    assert dict(await books.ledger.links([key(number), "unknown"])) == expected


async def test_one_that_is_tried_again_waits_for_its_turn_in_the_group(books):
    """Reopened without an epoch, it is due again once its predecessor has ended again."""
    await accept(books, accepted(1), accepted(2, link=LINK))
    await publish(books, 2)
    for number in (1, 2):
        await store(books, number, CLAIM, FAILED)
    operator = p.Queued(case=CASE, reason=p.OpeningReason.OPERATOR)
    await open_next(books, 1, operator)
    await open_next(books, 2, operator, epoch="")
    assert await books.ledger.due_links(B, limit=9) == []
    await store(books, 1, CLAIM, FAILED)
    assert await books.ledger.due_links(B, limit=9) == [(key(2), LINK)]
    [released] = await books.ledger.release([key(2)], EPOCHS)
    assert [event.key for event, _ in released.events] == [(2, 0)]
