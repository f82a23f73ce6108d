"""The modes of an append: openings that Postgres already has, claims, withdrawals and paid late answers."""

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
    append_call,
    stream,
)


async def test_an_opening_from_postgres_appends_no_wake_up(form):
    """The opening was committed before it was published, so the storage worker has nothing to read."""
    assert await append(form, event("queued"), mode=Mode.OPENING) == [OK]
    assert await form.wake_ups(EVALUATION) == []
    assert await stream(form) == [event("queued")]


async def test_a_claim_appends_no_wake_up_and_the_next_event_does(form):
    """The owner records more events at once, and the storage worker reads the claim with them."""
    queued, claim, running = history("queued provisioning running")
    await append(form, queued, mode=Mode.OPENING)
    assert await append(form, claim, mode=Mode.CLAIM) == [OK]
    assert await form.wake_ups(EVALUATION) == []
    await append(form, running)
    assert await form.wake_ups(EVALUATION) == [EVALUATION]


async def test_a_withdrawal_claims_and_ends_an_attempt_in_one_call(form):
    """It appends a wake-up, later claims of the attempt are refused, and the call may be repeated."""
    queued, claim, end = history("queued provisioning retrying")
    await append(form, queued, mode=Mode.OPENING)
    assert await append(form, claim, end, mode=Mode.WITHDRAWAL) == [OK, OK]
    assert await form.wake_ups(EVALUATION) == [EVALUATION]
    assert await append(form, claim, end, mode=Mode.WITHDRAWAL) == [DUPLICATE, DUPLICATE]
    assert await append(form, event("provisioning", source="rival"), mode=Mode.CLAIM) == [CONFLICT]
    assert await append(form, event("running", sequence=3)) == [CLOSED]
    assert await stream(form) == [queued, claim, end]


async def test_a_withdrawal_does_not_end_an_attempt_that_is_claimed(form):
    """Neither its claim nor its end is written, and the owner continues."""
    queued, claim, running = history("queued provisioning running")
    other = [event(word, sequence=n, source="rival") for n, word in [(1, "provisioning"), (2, "retrying")]]
    await append(form, queued, mode=Mode.OPENING)
    await append(form, claim, mode=Mode.CLAIM)
    assert (await append(form, *other, mode=Mode.WITHDRAWAL))[0] == CONFLICT
    assert await form.wake_ups(EVALUATION) == []
    assert await append(form, running) == [OK]
    assert await stream(form) == [queued, claim, running]


async def test_a_withdrawal_needs_an_opening_of_the_current_epoch(form):
    """Without one the log would have the end of an attempt that it does not know."""
    _, claim, end = history("queued provisioning retrying")
    assert (await append(form, claim, end, mode=Mode.WITHDRAWAL))[0] == FENCED
    before = await form.log.epoch(EVALUATION)
    await form.lose_everything()
    reply = await append_call(form, claim, end, mode=Mode.WITHDRAWAL, epoch=before)
    assert reply.results == (EPOCH, EPOCH)
    assert await stream(form) == []


async def test_a_paid_answer_is_kept_behind_a_fence(form):
    """The storage worker can count its cost, and the fence is unchanged."""
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


async def test_a_paid_answer_is_not_kept_without_a_stream(form):
    """A stream with only an answer of a lower attempt would look like data loss."""
    late = event("responded", sequence=3)
    assert await append(form, late, mode=Mode.LATE) == [FENCED]
    assert await stream(form) == []


async def test_the_epochs_of_all_shards_are_those_that_appends_are_checked_against(form):
    """One read of all epochs returns the same as a read for each evaluation."""
    epochs = await form.log.epochs()
    assert len(epochs) == form.log.shards
    assert await form.log.epoch(EVALUATION) in epochs
    await form.lose_everything()
    assert set(await form.log.epochs()).isdisjoint(epochs)
