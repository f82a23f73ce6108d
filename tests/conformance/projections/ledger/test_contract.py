"""The contract of the ledger for batches, on memory and on Postgres."""

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
from projections.ledger.batch import NewBatch
from projections.ledger.contract import BatchExists, SerialLink
from tests.builders import PAYLOADS, payload
from tests.conformance.projections.ledger.ledger_forms import (
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
    state_of,
    store,
)

CLAIM = p.Provisioning(executor="executor-1", nonce="1")
RUNNING = p.Running(target="simulated")
FAILED = PAYLOADS["failed"]
CANCELLED = p.Cancelled(by="operator")

# Accepting.


async def test_a_batch_is_accepted_with_all_its_evaluations(ledgers):
    """Batch, rows, openings and counters are stored in one commit, and no evaluation is published yet."""
    batch = await accept(ledgers, *map(accepted, (1, 2, 3)))
    assert (
        batch.state,
        batch.progress.total,
        batch.progress.ended,
        batch.published,
        batch.published_to,
    ) == (
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
    assert await state_of(ledgers, 2) == (row, "", True)
    assert (await ledgers.ledger.stored([row]))[key(2)] == {(1, 0): opening_event(2)}
    assert await ledgers.total() == Progress(total=3)
    assert await ledgers.operations(B) == [("accepted", "user", "")]
    assert await ledgers.ledger.unfinished() == [batch]


@pytest.mark.parametrize("handed_in", [0, 2])
async def test_a_source_that_fails_half_way_stores_nothing(ledgers, handed_in):
    """A batch is committed whole or not at all, and its id is free again."""
    source = raising([accepted(number + 1) for number in range(handed_in)], ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await ledgers.ledger.accept(NewBatch(B, SPEC), source(), now=NOW)
    assert await ledgers.ledger.batch(B) is None
    assert await ledgers.ledger.evaluation_states([key(1)]) == []
    assert await ledgers.total() == Progress()
    await accept(ledgers, accepted(1))


async def test_the_same_batch_is_not_accepted_twice(ledgers):
    """A second submission is reported as such and changes nothing."""
    before = await accept(ledgers, accepted(1))
    with pytest.raises(BatchExists):
        await ledgers.ledger.accept(NewBatch(B, SPEC), one_by_one([accepted(2)]), now=NOW)
    assert await batch_of(ledgers) == before
    assert await ledgers.ledger.evaluation_states([key(2)]) == []


async def test_the_id_of_an_external_batch_is_taken(ledgers):
    """A batch that was created by events without a submission keeps its id."""
    await ledgers.tables.months([B])
    with pytest.raises(BatchExists):
        await ledgers.ledger.accept(NewBatch(B, SPEC), one_by_one([accepted(1)]), now=NOW)
    assert await ledgers.ledger.batch(B) is None


async def test_an_evaluation_is_not_accepted_twice(ledgers):
    """Neither in one batch nor in two; the other evaluations of the batch are not accepted either."""
    with pytest.raises(UnstorableData):
        await ledgers.ledger.accept(NewBatch(B, SPEC), one_by_one([accepted(1), accepted(1)]), now=NOW)
    assert await ledgers.ledger.batch(B) is None


async def test_the_newest_cached_answer_of_a_request_is_found(ledgers):
    """The answer may be of any batch; a request without an answer is omitted."""
    await accept(
        ledgers, accepted(1, cache_key="q"), accepted(2, cache_key="q"), accepted(3, cache_key="r")
    )
    for number, output, minutes in ((1, "old", 1), (2, "new", 2)):
        answered = p.Responded(output=output)
        occurred_at = NOW + timedelta(minutes=minutes)
        await store(ledgers, number, CLAIM, RUNNING, answered, occurred_at=occurred_at)
    found = await ledgers.ledger.cached(["q", "r", "unknown"])
    assert {request: event.data.output for request, event in found.items()} == {"q": "new"}


async def test_batches_are_listed_in_the_order_of_acceptance(ledgers):
    """The batch that was accepted first is listed first."""
    for batch_id, minutes in (("late", 2), ("early", 1)):
        await accept(ledgers, batch_id=batch_id, now=NOW + timedelta(minutes=minutes))
    assert [batch.batch_id for batch in await ledgers.ledger.unfinished()] == ["early", "late"]


# Operations on a batch.


async def test_an_operation_on_a_batch_is_recorded_once(ledgers):
    """A repeated operation changes nothing, and each record has its author."""
    await accept(ledgers, accepted(1))
    assert await ledgers.ledger.request_state(B, "paused", by="ann", reason="lunch")
    assert not await ledgers.ledger.request_state(B, "paused", by="bob")
    batch = await batch_of(ledgers)
    assert (batch.state, batch.reason) == ("paused", "lunch")
    assert await ledgers.ledger.request_state(B, "running", by="bob")
    assert (await ledgers.operations(B))[1:] == [("paused", "ann", "lunch"), ("running", "bob", "")]
    assert not await ledgers.ledger.request_state("unknown", "paused", by="ann")


@pytest.mark.parametrize("state", ["cancelled", "expired"])
async def test_a_stopped_batch_cannot_be_resumed_or_paused(ledgers, state):
    """A batch in this state keeps it."""
    await accept(ledgers, accepted(1))
    assert await ledgers.ledger.request_state(B, state, by="ann")
    assert not await ledgers.ledger.request_state(B, "running", by="ann")
    assert not await ledgers.ledger.request_state(B, "paused", by="ann")
    assert (await batch_of(ledgers)).state == state


async def test_a_batch_ends_when_no_evaluation_is_open(ledgers):
    """It ends once, and is no longer listed for the coordinator."""
    await accept(ledgers, accepted(1))
    assert not await ledgers.ledger.finish(B)
    await open_next(ledgers, 1, CANCELLED)
    assert (await batch_of(ledgers)).progress.ended == 1
    assert await ledgers.ledger.finish(B)
    assert not await ledgers.ledger.finish(B)
    batch = await batch_of(ledgers)
    assert (batch.state, batch.finished) == ("completed", True)
    assert batch.published_to > key(99)
    assert await ledgers.ledger.unfinished() == []
    assert not await ledgers.ledger.request_state(B, "paused", by="ann")


async def test_a_cancelled_batch_does_not_become_completed(ledgers):
    """Its state is still `cancelled` after its last evaluation has ended."""
    await accept(ledgers)
    await ledgers.ledger.request_state(B, "cancelled", by="ann")
    assert await ledgers.ledger.finish(B)
    assert (await batch_of(ledgers)).state == "cancelled"


async def test_an_ended_batch_can_be_reopened(ledgers):
    """Its deadline is kept only if it is in the future."""
    await accept(ledgers, now=utc_now(), max_duration=timedelta(hours=1))
    await ledgers.ledger.finish(B)
    ahead = (await batch_of(ledgers)).deadline
    await ledgers.ledger.reopen(B, by="ann", reason="retry")
    batch = await batch_of(ledgers)
    assert (batch.state, batch.finished, batch.deadline) == ("running", False, ahead)
    assert (await ledgers.operations(B))[-1] == ("running", "ann", "retry")


async def test_a_passed_deadline_is_removed_on_reopening(ledgers):
    """An expired batch continues without a deadline."""
    await accept(ledgers, accepted(1), max_duration=timedelta(hours=1))
    await ledgers.ledger.request_state(B, "expired", by="coordinator")
    await ledgers.ledger.reopen(B, by="ann")
    batch = await batch_of(ledgers)
    assert (batch.state, batch.deadline) == ("running", None)


async def test_opening_an_attempt_reopens_its_batch(ledgers):
    """This holds even if the batch ended between the operator's request and the attempt."""
    await accept(ledgers, accepted(1))
    await store(ledgers, 1, CLAIM, FAILED)
    await ledgers.ledger.finish(B)
    await open_next(ledgers, 1, payload("queued:operator"))
    batch = await batch_of(ledgers)
    assert (batch.state, batch.finished, batch.progress.ended) == ("running", False, 0)


async def test_a_cancelled_batch_stays_cancelled_when_an_attempt_opens(ledgers):
    """It is listed for the coordinator only until that attempt has ended."""
    await accept(ledgers, accepted(1))
    await store(ledgers, 1, CLAIM, FAILED)
    await ledgers.ledger.request_state(B, "cancelled", by="ann")
    await ledgers.ledger.finish(B)
    await open_next(ledgers, 1, payload("queued:operator"))
    batch = await batch_of(ledgers)
    assert (batch.state, batch.finished) == ("cancelled", False)


# Windows.


async def test_windows_are_consecutive(ledgers):
    """Each begins where the last one ended, and omits evaluations that have ended meanwhile."""
    batch = await accept(ledgers, *map(accepted, (1, 2, 3, 4)))
    openings, last_id = await ledgers.ledger.next_window(batch, limit=2)
    assert last_id == key(2)
    assert [(one.evaluation_id, [event for event, _ in one.events]) for one in openings] == [
        (key(number), [opening_event(number)]) for number in (1, 2)
    ]
    await open_next(ledgers, 3, CANCELLED)
    openings, last_id = await ledgers.ledger.next_window(await publish(ledgers, 2), limit=2)
    assert ([one.evaluation_id for one in openings], last_id) == ([key(4)], key(4))
    batch = await publish(ledgers, 4)
    assert await ledgers.ledger.next_window(batch, limit=2) == ([], key(4))


async def test_a_window_is_opened_once(ledgers):
    """A second coordinator finds that the batch is already published further."""
    stale = await accept(ledgers, *map(accepted, (1, 2)))
    batch = await publish(ledgers, 1)
    assert not await ledgers.ledger.open_window(stale, last_id=key(2), size=2, epochs=LATER)
    assert await batch_of(ledgers) == batch
    assert (batch.published, batch.in_flight) == (1, 1)


@pytest.mark.parametrize("state", ["paused", "cancelled", "expired"])
async def test_no_window_is_opened_for_an_inactive_batch(ledgers, state):
    """The state in the database decides, whatever the coordinator read before."""
    batch = await accept(ledgers, accepted(1))
    await ledgers.ledger.request_state(B, state, by="ann")
    assert not await ledgers.ledger.open_window(batch, last_id=key(1), size=1, epochs=EPOCHS)


async def test_an_evaluation_has_the_epoch_of_its_window(ledgers):
    """The first window that includes it decides, for its shard; beyond all windows there is none."""
    await accept(ledgers, *map(accepted, (1, 2, 3)))
    await publish(ledgers, 1, epochs=EPOCHS)
    await publish(ledgers, 2, epochs=LATER)
    epochs = [(await state_of(ledgers, number)).epoch for number in (1, 2, 3)]
    assert [epoch[2:] for epoch in epochs] == ["-1", "-2", ""]
    assert epochs[0] in EPOCHS


async def test_members_of_serial_groups_are_returned_without_events(ledgers):
    """A window includes them, but does not publish them."""
    batch = await accept(ledgers, accepted(1), accepted(2, link=SerialLink(key(1))))
    openings, last_id = await ledgers.ledger.next_window(batch, limit=5)
    assert [(one.evaluation_id, len(one.events)) for one in openings] == [(key(1), 1), (key(2), 0)]
    assert last_id == key(2)
    await publish(ledgers, 2)
    assert (await state_of(ledgers, 2)).epoch == ""


async def test_a_sweep_reads_only_published_evaluations(ledgers):
    """Unpublished evaluations and ended batches are omitted."""
    await accept(ledgers, *map(accepted, (1, 2)))
    await publish(ledgers, 1)
    await ledgers.wait(10)
    assert list(await ledgers.tables.open_evaluations(after="", unchanged_for=5, limit=9)) == [key(1)]
    assert replace(await batch_of(ledgers), published=0).in_flight == 0


# Runs: which coordinator leads a batch.


async def test_a_batch_is_led_only_by_its_run(ledgers):
    """Each run sees its own unfinished batches; the newest run takes a batch from the one before."""
    await accept(ledgers, accepted(1))
    await ledgers.ledger.assign_run(B, "run-1", by="ada", reason="run run-1")
    assert [batch.batch_id for batch in await ledgers.ledger.unfinished("run-1")] == [B]
    assert await ledgers.ledger.unfinished() == await ledgers.ledger.unfinished("run-2") == []
    assert await ledgers.ledger.owned_by_other_runs([B, "unknown"]) == {B}
    assert await ledgers.ledger.owned_by_other_runs([B], "run-1") == set()
    await ledgers.ledger.assign_run(B, "run-2", by="bob", reason="run run-2")
    assert [batch.run_id for batch in await ledgers.ledger.unfinished("run-2")] == ["run-2"]
    assert await ledgers.ledger.unfinished("run-1") == []
    assert (await ledgers.operations(B))[1:] == [
        ("assigned", "ada", "run run-1"),
        ("assigned", "bob", "run run-2"),
    ]


async def test_a_run_pauses_a_batch_only_while_it_serves_it(ledgers):
    """An interrupt of a replaced run does not pause the batch of the run that replaced it."""
    await accept(ledgers, accepted(1))
    await ledgers.ledger.assign_run(B, "run-2", by="bob")
    assert not await ledgers.ledger.request_state(
        B, "paused", by="ada", reason="interrupted", run_id="run-1"
    )
    assert (await batch_of(ledgers)).state == "running"
    assert await ledgers.ledger.request_state(B, "paused", by="bob", reason="interrupted", run_id="run-2")
    assert (await batch_of(ledgers)).state == "paused"


async def test_a_finished_batch_belongs_to_no_run(ledgers):
    """Any coordinator can clean up an ended batch, whichever run it belonged to."""
    await ledgers.ledger.accept(NewBatch(B, SPEC, run_id="run-1"), one_by_one([]), now=NOW)
    assert await ledgers.ledger.owned_by_other_runs([B]) == {B}
    assert await ledgers.ledger.finish(B)
    assert await ledgers.ledger.owned_by_other_runs([B]) == set()
