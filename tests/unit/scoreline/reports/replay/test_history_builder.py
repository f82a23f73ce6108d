"""The history of an evaluation, given the entries that arrived and those that were stored."""

from datetime import timedelta

import pytest

from eventlog import payloads as p
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.origin import Origin
from scoreline.reports.replay.timeline_entry import EntryDisposition
from tests.builders import event, history
from tests.replaying import Scene, dispositions

LIFE = "queued provisioning running responded scored completed"


def ranks(replayed: EvaluationHistory) -> list[int]:
    """Return the arrival ranks, in the order of the events."""
    return [line.rank for line in replayed.lines]


async def test_events_that_arrive_in_order_are_all_applied():
    """Every event is applied, none is overtaken, and the scorecard is there."""
    scene = Scene()
    scene.arrive(*history(LIFE))
    await scene.store()
    replayed = scene.replayed()
    assert set(dispositions(replayed).values()) == {"applied"}
    assert ranks(replayed) == [1, 2, 3, 4, 5, 6]
    assert [line.overtaken_by for line in replayed.lines] == [None] * 6
    assert [line.phase for line in replayed.lines][-2:] == [Phase.RESPONDED, Phase.COMPLETED]
    assert replayed.lines[1].since == timedelta(seconds=1)
    assert replayed.scorecard is not None
    assert (replayed.scorecard.verdict, replayed.cursor) == ("passed", Cursor(1, 5, Phase.COMPLETED))


async def test_an_event_that_arrived_after_a_successor_names_it():
    """Entries are in order of sequence, each with the nearest successor that overtook it."""
    scene = Scene()
    queued, claim, running, responded, scored, completed = history(LIFE)
    scene.arrive(queued, responded, running, claim, completed, scored)
    await scene.store()
    replayed = scene.replayed()
    assert [line.event.sequence for line in replayed.lines] == [0, 1, 2, 3, 4, 5]
    assert ranks(replayed) == [1, 4, 3, 2, 6, 5]
    overtaken = {line.event.sequence: line.overtaken_by for line in replayed.lines if line.overtaken_by}
    assert overtaken == {1: (1, 2), 2: (1, 3), 4: (1, 5)}


async def test_a_duplicate_follows_the_event_it_repeats():
    """Duplicates are in the history of the stream, and not in that of Postgres alone."""
    scene = Scene()
    queued, claim, *_ = history(LIFE)
    scene.arrive(queued, claim, queued)
    await scene.store()
    lines = [(line.event.sequence, line.disposition) for line in scene.replayed().lines]
    assert lines == [
        (0, EntryDisposition.APPLIED),
        (0, EntryDisposition.DUPLICATE),
        (1, EntryDisposition.APPLIED),
    ]
    assert len(scene.replayed(Origin.POSTGRES).lines) == 2


async def test_a_bridged_gap_has_its_missing_sequences_and_the_wait():
    """A bridge has the missing range, the closing event and the time waited."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(*events[:2], events[5])
    scene.wait(seconds=31)
    await scene.store()
    [bridge] = scene.replayed().bridges
    assert (bridge.missing, bridge.closing.sequence) == ((range(2, 5),), 5)
    assert bridge.waited == timedelta(seconds=31, milliseconds=1)
    assert bridge.came_late == ()
    assert scene.replayed().scorecard.bridged  # type: ignore[union-attr]  # it has ended


async def test_a_late_original_is_late_and_listed_by_its_bridge():
    """An entry that arrives after the bridge changes no state, and the bridge lists it."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(*events[:2], events[5])
    scene.wait(seconds=31)
    await scene.store()
    scene.arrive(events[2])
    await scene.store()
    replayed = scene.replayed()
    assert dispositions(replayed)[1, 2] == "late"
    assert replayed.lines[2].phase is None
    assert replayed.bridges[0].came_late == (2,)


async def test_events_of_a_replaced_attempt_are_stale():
    """A fenced executor's late completion is stale in its own attempt, overtaken by the new one."""
    scene = Scene()
    scene.arrive(*history("queued provisioning running"))
    scene.arrive(*history("queued:lost provisioning running completed", attempt=2))
    scene.arrive(*history("completed", first=3))
    await scene.store()
    replayed = scene.replayed()
    assert dispositions(replayed)[1, 3] == "stale"
    stale = next(line for line in replayed.lines if line.disposition is EntryDisposition.STALE)
    assert (stale.rank, stale.overtaken_by) == (8, (2, 0))
    assert [attempt.reason for attempt in replayed.attempts] == ["submitted", "lost"]


async def test_each_attempt_has_its_owner_and_its_reason():
    """A retried evaluation has two attempts, each with its owner and opening reason."""
    scene = Scene()
    scene.arrive(*history("queued provisioning retrying"))
    other = p.Provisioning(executor="executor-2", nonce="nonce-2")
    scene.arrive(*history("queued:retry provisioning running completed", attempt=2, provisioning=other))
    await scene.store()
    attempts = [(one.number, one.reason, one.owner) for one in scene.replayed().attempts]
    assert attempts == [(1, "submitted", "executor-1"), (2, "retry", "executor-2")]


async def test_an_illegal_event_is_rejected_with_the_reason():
    """The event is rejected at its sequence and listed as quarantined, with one arrival rank."""
    scene = Scene()
    scene.arrive(*history("queued provisioning completed"))
    await scene.store()
    replayed = scene.replayed()
    assert dispositions(replayed)[1, 2] == "rejected"
    assert replayed.lines[2].note == "provisioning does not accept completed at sequence 2"
    assert [(bad.reason, bad.rank) for bad in replayed.refusals] == [("illegal", 3)]
    assert replayed.arrivals == 3


async def test_a_conflict_follows_the_event_with_the_same_key():
    """The first entry is applied; the other body is a conflict, whichever server is read."""
    scene = Scene()
    scene.arrive(*history("queued provisioning"), event("failed", sequence=1))
    await scene.store()
    for origin in Origin:
        lines = [(line.event.type, line.disposition) for line in scene.replayed(origin).lines]
        assert lines[1:] == [
            ("provisioning", EntryDisposition.APPLIED),
            ("failed", EntryDisposition.CONFLICT),
        ]


async def test_an_undecodable_entry_has_an_arrival_rank():
    """Garbage takes a rank, so that the order of arrival is complete."""
    scene = Scene()
    queued, claim = history("queued provisioning")
    scene.arrive(queued)
    scene.arrive_garbage()
    scene.arrive(claim)
    await scene.store()
    replayed = scene.replayed()
    assert ranks(replayed) == [1, 3]
    assert [(bad.reason, bad.rank) for bad in replayed.refusals] == [("garbage", 2)]


async def test_entries_of_the_stream_that_postgres_lacks_are_pending():
    """Pending entries are marked, and the history has the cursor they will lead to."""
    scene = Scene()
    queued, claim, running, *_ = history(LIFE)
    scene.arrive(queued)
    await scene.store()
    scene.arrive(claim, running)
    replayed = scene.replayed()
    assert [line.pending for line in replayed.lines] == [False, True, True]
    assert replayed.cursor == Cursor(1, 0, Phase.QUEUED)
    assert replayed.ahead == Cursor(1, 2, Phase.RUNNING)


async def test_an_open_gap_has_its_missing_sequences_its_start_and_the_waiting_events():
    """Entries beyond an open gap wait, and change no state."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(*events[:2])
    await scene.store()
    scene.wait(seconds=3)
    since = scene.now
    scene.arrive(events[4], events[5], pace=1)
    await scene.store()
    replayed = scene.replayed()
    assert replayed.gap is not None
    assert (replayed.gap.missing, replayed.gap.since) == ((range(2, 4),), since)
    assert [waiting.type for waiting in replayed.gap.waiting] == ["scored", "completed"]
    assert [line.disposition for line in replayed.lines[2:]] == [
        EntryDisposition.WAITING,
        EntryDisposition.WAITING,
    ]
    assert replayed.ahead is None


async def test_an_attempt_without_its_opening_is_in_the_history():
    """Events of a higher attempt that was not opened yet wait for its sequence 0."""
    scene = Scene()
    scene.arrive(*history("queued provisioning retrying"), *history("provisioning", first=1, attempt=2))
    await scene.store()
    [_, second] = scene.replayed().attempts
    assert (second.reason, second.owner) == (None, None)
    assert second.gap is not None
    assert second.gap.missing == (range(1),)


@pytest.mark.parametrize("stored", [True, False])
async def test_the_stream_alone_gives_the_same_history(stored: bool):
    """Dispositions computed from the stream equal those of a storage worker."""
    scene = Scene()
    scene.arrive(*reversed(history("queued provisioning retrying")))
    scene.arrive(*history("queued:retry provisioning running completed", attempt=2))
    scene.arrive(*history("running", first=2))
    if stored:
        await scene.store()
    from_redis = scene.replayed(Origin.REDIS)
    assert dispositions(from_redis) == dispositions(scene.replayed())
    assert from_redis.cursor == Cursor(2, 3, Phase.COMPLETED)
    assert from_redis.scorecard is not None


async def test_the_stream_alone_bridges_as_a_storage_worker_would():
    """A gap older than the gap timeout is bridged, and marked as computed."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(*events[:2], events[5])
    assert scene.replayed(Origin.REDIS).gap is not None
    scene.wait(seconds=31)
    [bridge] = scene.replayed(Origin.REDIS).bridges
    assert (bridge.worked_out, bridge.waited) == (True, timedelta(seconds=30))


async def test_a_stream_written_again_after_a_loss_is_all_duplicates():
    """Re-appended entries are duplicates of those that Postgres has."""
    scene = Scene()
    events = history("queued provisioning running")
    scene.arrive(*events)
    await scene.store()
    del scene.world.log._streams[scene.evaluation_id]
    scene.wait(seconds=5)
    scene.arrive(*events)
    replayed = scene.replayed()
    assert [line.disposition for line in replayed.lines] == [
        EntryDisposition.APPLIED,
        EntryDisposition.DUPLICATE,
    ] * 3
    assert replayed.is_stored


async def test_an_evaluation_without_entries_is_not_known():
    """A history without entries and rejected entries is not known."""
    assert not Scene().replayed().is_known


async def test_an_evaluation_with_quarantined_entries_only_is_known():
    """The history is known, though it has no attempts."""
    scene = Scene()
    scene.arrive_garbage()
    await scene.store()
    replayed = scene.replayed(Origin.POSTGRES)
    assert replayed.is_known
    assert replayed.attempts == ()
