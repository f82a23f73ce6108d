"""Executors whose process has died are taken off the attendance, and nobody else is."""

import pytest

from scoreline.batches.departed import strike_off
from taskqueue.memory import MemoryAttendance
from taskqueue.presence import Presence

DEAD = Presence("b-0-aaaa", "b-0", "here", 42)


@pytest.mark.parametrize(
    "other",
    [
        Presence("b-1-bbbb", "b-1", "here", 43),
        Presence("b-0-cccc", "b-0", "there", 42),
        Presence("x-0-dddd", "x-0", "here", 42),
        Presence("bb-0-eeee", "bb-0", "here", 42),
    ],
    ids=["another process", "another host", "another fleet", "a fleet whose name begins alike"],
)
async def test_only_the_dead_are_struck_off(other: Presence) -> None:
    """The dead one goes at once, a heartbeat before its time; others stay."""
    attendance = MemoryAttendance(lambda: 0.0)
    for presence in (DEAD, other):
        await attendance.beat(presence)
    assert await strike_off(attendance, fleet="b", host="here", is_dead=(42).__eq__) == [DEAD.incarnation]
    assert await attendance.present() == [other]
