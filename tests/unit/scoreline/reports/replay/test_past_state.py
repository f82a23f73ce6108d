"""A history cut at a moment: the entries that had arrived, and the state they led to."""

import asyncio
from datetime import UTC, datetime, time, timedelta
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from scoreline.reports.replay.moment import parse_moment
from scoreline.reports.replay.past_state import cut
from scoreline.reports.replay.timeline_entry import EntryDisposition
from tests.builders import event, history
from tests.replaying import Scene, TimedWorld, dispositions
from tests.storage_world import store_badly
from tests.unit.scoreline.reports.replay.past_histories import LIFE, reordered


async def bridged() -> Scene:
    """Return a scene where 0 1 5 arrive, the gap is bridged after 31 s, and 2 arrives 10 s later."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(events[0], events[1], events[5])
    scene.wait(seconds=31)
    await scene.store()
    scene.wait(seconds=10)
    scene.arrive(events[2])
    await scene.store()
    return scene


@pytest.mark.parametrize(
    ("number", "state", "waiting"),
    [
        (1, Cursor(1, 0, Phase.QUEUED), []),
        (2, Cursor(1, 0, Phase.QUEUED), [3]),
        (3, Cursor(1, 0, Phase.QUEUED), [2, 3]),
        (4, Cursor(1, 3, Phase.RESPONDED), []),
        (5, Cursor(1, 3, Phase.RESPONDED), [5]),
        (6, Cursor(1, 5, Phase.COMPLETED), []),
    ],
)
async def test_the_state_as_of_each_arrival(number: int, state: Cursor, waiting: list[int]):
    """Entries beyond a gap wait until the missing one arrives, then all are applied."""
    replayed, then = cut((await reordered()).replayed(), number)
    assert then.cursor == state
    assert [line.event.sequence for line in then.waiting] == waiting
    assert (then.arrived, then.of, len(replayed.lines)) == (number, 6, number)
    assert (replayed.scorecard is not None) == (number == 6)


async def test_owner_and_answer_as_of_then():
    """An answer counts from its arrival, though its event still waits; the owner from its claim."""
    replayed = (await reordered()).replayed()
    _, before = cut(replayed, 1)
    _, with_answer = cut(replayed, 2)
    _, owned = cut(replayed, 4)
    assert (before.answer, before.owner) == (None, None)
    assert with_answer.answer is not None
    assert (with_answer.answer.event.type, with_answer.owner) == ("responded", None)
    assert owned.owner == "executor-1"


async def test_a_time_cuts_like_the_number_of_entries():
    """Any time from the third arrival to before the fourth cuts at entry 3."""
    replayed = (await reordered()).replayed()
    third = next(line for line in replayed.lines if line.rank == 3).arrived_at
    for at in (third, third + timedelta(milliseconds=999), third.timetz()):
        assert cut(replayed, at)[1].arrived == 3


async def test_a_bridge_applies_only_from_its_time():
    """Before the bridge the closing event waits; afterwards it is applied, and a late original is late."""
    scene = await bridged()
    replayed = scene.replayed()
    made = replayed.bridges[0].at
    waiting, then = cut(replayed, made - timedelta(seconds=1))
    assert (then.cursor.phase, waiting.bridges) == (Phase.PROVISIONING, ())
    assert waiting.gap is not None
    assert waiting.gap.missing == (range(2, 5),)
    ended, then = cut(replayed, made + timedelta(seconds=1))
    assert (then.cursor, len(ended.bridges)) == (Cursor(1, 5, Phase.COMPLETED), 1)
    assert ended.scorecard is not None
    assert ended.scorecard.bridged
    assert dispositions(cut(replayed, 4)[0]) == dispositions(replayed)


async def test_a_number_includes_all_changes_until_the_next_arrival():
    """As of entry 3 the gap is bridged, since no entry arrived before the bridge."""
    replayed = (await bridged()).replayed()
    assert cut(replayed, 3)[1].cursor.phase is Phase.COMPLETED


async def test_a_bridge_before_the_next_attempt_is_replayed():
    """A gap that was bridged to `retrying` before attempt 2 is bridged in the replay, too."""
    scene = Scene()
    events = history("queued provisioning running retrying")
    scene.arrive(events[0], events[1], events[3])
    scene.wait(seconds=31)
    await scene.store()
    scene.arrive(*history("queued:retry provisioning running completed", attempt=2))
    await scene.store()
    replayed = scene.replayed()
    again, then = cut(replayed, replayed.arrivals)
    assert dispositions(again) == dispositions(replayed)
    assert (then.cursor, len(again.bridges)) == (Cursor(2, 3, Phase.COMPLETED), 1)


async def test_garbage_counts_as_an_arrival_and_changes_nothing():
    """Rejected entries as of a moment are those that had arrived by then."""
    scene = Scene()
    scene.arrive(*history("queued"))
    scene.arrive_garbage()
    scene.arrive(*history("provisioning", first=1), event("failed", sequence=1))
    await scene.store()
    replayed, then = cut(scene.replayed(), 2)
    assert (then.cursor.phase, [bad.reason for bad in replayed.refusals]) == (Phase.QUEUED, ["garbage"])
    assert [line.disposition for line in cut(scene.replayed(), 4)[0].lines][-1] is EntryDisposition.CONFLICT


async def test_a_time_of_day_past_midnight_belongs_to_the_next_day():
    """A time of day after midnight cuts an evaluation that ran over midnight."""
    scene = Scene()
    noon = datetime.fromtimestamp(scene.world.now_ms / 1000, UTC)
    almost_midnight = noon.replace(hour=23, minute=59, second=59, microsecond=0)
    scene.wait(seconds=(almost_midnight - noon).total_seconds())
    scene.arrive(*history("queued provisioning running"), pace=1)
    assert cut(scene.replayed(), time(0, 0, 0, 500_000, UTC))[1].arrived == 2


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("4", 4),
        ("09:30:00.5", time(9, 30, 0, 500_000, UTC)),
        ("2026-11-16T09:30:00", datetime(2026, 11, 16, 9, 30, tzinfo=UTC)),
        ("2026-11-16T09:30:00Z", datetime(2026, 11, 16, 9, 30, tzinfo=UTC)),
        ("2026-11-16 10:30+01:00", datetime(2026, 11, 16, 9, 30, tzinfo=UTC)),
    ],
)
def test_moments_are_parsed_from_text(text: str, moment: object):
    """A moment is a number, a time of day, or a time with or without a zone."""
    assert parse_moment(text) == moment


@pytest.mark.parametrize(
    "text", ["", "soon", "-1", "25:00:00", "4.5", "2026-13-01", "0001-01-01T00:00+05:00"]
)
def test_invalid_moments_are_rejected(text: str):
    """Text that is no moment raises ValueError, which becomes a usage error."""
    with pytest.raises(ValueError, match="is no moment"):
        parse_moment(text)


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_cut_at_the_last_entry_equals_the_stored_state(random: Random):
    """A replay of all entries leads to the dispositions and the cursor that Postgres has."""

    async def stored() -> TimedWorld:
        world = TimedWorld()
        await store_badly(random, world, world.storage())
        return world

    world = asyncio.run(stored())
    for evaluation_id, held in world.tables.evaluations.items():
        replayed = Scene(world, evaluation_id).replayed()
        again, then = cut(replayed, replayed.arrivals)
        assert dispositions(again) == dispositions(replayed)
        assert then.cursor == held.row.cursor
        for number in range(1, replayed.arrivals):
            assert cut(replayed, number)[1].arrived == number
