"""Openings that Postgres has already, claims, and what was paid for in an attempt that is over."""

from eventlog.log import Mode
from tests.builders import EVALUATION, event, history
from tests.conformance.asking import FENCED, OK, append, stream


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
