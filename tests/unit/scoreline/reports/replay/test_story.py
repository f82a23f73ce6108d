"""What a replay tells of an evaluation: given what arrived and what was stored, then these lines."""

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
    """Say in which order the events arrived, in the order of the events."""
    return [line.rank for line in replayed.lines]


async def test_a_history_in_order_is_told_in_order():
    """Nothing is remarkable: every event applied, in place, and the scorecard at the end."""
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
    """Reordered: the lines are in order of sequence, and the nearest overtaker is named."""
    scene = Scene()
    queued, claim, running, responded, scored, completed = history(LIFE)
    scene.arrive(queued, responded, running, claim, completed, scored)
    await scene.store()
    replayed = scene.replayed()
    assert [line.event.sequence for line in replayed.lines] == [0, 1, 2, 3, 4, 5]
    assert ranks(replayed) == [1, 4, 3, 2, 6, 5]
    overtaken = {line.event.sequence: line.overtaken_by for line in replayed.lines if line.overtaken_by}
    assert overtaken == {1: (1, 2), 2: (1, 3), 4: (1, 5)}


async def test_a_duplicate_stands_beside_the_event_it_repeats():
    """Only the stream knows of duplicates: with it they are told, without it they are not."""
    scene = Scene()
    queued, claim, *_ = history(LIFE)
    scene.arrive(queued, claim, queued)
    await scene.store()
    told = [(line.event.sequence, line.disposition) for line in scene.replayed().lines]
    assert told == [
        (0, EntryDisposition.APPLIED),
        (0, EntryDisposition.DUPLICATE),
        (1, EntryDisposition.APPLIED),
    ]
    assert len(scene.replayed(Origin.POSTGRES).lines) == 2


async def test_a_bridged_gap_says_what_was_missing_and_how_long_was_waited():
    """The bridge is told with its missing stretch, its closing event and the wait."""
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


async def test_a_late_original_is_told_as_late_and_by_its_bridge():
    """What arrives after the bridge is in its place, changed nothing, and the bridge knows of it."""
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


async def test_words_of_a_replaced_attempt_are_stale():
    """A fenced executor's late completion is told under its own attempt, after the one that replaced it."""
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


async def test_each_attempt_names_its_owner_and_its_reason():
    """Retried: two attempts, two owners, and why the second was opened."""
    scene = Scene()
    scene.arrive(*history("queued provisioning retrying"))
    other = p.Provisioning(executor="executor-2", nonce="nonce-2")
    scene.arrive(*history("queued:retry provisioning running completed", attempt=2, provisioning=other))
    await scene.store()
    told = [(one.number, one.reason, one.owner) for one in scene.replayed().attempts]
    assert told == [(1, "submitted", "executor-1"), (2, "retry", "executor-2")]


async def test_an_illegal_event_is_told_with_the_reason():
    """Rejected in its place, and listed in the quarantine: the same entry, one place in the order."""
    scene = Scene()
    scene.arrive(*history("queued provisioning completed"))
    await scene.store()
    replayed = scene.replayed()
    assert dispositions(replayed)[1, 2] == "rejected"
    assert replayed.lines[2].note == "provisioning does not accept completed at sequence 2"
    assert [(bad.reason, bad.rank) for bad in replayed.refusals] == [("illegal", 3)]
    assert replayed.arrivals == 3


async def test_a_conflict_is_told_beside_the_event_whose_key_it_has():
    """The first stands; the other body is a line of its own, from the quarantine alone as well."""
    scene = Scene()
    scene.arrive(*history("queued provisioning"), event("failed", sequence=1))
    await scene.store()
    for origin in Origin:
        told = [(line.event.type, line.disposition) for line in scene.replayed(origin).lines]
        assert told[1:] == [
            ("provisioning", EntryDisposition.APPLIED),
            ("failed", EntryDisposition.CONFLICT),
        ]


async def test_what_can_not_be_read_has_its_place_in_the_order_of_arrival():
    """Garbage takes a rank, so that what arrived around it can be seen."""
    scene = Scene()
    queued, claim = history("queued provisioning")
    scene.arrive(queued)
    scene.arrive_garbage()
    scene.arrive(claim)
    await scene.store()
    replayed = scene.replayed()
    assert ranks(replayed) == [1, 3]
    assert [(bad.reason, bad.rank) for bad in replayed.refusals] == [("garbage", 2)]


async def test_what_the_stream_has_beyond_postgres_is_not_stored_yet():
    """In flight: the next events are told with the state they will lead to."""
    scene = Scene()
    queued, claim, running, *_ = history(LIFE)
    scene.arrive(queued)
    await scene.store()
    scene.arrive(claim, running)
    replayed = scene.replayed()
    assert [line.pending for line in replayed.lines] == [False, True, True]
    assert replayed.cursor == Cursor(1, 0, Phase.QUEUED)
    assert replayed.ahead == Cursor(1, 2, Phase.RUNNING)


async def test_an_open_gap_names_what_is_missing_since_when_and_what_waits():
    """In flight with a hole: what lies beyond waits, and changes nothing."""
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


async def test_an_attempt_whose_opening_is_missing_is_told_all_the_same():
    """Events of a higher attempt that was not opened yet wait for its sequence 0."""
    scene = Scene()
    scene.arrive(*history("queued provisioning retrying"), *history("provisioning", first=1, attempt=2))
    await scene.store()
    [_, second] = scene.replayed().attempts
    assert (second.reason, second.owner) == (None, None)
    assert second.gap is not None
    assert second.gap.missing == (range(1),)


@pytest.mark.parametrize("stored", [True, False])
async def test_the_stream_alone_tells_the_same_story(stored: bool):
    """Verdicts worked out from the stream are those a storage worker gave."""
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


async def test_the_stream_alone_bridges_as_a_worker_would():
    """A gap older than the patience is told as bridged, and as worked out."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(*events[:2], events[5])
    assert scene.replayed(Origin.REDIS).gap is not None
    scene.wait(seconds=31)
    [bridge] = scene.replayed(Origin.REDIS).bridges
    assert (bridge.worked_out, bridge.waited) == (True, timedelta(seconds=30))


async def test_a_stream_written_again_after_a_loss_is_all_duplicates():
    """A tail put back has new places; what Postgres has keeps its own."""
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


async def test_an_evaluation_nobody_knows_is_not_known():
    """No lines, no refusals: the command must look for what was resolved."""
    assert not Scene().replayed().is_known


async def test_one_that_only_the_quarantine_knows_is_known():
    """There is something to show, though no event."""
    scene = Scene()
    scene.arrive_garbage()
    await scene.store()
    replayed = scene.replayed(Origin.POSTGRES)
    assert replayed.is_known
    assert replayed.attempts == ()
