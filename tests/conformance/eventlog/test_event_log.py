"""The rules of the log, one by one (design, section 10, rules 7 to 11); each form keeps them all."""

import pytest

from eventlog.log import Mode
from tests.builders import EVALUATION, event, history
from tests.conformance.eventlog.log_forms import fields_of
from tests.conformance.eventlog.requests import (
    CLOSED,
    CONFLICT,
    DUPLICATE,
    EPOCH,
    FENCED,
    OK,
    append,
    ask,
    events_of,
    rival,
    stream,
)

# What is accepted.


async def test_an_attempt_is_taken_and_read_back_in_order(form):
    """Every event is OK, and its entry has the public fields."""
    events = history("queued provisioning running responded scored completed")
    assert await append(form, *events) == [OK] * 6
    assert await stream(form) == events
    (raw,) = await form.log.read([EVALUATION], limit=1)
    fields = fields_of(raw[0])
    assert list(fields) == [b"attempt", b"sequence", b"type", b"event"]
    assert (fields[b"attempt"], fields[b"sequence"], fields[b"type"]) == (b"1", b"0", b"queued")


async def test_order_within_an_attempt_is_not_demanded(form):
    """Events are pipelined: the reader restores the order, not the log."""
    queued, claim, *rest = history("queued provisioning running responded completed")
    assert await append(form, queued, claim) == [OK, OK]
    for late in reversed(rest):
        assert await append(form, late) == [OK]
    assert await stream(form) == [queued, claim, *reversed(rest)]


async def test_a_higher_attempt_opens_over_any_other(form):
    """Sequence 0 is accepted at or above the newest attempt, closed or not."""
    assert await append(form, *history("queued provisioning running")) == [OK] * 3
    assert await append(form, event("queued:lost", attempt=2)) == [OK]
    assert await append(form, *history("cancelled", attempt=7)) == [OK]


# Rule 8: the checks, in their order.


async def test_the_same_event_again_is_a_duplicate_and_is_not_written(form):
    """A retried call changes nothing, also when it repeats itself."""
    queued = event("queued")
    assert await append(form, queued, queued) == [OK, DUPLICATE]
    assert await append(form, queued) == [DUPLICATE]
    assert await stream(form) == [queued]


async def test_another_body_under_the_same_key_is_a_conflict_and_is_kept_once(form):
    """The first entry stays the event; each other body is there for the reader to quarantine."""
    first, other, third = event("queued"), rival("queued", sequence=0), event("queued", source="third")
    assert await append(form, first) == [OK]
    assert await append(form, other, other) == [CONFLICT, CONFLICT]
    assert await append(form, other, third) == [CONFLICT, CONFLICT]
    assert await append(form, first) == [DUPLICATE]
    assert await stream(form) == [first, other, third]


async def test_a_conflict_within_the_first_call_is_kept_once_too(form):
    """The fence remembers conflicts of the very call that made it."""
    first, other = event("queued"), rival("queued", sequence=0)
    assert await append(form, first, other) == [OK, CONFLICT]
    assert await append(form, other) == [CONFLICT]
    assert await stream(form) == [first, other]


async def test_below_the_newest_attempt_everything_is_fenced(form):
    """Even what the log already has, even an opening, in normal calls and in tails."""
    old = history("queued provisioning running")
    await append(form, *old)
    await append(form, event("queued:lost", attempt=2))
    assert await append(form, *old, *history("completed", first=3)) == [FENCED] * 4
    assert await append(form, rival("queued", sequence=0)) == [FENCED]
    assert await append(form, *old, mode=Mode.TAIL) == [FENCED] * 3
    assert len(await stream(form)) == 4


async def test_a_key_that_exists_is_judged_before_the_closing(form):
    """What arrived before the closing event is a duplicate afterwards, not CLOSED."""
    await append(form, *history("queued provisioning running"), event("scored", sequence=5))
    assert await append(form, event("failed", sequence=3)) == [OK]
    assert await append(form, event("scored", sequence=5)) == [DUPLICATE]
    assert await append(form, rival("scored", sequence=5)) == [CONFLICT]
    assert await append(form, event("scored", sequence=6)) == [CLOSED]


@pytest.mark.parametrize("closing", ["completed", "retrying", "failed", "timed_out"])
async def test_beyond_the_closing_event_the_attempt_is_closed(form, closing):
    """What is missing before it is still welcome; what comes after it is not."""
    queued, claim, running, end = history(f"queued provisioning running {closing}")
    await append(form, queued, claim, end)
    assert await append(form, event("scored", sequence=4)) == [CLOSED]
    assert await append(form, running) == [OK]
    assert await form.log.closing([EVALUATION, "unheard-of"]) == [True, False]


async def test_a_cancelled_attempt_is_closed_at_once(form):
    """Nobody can claim what was opened closed."""
    await append(form, event("cancelled", attempt=2))
    assert await append(form, event("provisioning", attempt=2, sequence=1)) == [CLOSED]
    assert await append(form, event("queued:operator", attempt=3)) == [OK]
    assert await form.log.closing([EVALUATION]) == [False]


async def test_the_earliest_closing_event_closes(form):
    """A second closing event at a lower sequence moves the end forward, never back."""
    await append(form, event("queued"), event("completed", sequence=5))
    assert await append(form, event("failed", sequence=2)) == [OK]
    assert await append(form, event("running", sequence=3)) == [CLOSED]


# Rule 7: the epoch.


async def test_a_wrong_epoch_is_answered_before_anything_else(form):
    """EPOCH for each event, fenced, duplicate or new; the reply names the epoch now; nothing is written."""
    events = history("queued provisioning")
    await append(form, *events)
    now = await form.log.epoch(EVALUATION)
    reply = await ask(form, *events, event("running", sequence=2), epoch="another")
    assert (list(reply.results), reply.epoch) == ([EPOCH] * 3, now)
    assert await stream(form) == events


async def test_the_epoch_changes_when_the_log_has_forgotten(form):
    """It is the same for ever, until something is lost: then no call of before is taken."""
    before = await form.log.epoch(EVALUATION)
    await append(form, event("queued"))
    assert await form.log.epoch(EVALUATION) == before
    await form.lose_everything()
    assert await form.log.epoch(EVALUATION) != before
    assert (await ask(form, event("queued"), epoch=before)).results == (EPOCH,)
    assert await stream(form) == []


async def test_an_empty_epoch_is_not_checked(form):
    """A foreign client that knows no epochs may still emit."""
    assert (await ask(form, event("queued"), epoch="")).results == (OK,)


# Rules 10 and 11: what continues an attempt, and the claim.


async def test_nothing_continues_an_attempt_that_is_not_the_newest(form):
    """On an empty stream, or above the newest attempt, only sequence 0 and tails are accepted."""
    claim, running = history("provisioning running", first=1)
    assert await append(form, claim) == [FENCED]
    assert await append(form, running) == [FENCED]
    await append(form, event("queued"))
    assert await append(form, event("running", attempt=2, sequence=2)) == [FENCED]
    assert await stream(form) == [event("queued")]


async def test_a_claim_brings_the_stream_along(form):
    """OK returns what is on record, the claim included; other calls return nothing."""
    queued, claim = history("queued provisioning")
    assert (await ask(form, queued)).stream == ()
    reply = await ask(form, claim, mode=Mode.CLAIM)
    assert reply.results == (OK,)
    assert events_of(reply.stream) == [queued, claim]


async def test_a_claim_whose_reply_was_lost_is_still_ours(form):
    """The same nonce again is a DUPLICATE, and brings the stream along as the first did."""
    queued, claim = history("queued provisioning")
    await append(form, queued)
    first = await ask(form, claim, mode=Mode.CLAIM)
    again = await ask(form, claim, mode=Mode.CLAIM)
    assert again.results == (DUPLICATE,)
    assert again.stream == first.stream


async def test_a_claim_that_loses_is_not_kept(form):
    """The second claimant sees CONFLICT, gets no stream, and leaves no trace in it."""
    events = history("queued provisioning")
    await append(form, *events)
    wake_ups = len(await form.wake_ups(EVALUATION))
    lost = await ask(form, rival("provisioning", sequence=1), mode=Mode.CLAIM)
    assert (lost.results, lost.stream) == ((CONFLICT,), ())
    assert await stream(form) == events
    assert len(await form.wake_ups(EVALUATION)) == wake_ups


async def test_a_claim_needs_its_opening_in_the_stream(form):
    """An attempt put back without sequence 0 can be continued by its owner, but claimed by nobody."""
    tail = history("running responded", first=2)
    assert await append(form, *tail, mode=Mode.TAIL) == [OK, OK]
    assert await append(form, event("provisioning", sequence=1), mode=Mode.CLAIM) == [FENCED]
    assert await append(form, event("scored", sequence=4)) == [OK]
    assert await append(form, event("queued")) == [OK]
    assert await append(form, event("provisioning", sequence=1), mode=Mode.CLAIM) == [OK]
