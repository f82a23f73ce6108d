"""Openings that Postgres has already, claims, and what was paid for in an attempt that is over."""

from eventlog.log import Mode
from tests.builders import EVALUATION, event, history
from tests.conformance.eventlog.requests import (
    CLOSED,
    CONFLICT,
    DUPLICATE,
    EPOCH,
    FENCED,
    OK,
    append,
    ask,
    stream,
)


async def test_an_opening_from_postgres_wakes_nobody(form):
    """There is nothing in it for a reader: it was committed before it was published."""
    assert await append(form, event("queued"), mode=Mode.OPENING) == [OK]
    assert await form.wake_ups(EVALUATION) == []
    assert await stream(form) == [event("queued")]


async def test_a_claim_wakes_nobody_and_the_next_event_does(form):
    """The owner has more to say at once; that is when the reader comes."""
    queued, claim, running = history("queued provisioning running")
    await append(form, queued, mode=Mode.OPENING)
    assert await append(form, claim, mode=Mode.CLAIM) == [OK]
    assert await form.wake_ups(EVALUATION) == []
    await append(form, running)
    assert await form.wake_ups(EVALUATION) == [EVALUATION]


async def test_a_withdrawal_claims_and_ends_an_attempt_at_once(form):
    """The reader is woken, whoever else has the task is refused, and the call may be repeated."""
    queued, claim, end = history("queued provisioning retrying")
    await append(form, queued, mode=Mode.OPENING)
    assert await append(form, claim, end, mode=Mode.WITHDRAWAL) == [OK, OK]
    assert await form.wake_ups(EVALUATION) == [EVALUATION]
    assert await append(form, claim, end, mode=Mode.WITHDRAWAL) == [DUPLICATE, DUPLICATE]
    assert await append(form, event("provisioning", source="rival"), mode=Mode.CLAIM) == [CONFLICT]
    assert await append(form, event("running", sequence=3)) == [CLOSED]
    assert await stream(form) == [queued, claim, end]


async def test_a_withdrawal_leaves_an_attempt_that_somebody_has(form):
    """Neither its claim nor its end is written: the owner goes on."""
    queued, claim, running = history("queued provisioning running")
    other = [event(word, sequence=n, source="rival") for n, word in [(1, "provisioning"), (2, "retrying")]]
    await append(form, queued, mode=Mode.OPENING)
    await append(form, claim, mode=Mode.CLAIM)
    assert (await append(form, *other, mode=Mode.WITHDRAWAL))[0] == CONFLICT
    assert await form.wake_ups(EVALUATION) == []
    assert await append(form, running) == [OK]
    assert await stream(form) == [queued, claim, running]


async def test_a_withdrawal_needs_what_a_claim_needs(form):
    """An opening in the stream, and of this epoch: else the end alone would be written."""
    _, claim, end = history("queued provisioning retrying")
    assert (await append(form, claim, end, mode=Mode.WITHDRAWAL))[0] == FENCED
    before = await form.log.epoch(EVALUATION)
    await form.lose_everything()
    reply = await ask(form, claim, end, mode=Mode.WITHDRAWAL, epoch=before)
    assert reply.results == (EPOCH, EPOCH)
    assert await stream(form) == []


async def test_what_was_paid_for_is_kept_behind_a_fence(form):
    """It is in the stream for the reader to count, and the fence stands as before."""
    queued, claim, running, responded, completed = history(
        "queued provisioning running responded completed"
    )
    cancelled = event("cancelled", attempt=2)
    await append(form, queued, claim, running)
    await append(form, cancelled)
    assert await append(form, responded) == [FENCED]
    assert await append(form, responded, mode=Mode.LATE) == [OK]
    assert await append(form, completed) == [FENCED]
    assert await stream(form) == [queued, claim, running, cancelled, responded]


async def test_what_was_paid_for_is_not_kept_where_the_stream_is_gone(form):
    """A stream of nothing but a lower attempt's answer would look like a loss."""
    late = event("responded", sequence=3)
    assert await append(form, late, mode=Mode.LATE) == [FENCED]
    assert await stream(form) == []


async def test_epochs_are_those_that_appends_are_held_to(form):
    """Whoever asks for all at once learns the same as who asks for one."""
    epochs = await form.log.epochs()
    assert len(epochs) == form.log.shards
    assert await form.log.epoch(EVALUATION) in epochs
    await form.lose_everything()
    assert set(await form.log.epochs()).isdisjoint(epochs)
