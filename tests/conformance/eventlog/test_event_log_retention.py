"""What the log does around an append: tails, wake-ups, marks, expiry, reading."""

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
    ask,
    events_of,
    rival,
    stream,
)

# Tails: an owner puts back what the log has forgotten.


async def test_a_tail_is_taken_without_its_opening(form):
    """Sequence 0 is the coordinator's; an owner has only what it wrote itself."""
    tail = history("provisioning running responded", first=1)
    assert await append(form, *tail, mode=Mode.TAIL) == [OK] * 3
    assert await append(form, *history("completed", first=4)) == [OK]
    assert await stream(form) == [*tail, *history("completed", first=4)]


async def test_a_tail_fills_in_what_is_missing(form):
    """What the log still has is a duplicate; the rest is written."""
    tail = history("provisioning running responded", first=1)
    await append(form, *tail[:2], mode=Mode.TAIL)
    assert await append(form, *tail, mode=Mode.TAIL) == [DUPLICATE, DUPLICATE, OK]
    assert await stream(form) == tail


async def test_a_tail_above_the_newest_attempt_is_taken(form):
    """An older owner may have put its attempt back first: the higher attempt fences it."""
    await append(form, *history("provisioning running", first=1), mode=Mode.TAIL)
    higher = history("provisioning running", attempt=2, first=1)
    assert await append(form, *higher, mode=Mode.TAIL) == [OK, OK]
    assert await append(form, *history("completed", first=3)) == [FENCED]


@pytest.mark.parametrize(
    ("bad", "answer"),
    [(rival("running", sequence=2), CONFLICT), (event("scored", sequence=9), CLOSED)],
    ids=["conflict", "closed"],
)
async def test_a_tail_is_put_back_whole_or_not_at_all(form, bad, answer):
    """One refusal and nothing is written, not even the conflict: half an attempt would look like a gap."""
    on_record = [event("queued"), event("running", sequence=2), event("failed", sequence=4)]
    await append(form, *on_record)
    wake_ups = len(await form.wake_ups(EVALUATION))
    tail = [event("provisioning", sequence=1), bad, event("responded", sequence=3)]
    assert await append(form, *tail, mode=Mode.TAIL) == [OK, answer, OK]
    assert await stream(form) == on_record
    assert len(await form.wake_ups(EVALUATION)) == wake_ups
    assert await append(form, event("provisioning", sequence=1)) == [OK]


# Wake-ups.


async def test_a_call_that_writes_wakes_once(form):
    """One wake-up a call, however many events; none where nothing was written."""
    await append(form, *history("queued provisioning running"))
    assert await form.wake_ups(EVALUATION) == [EVALUATION]
    await form.take_wake_ups(EVALUATION)
    await append(form, event("queued"))
    await append(form, event("scored", attempt=2, sequence=7))
    assert await form.wake_ups(EVALUATION) == []
    await append(form, rival("running", sequence=2))
    assert await form.wake_ups(EVALUATION) == [EVALUATION]


async def test_a_tail_wakes_though_nothing_of_it_was_lost(form):
    """Whoever puts it back waits for a mark, which may have been lost; a refused tail wakes nobody."""
    events = history("queued provisioning running")
    await append(form, *events)
    await form.take_wake_ups(EVALUATION)
    assert await append(form, *events[1:], mode=Mode.TAIL) == [DUPLICATE] * 2
    assert await form.wake_ups(EVALUATION) == [EVALUATION]
    await form.take_wake_ups(EVALUATION)
    await append(form, rival("provisioning", sequence=1), mode=Mode.TAIL)
    assert await form.wake_ups(EVALUATION) == []


async def test_a_wake_up_that_nobody_has_taken_is_not_repeated(form):
    """Its reader will read the newer events, too; once it is taken, news wakes again."""
    await append(form, event("queued"))
    await append(form, event("provisioning", sequence=1))
    assert await form.wake_ups(EVALUATION) == [EVALUATION]
    await form.take_wake_ups(EVALUATION)
    await append(form, event("running", sequence=2))
    await append(form, event("completed", sequence=3))
    assert await form.wake_ups(EVALUATION) == [EVALUATION]


async def test_a_wake_up_of_a_stream_that_is_gone_does_not_stand_for_a_new_one(form):
    """Whoever puts an expired evaluation back is heard."""
    await append(form, event("queued"))
    await form.log.settle([CommitMark(EVALUATION, 1, 0, ended=True)])
    await form.let_expire(EVALUATION)
    await append(form, event("queued", attempt=2))
    assert await form.wake_ups(EVALUATION) == [EVALUATION] * 2


async def test_calls_of_several_evaluations_are_answered_one_by_one(form):
    """They share a round trip and nothing else."""
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


# Marks and expiry: rule 21.


async def test_a_mark_says_how_far_postgres_has_come(form):
    """Before the first mark nothing is committed; without a stream there is no answer."""
    await append(form, *history("queued provisioning running"))
    assert await form.log.committed([EVALUATION, "unheard-of"]) == [(0, -1), None]
    await form.log.settle([CommitMark(EVALUATION, 1, 2, ended=False)])
    assert await form.log.committed([EVALUATION]) == [(1, 2)]
    assert not await form.is_expiring(EVALUATION)


async def test_a_mark_outlives_the_next_attempt(form):
    """The fence is renewed with every attempt; what Postgres has stays known."""
    await append(form, *history("queued provisioning retrying"))
    await form.log.settle([CommitMark(EVALUATION, 1, 2, ended=False)])
    await append(form, event("queued:retry", attempt=2))
    assert await form.log.committed([EVALUATION]) == [(1, 2)]


@pytest.mark.parametrize("outdated", [0, 2])
async def test_a_mark_that_was_overtaken_takes_nothing_back(form, outdated):
    """Two workers settle in either order: an older mark must not make an ended stream last for ever."""
    await append(form, *history("queued provisioning running completed"))
    await form.log.settle([CommitMark(EVALUATION, 1, 3, ended=True)])
    await form.log.settle([CommitMark(EVALUATION, 1, outdated, ended=False)])
    assert await form.log.committed([EVALUATION]) == [(1, 3)]
    assert await form.is_expiring(EVALUATION)


async def test_marks_of_streams_that_are_gone_are_nobodys(form):
    """Settling what has expired leaves nothing behind."""
    await form.log.settle([CommitMark("unheard-of", 1, 3, ended=True)])
    await form.log.settle([])
    assert await form.log.committed(["unheard-of"]) == [None]
    assert not await form.is_expiring("unheard-of")


async def test_what_has_ended_in_postgres_expires(form):
    """The stream and all that the log knew of it go together."""
    await append(form, *history("queued provisioning running completed"))
    await form.log.settle([CommitMark(EVALUATION, 1, 3, ended=True)])
    assert await form.is_expiring(EVALUATION)
    await form.let_expire(EVALUATION)
    assert await form.log.committed([EVALUATION]) == [None]
    assert await stream(form) == []
    assert await append(form, event("running", sequence=2)) == [FENCED]


@pytest.mark.parametrize(("ended_attempt", "expires"), [(1, False), (2, True), (3, True)])
async def test_a_higher_attempt_keeps_the_stream_alive(form, ended_attempt, expires):
    """The end of an attempt lets the stream go only if no higher one has begun there."""
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
    ids=["opened", "put back"],
)
async def test_a_new_attempt_persists_what_was_about_to_expire(form, events, mode):
    """Whatever begins an attempt in an expiring stream must not vanish with it."""
    await append(form, *history("queued failed"))
    await form.log.settle([CommitMark(EVALUATION, 1, 1, ended=True)])
    assert set(await append(form, *events, mode=mode)) == {OK}
    assert not await form.is_expiring(EVALUATION)


@pytest.mark.parametrize(
    "late", [event("queued"), rival("queued", sequence=0), event("running", sequence=5)]
)
async def test_late_words_do_not_keep_an_ended_stream_alive(form, late):
    """A duplicate, a conflict, something beyond the end: the stream still expires."""
    await append(form, *history("queued failed"))
    await form.log.settle([CommitMark(EVALUATION, 1, 1, ended=True)])
    assert OK not in await append(form, late)
    assert await form.is_expiring(EVALUATION)


# Reading.


async def test_reading_keeps_the_order_of_what_was_asked(form):
    """Many evaluations over all shards, some without a stream, come back in their places."""
    names = [f"e-{number}" for number in range(250)]
    calls = [Append(name, records(history("queued", evaluation_id=name)), epoch="") for name in names[::2]]
    await form.log.append(calls)
    streams = await form.log.read(names, limit=10)
    found = [[each.evaluation_id for each in events_of(raw)] for raw in streams]
    assert found == [[name] if at % 2 == 0 else [] for at, name in enumerate(names)]
    assert await form.log.read([], limit=10) == []


async def test_reading_takes_the_oldest_entries_up_to_the_limit(form):
    """A limit protects the reader from an endless stream."""
    events = history("queued provisioning running")
    await append(form, *events)
    (raw,) = await form.log.read([EVALUATION], limit=2)
    assert events_of(raw) == events[:2]


async def test_entries_carry_the_logs_own_time(form):
    """Ids rise with arrival, and are of the clock that `now_ms` reads."""
    before = await form.log.now_ms()
    await ask(form, *history("queued provisioning"))
    (raw,) = await form.log.read([EVALUATION], limit=9)
    ids = [entry_id for entry_id, _ in raw]
    assert len(set(ids)) == 2
    after = await form.log.now_ms()
    assert all(before <= arrival_ms(entry_id) <= after for entry_id in ids)
