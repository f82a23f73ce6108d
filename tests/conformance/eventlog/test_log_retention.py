"""Tails, wake-ups, commit marks, expiry and reads of the event log."""

import pytest

from eventlog.log import Append, CommitMark, Mode
from eventlog.timeline import arrival_ms
from tests.builders import EVALUATION, event, history, records
from tests.conformance.eventlog.requests import (
    CLOSED,
    CONFLICT,
    DUPLICATE,
    FENCED,
    OK,
    append,
    append_call,
    events_of,
    rival,
    stream,
)

# Tails: an owner re-appends events that the log has lost.


async def test_a_tail_is_accepted_without_its_opening(form):
    """The coordinator writes sequence 0, so an owner has only the events after it."""
    tail = history("provisioning running responded", first=1)
    assert await append(form, *tail, mode=Mode.TAIL) == [OK] * 3
    assert await append(form, *history("completed", first=4)) == [OK]
    assert await stream(form) == [*tail, *history("completed", first=4)]


async def test_a_tail_adds_the_missing_events(form):
    """Events that the log still has are duplicates; the others are written."""
    tail = history("provisioning running responded", first=1)
    await append(form, *tail[:2], mode=Mode.TAIL)
    assert await append(form, *tail, mode=Mode.TAIL) == [DUPLICATE, DUPLICATE, OK]
    assert await stream(form) == tail


async def test_a_tail_above_the_newest_attempt_is_accepted(form):
    """If the owner of a lower attempt re-appended it first, the higher attempt fences it."""
    await append(form, *history("provisioning running", first=1), mode=Mode.TAIL)
    higher = history("provisioning running", attempt=2, first=1)
    assert await append(form, *higher, mode=Mode.TAIL) == [OK, OK]
    assert await append(form, *history("completed", first=3)) == [FENCED]


@pytest.mark.parametrize(
    ("bad", "answer"),
    [(rival("running", sequence=2), CONFLICT), (event("scored", sequence=9), CLOSED)],
    ids=["conflict", "closed"],
)
async def test_a_tail_is_appended_whole_or_not_at_all(form, bad, answer):
    """After one refusal nothing is written: part of an attempt would look like a gap."""
    on_record = [event("queued"), event("running", sequence=2), event("failed", sequence=4)]
    await append(form, *on_record)
    wake_ups = len(await form.wake_ups(EVALUATION))
    tail = [event("provisioning", sequence=1), bad, event("responded", sequence=3)]
    assert await append(form, *tail, mode=Mode.TAIL) == [OK, answer, OK]
    assert await stream(form) == on_record
    assert len(await form.wake_ups(EVALUATION)) == wake_ups
    assert await append(form, event("provisioning", sequence=1)) == [OK]


# Wake-ups.


async def test_a_call_that_writes_appends_one_wake_up(form):
    """One wake-up for any number of events; none if nothing was written."""
    await append(form, *history("queued provisioning running"))
    assert await form.wake_ups(EVALUATION) == [EVALUATION]
    await form.take_wake_ups(EVALUATION)
    await append(form, event("queued"))
    await append(form, event("scored", attempt=2, sequence=7))
    assert await form.wake_ups(EVALUATION) == []
    await append(form, rival("running", sequence=2))
    assert await form.wake_ups(EVALUATION) == [EVALUATION]


async def test_a_tail_appends_a_wake_up_even_if_nothing_was_lost(form):
    """Its writer waits for a commit mark, which may have been lost; a refused tail appends none."""
    events = history("queued provisioning running")
    await append(form, *events)
    await form.take_wake_ups(EVALUATION)
    assert await append(form, *events[1:], mode=Mode.TAIL) == [DUPLICATE] * 2
    assert await form.wake_ups(EVALUATION) == [EVALUATION]
    await form.take_wake_ups(EVALUATION)
    await append(form, rival("provisioning", sequence=1), mode=Mode.TAIL)
    assert await form.wake_ups(EVALUATION) == []


async def test_an_unread_wake_up_is_not_repeated(form):
    """Its consumer will read the newer events too; once it is read, a new event appends another."""
    await append(form, event("queued"))
    await append(form, event("provisioning", sequence=1))
    assert await form.wake_ups(EVALUATION) == [EVALUATION]
    await form.take_wake_ups(EVALUATION)
    await append(form, event("running", sequence=2))
    await append(form, event("completed", sequence=3))
    assert await form.wake_ups(EVALUATION) == [EVALUATION]


async def test_a_wake_up_of_an_expired_stream_does_not_suppress_a_new_one(form):
    """An expired evaluation that is re-appended gets a wake-up."""
    await append(form, event("queued"))
    await form.log.settle([CommitMark(EVALUATION, 1, 0, ended=True)])
    await form.let_expire(EVALUATION)
    await append(form, event("queued", attempt=2))
    assert await form.wake_ups(EVALUATION) == [EVALUATION] * 2


async def test_appends_of_several_evaluations_have_separate_results(form):
    """They share only the round trip."""
    names = [f"evaluation:events:{number}" for number in range(8)]
    calls = []
    for name in names:
        events = history("queued provisioning", evaluation_id=name)
        wanted = events if name != names[3] else events[1:]
        calls.append(Append(name, records(wanted), await form.log.epoch(name)))
    replies = await form.log.append(calls)
    assert [reply.results for reply in replies] == [(OK, OK)] * 3 + [(FENCED,)] + [(OK, OK)] * 4
    for name in names:
        assert (await form.wake_ups(name)).count(name) == (name != names[3])


# Commit marks and expiry: rule 21.


async def test_a_commit_mark_is_the_position_of_postgres(form):
    """Before the first mark nothing is committed; without a stream there is no mark."""
    await append(form, *history("queued provisioning running"))
    assert await form.log.committed([EVALUATION, "unknown"]) == [(0, -1), None]
    await form.log.settle([CommitMark(EVALUATION, 1, 2, ended=False)])
    assert await form.log.committed([EVALUATION]) == [(1, 2)]
    assert not await form.is_expiring(EVALUATION)


async def test_a_commit_mark_survives_the_next_attempt(form):
    """A new attempt renews the fence and keeps the mark."""
    await append(form, *history("queued provisioning retrying"))
    await form.log.settle([CommitMark(EVALUATION, 1, 2, ended=False)])
    await append(form, event("queued:retry", attempt=2))
    assert await form.log.committed([EVALUATION]) == [(1, 2)]


@pytest.mark.parametrize("outdated", [0, 2])
async def test_an_outdated_commit_mark_has_no_effect(form, outdated):
    """Two workers settle in either order: an older mark must not stop the expiry of an ended stream."""
    await append(form, *history("queued provisioning running completed"))
    await form.log.settle([CommitMark(EVALUATION, 1, 3, ended=True)])
    await form.log.settle([CommitMark(EVALUATION, 1, outdated, ended=False)])
    assert await form.log.committed([EVALUATION]) == [(1, 3)]
    assert await form.is_expiring(EVALUATION)


async def test_a_commit_mark_without_a_stream_is_ignored(form):
    """Settling an expired evaluation creates no key."""
    await form.log.settle([CommitMark("unknown", 1, 3, ended=True)])
    await form.log.settle([])
    assert await form.log.committed(["unknown"]) == [None]
    assert not await form.is_expiring("unknown")


async def test_a_stream_that_ended_in_postgres_expires(form):
    """The stream and its fence expire together."""
    await append(form, *history("queued provisioning running completed"))
    await form.log.settle([CommitMark(EVALUATION, 1, 3, ended=True)])
    assert await form.is_expiring(EVALUATION)
    await form.let_expire(EVALUATION)
    assert await form.log.committed([EVALUATION]) == [None]
    assert await stream(form) == []
    assert await append(form, event("running", sequence=2)) == [FENCED]


@pytest.mark.parametrize(("ended_attempt", "expires"), [(1, False), (2, True), (3, True)])
async def test_a_stream_with_a_higher_attempt_does_not_expire(form, ended_attempt, expires):
    """The end of an attempt lets the stream expire only if no higher attempt is open."""
    await append(form, *history("queued failed"))
    await append(form, event("queued:operator", attempt=2))
    await form.log.settle([CommitMark(EVALUATION, ended_attempt, 1, ended=True)])
    assert await form.is_expiring(EVALUATION) is expires


@pytest.mark.parametrize(
    ("events", "mode"),
    [
        (history("queued:operator", attempt=2), Mode.NORMAL),
        (history("provisioning running", attempt=2, first=1), Mode.TAIL),
    ],
    ids=["opened", "re-appended"],
)
async def test_a_new_attempt_stops_the_expiry(form, events, mode):
    """An event that opens an attempt in an expiring stream makes the stream persistent."""
    await append(form, *history("queued failed"))
    await form.log.settle([CommitMark(EVALUATION, 1, 1, ended=True)])
    assert set(await append(form, *events, mode=mode)) == {OK}
    assert not await form.is_expiring(EVALUATION)


@pytest.mark.parametrize(
    "late", [event("queued"), rival("queued", sequence=0), event("running", sequence=5)]
)
async def test_late_events_do_not_stop_the_expiry(form, late):
    """After a duplicate, a conflict or an event beyond the end, the stream still expires."""
    await append(form, *history("queued failed"))
    await form.log.settle([CommitMark(EVALUATION, 1, 1, ended=True)])
    assert OK not in await append(form, late)
    assert await form.is_expiring(EVALUATION)


# Reads.


async def test_a_read_returns_streams_in_the_order_of_the_request(form):
    """Many evaluations over all shards, some without a stream, are returned in their places."""
    names = [f"e-{number}" for number in range(250)]
    calls = [Append(name, records(history("queued", evaluation_id=name)), epoch="") for name in names[::2]]
    await form.log.append(calls)
    streams = await form.log.read(names, limit=10)
    found = [[each.evaluation_id for each in events_of(raw)] for raw in streams]
    assert found == [[name] if at % 2 == 0 else [] for at, name in enumerate(names)]
    assert await form.log.read([], limit=10) == []


async def test_a_read_returns_the_oldest_entries_up_to_the_limit(form):
    """The limit protects the reader from a very long stream."""
    events = history("queued provisioning running")
    await append(form, *events)
    (raw,) = await form.log.read([EVALUATION], limit=2)
    assert events_of(raw) == events[:2]


async def test_entry_ids_carry_the_time_of_the_log(form):
    """Ids increase with arrival, and use the clock that `now_ms` reads."""
    before = await form.log.now_ms()
    await append_call(form, *history("queued provisioning"))
    (raw,) = await form.log.read([EVALUATION], limit=9)
    ids = [entry_id for entry_id, _ in raw]
    assert len(set(ids)) == 2
    after = await form.log.now_ms()
    assert all(before <= arrival_ms(entry_id) <= after for entry_id in ids)
