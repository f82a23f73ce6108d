"""The contract of the ledger, about batches; the memory form and Postgres keep it alike."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from domain.batch_spec import pack
from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from projections.database.errors import UnstorableData
from projections.folds.change import EvaluationRow
from projections.folds.progress import Progress
from projections.ledger.contract import BatchExists, NewBatch, SerialLink
from tests.builders import PAYLOADS, payload
from tests.conformance.projections.ledger_forms import (
    EPOCHS,
    LATER,
    NOW,
    SPEC,
    B,
    accept,
    accepted,
    batch_of,
    key,
    one_by_one,
    open_next,
    opening_event,
    publish,
    raising,
    standing,
    store,
)

CLAIM = p.Provisioning(executor="executor-1", nonce="1")
RUNNING = p.Running(target="simulated")
FAILED = PAYLOADS["failed"]
CANCELLED = p.Cancelled(by="operator")

# Accepting.


async def test_a_batch_is_accepted_with_all_its_evaluations(books):
    """Heads, rows, openings and counters are there at once, and nobody has been told of any."""
    batch = await accept(books, *map(accepted, (1, 2, 3)))
    assert (batch.state, batch.total, batch.ended, batch.published, batch.published_to) == (
        *("running", 3, 0, 0),
        "",
    )
    assert (batch.month, batch.priority, batch.spec, batch.finished) == (
        date(2026, 3, 1),
        3,
        pack(SPEC),
        False,
    )
    assert (batch.accepted_at, batch.deadline, batch.allowed_seconds) == (NOW, None, 0.0)
    row = EvaluationRow(key(2), B, date(2026, 3, 1), Cursor(1, 0, Phase.QUEUED))
    assert await standing(books, 2) == (row, "", True)
    assert (await books.ledger.stored([row]))[key(2)] == {(1, 0): opening_event(2)}
    assert await books.total() == Progress(total=3)
    assert await books.asked(B) == [("accepted", "user", "")]
    assert await books.ledger.unfinished() == [batch]


@pytest.mark.parametrize("handed_in", [0, 2])
async def test_a_source_that_breaks_half_way_leaves_nothing_behind(books, handed_in):
    """All of a batch is committed, or nothing; its id is free again."""
    source = raising([accepted(number + 1) for number in range(handed_in)], ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await books.ledger.accept(NewBatch(B, SPEC), source(), now=NOW)
    assert await books.ledger.batch(B) is None
    assert await books.ledger.standings([key(1)]) == []
    assert await books.total() == Progress()
    await accept(books, accepted(1))


async def test_the_same_batch_is_not_accepted_twice(books):
    """Whoever hands it in again is told so, and changes nothing."""
    before = await accept(books, accepted(1))
    with pytest.raises(BatchExists):
        await books.ledger.accept(NewBatch(B, SPEC), one_by_one([accepted(2)]), now=NOW)
    assert await batch_of(books) == before
    assert await books.ledger.standings([key(2)]) == []


async def test_a_batch_of_somebody_else_is_not_taken_over(books):
    """Events of a batch nobody submitted have made it one: its id is taken."""
    await books.tables.months([B])
    with pytest.raises(BatchExists):
        await books.ledger.accept(NewBatch(B, SPEC), one_by_one([accepted(1)]), now=NOW)
    assert await books.ledger.batch(B) is None


async def test_an_evaluation_is_not_accepted_twice(books):
    """Neither in one batch nor in two; what stood beside it is not accepted either."""
    with pytest.raises(UnstorableData):
        await books.ledger.accept(NewBatch(B, SPEC), one_by_one([accepted(1), accepted(1)]), now=NOW)
    assert await books.ledger.batch(B) is None


async def test_the_newest_answer_to_a_question_is_found(books):
    """Whoever asked it; a question without an answer is left out."""
    await accept(books, accepted(1, cache_key="q"), accepted(2, cache_key="q"), accepted(3, cache_key="r"))
    for number, output, minutes in ((1, "old", 1), (2, "new", 2)):
        answered = p.Responded(output=output)
        occurred_at = NOW + timedelta(minutes=minutes)
        await store(books, number, CLAIM, RUNNING, answered, occurred_at=occurred_at)
    found = await books.ledger.cached(["q", "r", "unknown"])
    assert {asked: event.data.output for asked, event in found.items()} == {"q": "new"}


async def test_batches_are_listed_in_the_order_of_acceptance(books):
    """Whoever came first is looked after first."""
    for batch_id, minutes in (("late", 2), ("early", 1)):
        await accept(books, batch_id=batch_id, now=NOW + timedelta(minutes=minutes))
    assert [batch.batch_id for batch in await books.ledger.unfinished()] == ["early", "late"]


# What is asked of a batch.


async def test_what_is_asked_is_written_down_once(books):
    """Asking again changes nothing; each word has its author."""
    await accept(books, accepted(1))
    assert await books.ledger.request_state(B, "paused", by="ann", reason="lunch")
    assert not await books.ledger.request_state(B, "paused", by="bob")
    batch = await batch_of(books)
    assert (batch.state, batch.reason) == ("paused", "lunch")
    assert await books.ledger.request_state(B, "running", by="bob")
    assert (await books.asked(B))[1:] == [("paused", "ann", "lunch"), ("running", "bob", "")]
    assert not await books.ledger.request_state("unknown", "paused", by="ann")


@pytest.mark.parametrize("state", ["cancelled", "expired"])
async def test_what_was_stopped_stays_so(books, state):
    """Nobody can resume or pause it."""
    await accept(books, accepted(1))
    assert await books.ledger.request_state(B, state, by="ann")
    assert not await books.ledger.request_state(B, "running", by="ann")
    assert not await books.ledger.request_state(B, "paused", by="ann")
    assert (await batch_of(books)).state == state


async def test_a_batch_is_over_when_nothing_of_it_is_open(books):
    """Once, and then nobody looks after it any more."""
    await accept(books, accepted(1))
    assert not await books.ledger.finish(B)
    await open_next(books, 1, CANCELLED)
    assert (await batch_of(books)).ended == 1
    assert await books.ledger.finish(B)
    assert not await books.ledger.finish(B)
    batch = await batch_of(books)
    assert (batch.state, batch.finished) == ("completed", True)
    assert batch.published_to > key(99)
    assert await books.ledger.unfinished() == []
    assert not await books.ledger.request_state(B, "paused", by="ann")


async def test_a_batch_that_was_cancelled_is_not_completed(books):
    """What people asked for is what it is called afterwards."""
    await accept(books)
    await books.ledger.request_state(B, "cancelled", by="ann")
    assert await books.ledger.finish(B)
    assert (await batch_of(books)).state == "cancelled"


async def test_a_batch_that_was_over_goes_on(books):
    """Its deadline is kept only if it lies ahead."""
    await accept(books, now=utc_now(), max_duration=timedelta(hours=1))
    await books.ledger.finish(B)
    ahead = (await batch_of(books)).deadline
    await books.ledger.reopen(B, by="ann", reason="retry")
    batch = await batch_of(books)
    assert (batch.state, batch.finished, batch.deadline) == ("running", False, ahead)
    assert (await books.asked(B))[-1] == ("running", "ann", "retry")


async def test_a_deadline_that_has_passed_is_not_met_again(books):
    """What was out of time has all the time it wants."""
    await accept(books, accepted(1), max_duration=timedelta(hours=1))
    await books.ledger.request_state(B, "expired", by="coordinator")
    await books.ledger.reopen(B, by="ann")
    batch = await batch_of(books)
    assert (batch.state, batch.deadline) == ("running", None)


async def test_a_batch_goes_on_with_what_is_opened_in_it(books):
    """Though somebody may have ended it between the operator's word and the attempt."""
    await accept(books, accepted(1))
    await store(books, 1, CLAIM, FAILED)
    await books.ledger.finish(B)
    await open_next(books, 1, payload("queued:operator"))
    batch = await batch_of(books)
    assert (batch.state, batch.finished, batch.ended) == ("running", False, 0)


async def test_a_batch_that_was_cancelled_stays_so_whatever_is_opened_in_it(books):
    """It goes on only for as long as it takes to end what was opened."""
    await accept(books, accepted(1))
    await store(books, 1, CLAIM, FAILED)
    await books.ledger.request_state(B, "cancelled", by="ann")
    await books.ledger.finish(B)
    await open_next(books, 1, payload("queued:operator"))
    batch = await batch_of(books)
    assert (batch.state, batch.finished) == ("cancelled", False)


# Windows.


async def test_windows_follow_each_other(books):
    """Each begins where the last one ended; what has ended meanwhile is left out."""
    batch = await accept(books, *map(accepted, (1, 2, 3, 4)))
    openings, last_id = await books.ledger.next_window(batch, limit=2)
    assert last_id == key(2)
    assert [(one.evaluation_id, [event for event, _ in one.events]) for one in openings] == [
        (key(number), [opening_event(number)]) for number in (1, 2)
    ]
    await open_next(books, 3, CANCELLED)
    openings, last_id = await books.ledger.next_window(await publish(books, 2), limit=2)
    assert ([one.evaluation_id for one in openings], last_id) == ([key(4)], key(4))
    batch = await publish(books, 4)
    assert await books.ledger.next_window(batch, limit=2) == ([], key(4))


async def test_a_window_is_opened_once(books):
    """Whoever comes second finds the batch published further than it thought."""
    stale = await accept(books, *map(accepted, (1, 2)))
    batch = await publish(books, 1)
    assert not await books.ledger.open_window(stale, last_id=key(2), size=2, epochs=LATER)
    assert await batch_of(books) == batch
    assert (batch.published, batch.in_flight) == (1, 1)


@pytest.mark.parametrize("state", ["paused", "cancelled", "expired"])
async def test_no_window_is_opened_of_what_rests(books, state):
    """Whatever its coordinator thought when it began."""
    batch = await accept(books, accepted(1))
    await books.ledger.request_state(B, state, by="ann")
    assert not await books.ledger.open_window(batch, last_id=key(1), size=1, epochs=EPOCHS)


async def test_the_epoch_is_that_of_the_window(books):
    """Of the first that reaches so far, and of the evaluation's shard; beyond all windows there is none."""
    await accept(books, *map(accepted, (1, 2, 3)))
    await publish(books, 1, epochs=EPOCHS)
    await publish(books, 2, epochs=LATER)
    epochs = [(await standing(books, number)).epoch for number in (1, 2, 3)]
    assert [epoch[2:] for epoch in epochs] == ["-1", "-2", ""]
    assert epochs[0] in EPOCHS


async def test_those_in_groups_come_without_events(books):
    """A window passes over them, and tells nobody of them."""
    batch = await accept(books, accepted(1), accepted(2, link=SerialLink(key(1))))
    openings, last_id = await books.ledger.next_window(batch, limit=5)
    assert [(one.evaluation_id, len(one.events)) for one in openings] == [(key(1), 1), (key(2), 0)]
    assert last_id == key(2)
    await publish(books, 2)
    assert (await standing(books, 2)).epoch == ""


async def test_a_sweep_does_not_look_beyond_what_is_published(books):
    """Nobody but its coordinator knows of it; nor into what is over."""
    await accept(books, *map(accepted, (1, 2)))
    await publish(books, 1)
    await books.wait(10)
    assert list(await books.tables.open_evaluations(after="", unchanged_for=5, limit=9)) == [key(1)]
    assert replace(await batch_of(books), published=0).in_flight == 0


# Runs: which coordinator leads a batch.


async def test_a_batch_is_led_by_its_run_and_by_no_other(books):
    """Each run sees its own unfinished batches; the newest run takes a batch from the one before."""
    await accept(books, accepted(1))
    await books.ledger.assign_run(B, "run-1", by="ada", reason="run run-1")
    assert [batch.batch_id for batch in await books.ledger.unfinished("run-1")] == [B]
    assert await books.ledger.unfinished() == await books.ledger.unfinished("run-2") == []
    assert await books.ledger.led_elsewhere([B, "unknown"]) == {B}
    assert await books.ledger.led_elsewhere([B], "run-1") == set()
    await books.ledger.assign_run(B, "run-2", by="bob", reason="run run-2")
    assert [batch.run_id for batch in await books.ledger.unfinished("run-2")] == ["run-2"]
    assert await books.ledger.unfinished("run-1") == []
    assert (await books.asked(B))[1:] == [
        ("assigned", "ada", "run run-1"),
        ("assigned", "bob", "run run-2"),
    ]


async def test_a_run_pauses_a_batch_only_while_it_serves_it(books):
    """An interrupt of a run that was replaced does not pause the batch of the run that replaced it."""
    await accept(books, accepted(1))
    await books.ledger.assign_run(B, "run-2", by="bob")
    assert not await books.ledger.request_state(B, "paused", by="ada", reason="interrupted", run_id="run-1")
    assert (await batch_of(books)).state == "running"
    assert await books.ledger.request_state(B, "paused", by="bob", reason="interrupted", run_id="run-2")
    assert (await batch_of(books)).state == "paused"


async def test_a_finished_batch_is_led_nowhere(books):
    """What is over is cleared up by any coordinator, whichever run it belonged to."""
    await books.ledger.accept(NewBatch(B, SPEC, run_id="run-1"), one_by_one([]), now=NOW)
    assert await books.ledger.led_elsewhere([B]) == {B}
    assert await books.ledger.finish(B)
    assert await books.ledger.led_elsewhere([B]) == set()
