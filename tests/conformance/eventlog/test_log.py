"""The rules of the event log, one by one (design, section 10, rules 7 to 11), for every implementation."""

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
    append_call,
    events_of,
    rival,
    stream,
)

# Accepted events.


async def test_an_attempt_is_appended_and_read_back_in_order(form):
    """Every event is OK, and its entry has the public fields."""
    events = history("queued provisioning running responded scored completed")
    assert await append(form, *events) == [OK] * 6
    assert await stream(form) == events
    (raw,) = await form.log.read([EVALUATION], limit=1)
    fields = fields_of(raw[0])
    assert list(fields) == [b"attempt", b"sequence", b"type", b"event"]
    assert (fields[b"attempt"], fields[b"sequence"], fields[b"type"]) == (b"1", b"0", b"queued")


async def test_events_of_an_attempt_may_arrive_in_any_order(form):
    """Writers pipeline their events; the storage worker restores the order, not the log."""
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


async def test_a_duplicate_is_reported_and_not_written(form):
    """A retried call changes nothing, also if it contains the same event twice."""
    queued = event("queued")
    assert await append(form, queued, queued) == [OK, DUPLICATE]
    assert await append(form, queued) == [DUPLICATE]
    assert await stream(form) == [queued]


async def test_another_body_under_the_same_key_is_a_conflict_and_is_kept_once(form):
    """The first entry is the event; each other body is kept once for the storage worker to quarantine."""
    first, other, third = event("queued"), rival("queued", sequence=0), event("queued", source="third")
    assert await append(form, first) == [OK]
    assert await append(form, other, other) == [CONFLICT, CONFLICT]
    assert await append(form, other, third) == [CONFLICT, CONFLICT]
    assert await append(form, first) == [DUPLICATE]
    assert await stream(form) == [first, other, third]


async def test_a_conflict_within_the_first_call_is_kept_once_too(form):
    """A conflict within the call that creates the fence is recorded in the fence."""
    first, other = event("queued"), rival("queued", sequence=0)
    assert await append(form, first, other) == [OK, CONFLICT]
    assert await append(form, other) == [CONFLICT]
    assert await stream(form) == [first, other]


async def test_every_event_below_the_newest_attempt_is_fenced(form):
    """Events that the log already has, openings and tails are fenced as well."""
    old = history("queued provisioning running")
    await append(form, *old)
    await append(form, event("queued:lost", attempt=2))
    assert await append(form, *old, *history("completed", first=3)) == [FENCED] * 4
    assert await append(form, rival("queued", sequence=0)) == [FENCED]
    assert await append(form, *old, mode=Mode.TAIL) == [FENCED] * 3
    assert len(await stream(form)) == 4


async def test_duplicates_are_detected_before_the_closing_event_is_checked(form):
    """An event that arrived before the closing event is DUPLICATE afterwards, not CLOSED."""
    await append(form, *history("queued provisioning running"), event("scored", sequence=5))
    assert await append(form, event("failed", sequence=3)) == [OK]
    assert await append(form, event("scored", sequence=5)) == [DUPLICATE]
    assert await append(form, rival("scored", sequence=5)) == [CONFLICT]
    assert await append(form, event("scored", sequence=6)) == [CLOSED]


@pytest.mark.parametrize("closing", ["completed", "retrying", "failed", "timed_out"])
async def test_events_after_the_closing_event_are_closed(form, closing):
    """Missing events before the closing event are still accepted; later sequences are not."""
    queued, claim, running, end = history(f"queued provisioning running {closing}")
    await append(form, queued, claim, end)
    assert await append(form, event("scored", sequence=4)) == [CLOSED]
    assert await append(form, running) == [OK]
    assert await form.log.closing([EVALUATION, "unknown"]) == [True, False]


async def test_a_cancelled_attempt_is_closed_at_once(form):
    """An attempt whose opening is `cancelled` cannot be claimed."""
    await append(form, event("cancelled", attempt=2))
    assert await append(form, event("provisioning", attempt=2, sequence=1)) == [CLOSED]
    assert await append(form, event("queued:operator", attempt=3)) == [OK]
    assert await form.log.closing([EVALUATION]) == [False]


async def test_the_earliest_closing_event_closes(form):
    """A second closing event at a lower sequence moves the end down, and never up."""
    await append(form, event("queued"), event("completed", sequence=5))
    assert await append(form, event("failed", sequence=2)) == [OK]
    assert await append(form, event("running", sequence=3)) == [CLOSED]


# Rule 7: the epoch.


async def test_a_wrong_epoch_is_checked_before_anything_else(form):
    """EPOCH for every event of the call; the response has the current epoch; nothing is written."""
    events = history("queued provisioning")
    await append(form, *events)
    now = await form.log.epoch(EVALUATION)
    reply = await append_call(form, *events, event("running", sequence=2), epoch="another")
    assert (list(reply.results), reply.epoch) == ([EPOCH] * 3, now)
    assert await stream(form) == events


async def test_the_epoch_changes_after_data_loss(form):
    """The epoch is constant until data is lost; then calls with the former epoch are refused."""
    before = await form.log.epoch(EVALUATION)
    await append(form, event("queued"))
    assert await form.log.epoch(EVALUATION) == before
    await form.lose_everything()
    assert await form.log.epoch(EVALUATION) != before
    assert (await append_call(form, event("queued"), epoch=before)).results == (EPOCH,)
    assert await stream(form) == []


async def test_an_empty_epoch_is_not_checked(form):
    """A foreign producer that does not know epochs can still append."""
    assert (await append_call(form, event("queued"), epoch="")).results == (OK,)


# Rules 10 and 11: continuing an attempt, and the claim.


async def test_only_the_newest_attempt_can_be_continued(form):
    """On an empty stream, or above the newest attempt, only sequence 0 and tails are accepted."""
    claim, running = history("provisioning running", first=1)
    assert await append(form, claim) == [FENCED]
    assert await append(form, running) == [FENCED]
    await append(form, event("queued"))
    assert await append(form, event("running", attempt=2, sequence=2)) == [FENCED]
    assert await stream(form) == [event("queued")]


async def test_a_claim_returns_the_stream(form):
    """OK returns the recorded events, including the claim; other appends return none."""
    queued, claim = history("queued provisioning")
    assert (await append_call(form, queued)).stream == ()
    reply = await append_call(form, claim, mode=Mode.CLAIM)
    assert reply.results == (OK,)
    assert events_of(reply.stream) == [queued, claim]


async def test_a_claim_repeated_after_a_lost_reply_is_still_owned(form):
    """The same nonce again is a DUPLICATE, and returns the stream as the first claim did."""
    queued, claim = history("queued provisioning")
    await append(form, queued)
    first = await append_call(form, claim, mode=Mode.CLAIM)
    again = await append_call(form, claim, mode=Mode.CLAIM)
    assert again.results == (DUPLICATE,)
    assert again.stream == first.stream


async def test_a_lost_claim_is_not_written(form):
    """The second claimant gets CONFLICT and no stream, and the stream is unchanged."""
    events = history("queued provisioning")
    await append(form, *events)
    wake_ups = len(await form.wake_ups(EVALUATION))
    lost = await append_call(form, rival("provisioning", sequence=1), mode=Mode.CLAIM)
    assert (lost.results, lost.stream) == ((CONFLICT,), ())
    assert await stream(form) == events
    assert len(await form.wake_ups(EVALUATION)) == wake_ups


async def test_a_claim_needs_its_opening_in_the_stream(form):
    """An attempt re-appended without sequence 0 can be continued by its owner, but not claimed."""
    tail = history("running responded", first=2)
    assert await append(form, *tail, mode=Mode.TAIL) == [OK, OK]
    assert await append(form, event("provisioning", sequence=1), mode=Mode.CLAIM) == [FENCED]
    assert await append(form, event("scored", sequence=4)) == [OK]
    assert await append(form, event("queued")) == [OK]
    assert await append(form, event("provisioning", sequence=1), mode=Mode.CLAIM) == [OK]
