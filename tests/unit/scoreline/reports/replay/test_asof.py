"""A replayed cut at a moment: what had arrived by then, and what the log came to."""

import asyncio
from datetime import UTC, datetime, time, timedelta
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from scoreline.reports.replay.moment import NoSuchMoment, parse_moment
from scoreline.reports.replay.past_state import cut
from scoreline.reports.replay.timeline_entry import EntryDisposition
from tests.builders import event, history
from tests.replaying import Scene, TimedWorld, dispositions
from tests.storing import store_badly

LIFE = "queued provisioning running responded scored completed"


async def reordered() -> Scene:
    """Arrivals 0 3 2 1 5 4, a second apart, all stored."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(*(events[n] for n in (0, 3, 2, 1, 5, 4)), pace=1)
    await scene.store()
    return scene


async def bridged() -> Scene:
    """0 1 5 arrive, the gap is bridged after 31 s, and 2 arrives 10 s later."""
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
    """What had arrived out of order was waiting then, and what filled the hole let it go on."""
    replayed, then = cut((await reordered()).replayed(), number)
    assert then.cursor == state
    assert [line.event.sequence for line in then.waiting] == waiting
    assert (then.arrived, then.of, len(replayed.lines)) == (number, 6, number)
    assert (replayed.scorecard is not None) == (number == 6)


async def test_owner_and_answer_as_of_then():
    """An answer is on record from its arrival on, though its event still waits."""
    replayed = (await reordered()).replayed()
    _, before = cut(replayed, 1)
    _, with_answer = cut(replayed, 2)
    _, owned = cut(replayed, 4)
    assert (before.answer, before.owner) == (None, None)
    assert with_answer.answer is not None
    assert (with_answer.answer.event.type, with_answer.owner) == ("responded", None)
    assert owned.owner == "executor-1"


async def test_a_time_cuts_where_the_number_does():
    """The moment of the third arrival, and any before the fourth, are the same."""
    replayed = (await reordered()).replayed()
    third = next(line for line in replayed.lines if line.rank == 3).arrived_at
    for at in (third, third + timedelta(milliseconds=999), third.timetz()):
        assert cut(replayed, at)[1].arrived == 3


async def test_a_bridge_is_there_only_once_it_was_made():
    """Before it the closing event waits; from then on it is applied, and a late original is late."""
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


async def test_a_number_takes_all_that_followed_until_the_next_arrival():
    """As of the third entry the bridge is made: nothing else arrived before it."""
    replayed = (await bridged()).replayed()
    assert cut(replayed, 3)[1].cursor.phase is Phase.COMPLETED


async def test_a_bridge_before_the_next_attempt_is_made_again_in_its_place():
    """The gap was bridged to a `retrying` before attempt 2 opened; as of the end that is still so."""
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
    """The quarantine as of then holds what had arrived by then."""
    scene = Scene()
    scene.arrive(*history("queued"))
    scene.arrive_garbage()
    scene.arrive(*history("provisioning", first=1), event("failed", sequence=1))
    await scene.store()
    replayed, then = cut(scene.replayed(), 2)
    assert (then.cursor.phase, [bad.reason for bad in replayed.refusals]) == (Phase.QUEUED, ["garbage"])
    assert [line.disposition for line in cut(scene.replayed(), 4)[0].lines][-1] is EntryDisposition.CONFLICT


@pytest.mark.parametrize("number", [0, 7, 1_000_000])
async def test_a_number_out_of_range_is_refused_with_the_range(number: int):
    """The message says what there is."""
    with pytest.raises(NoSuchMoment, match="1 to 6"):
        cut((await reordered()).replayed(), number)


async def test_a_time_before_the_first_arrival_is_refused():
    """There is nothing to show; the message says when it began."""
    replayed = (await reordered()).replayed()
    with pytest.raises(NoSuchMoment, match="the first entry came at"):
        cut(replayed, datetime(2000, 1, 1, tzinfo=UTC))


async def test_a_time_of_day_past_midnight_belongs_to_the_next_day():
    """An evaluation that ran over midnight can be cut after it."""
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
def test_moments_are_read_as_people_write_them(text: str, moment: object):
    """A number, a time of day, a time with or without its zone."""
    assert parse_moment(text) == moment


@pytest.mark.parametrize(
    "text", ["", "soon", "-1", "25:00:00", "4.5", "2026-13-01", "0001-01-01T00:00+05:00"]
)
def test_what_is_no_moment_is_refused(text: str):
    """The command turns this into a usage error."""
    with pytest.raises(ValueError, match="is no moment"):
        parse_moment(text)


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_as_of_now_is_what_was_stored(random: Random):
    """Whatever arrived, walking it all again comes to the verdicts and the state that Postgres has."""

    async def lived() -> TimedWorld:
        world = TimedWorld()
        await store_badly(random, world, world.storage())
        return world

    world = asyncio.run(lived())
    for evaluation_id, held in world.tables.evaluations.items():
        replayed = Scene(world, evaluation_id).replayed()
        again, then = cut(replayed, replayed.arrivals)
        assert dispositions(again) == dispositions(replayed)
        assert then.cursor == held.row.cursor
        for number in range(1, replayed.arrivals):
            assert cut(replayed, number)[1].arrived == number
