"""Which executors are there to work on a batch; that Redis does not answer is a finding, not an error."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from eventlog.redis_streams import connect
from scoreline.preflight import Unavailable, check_redis
from taskqueue.presence import Attendance, Presence
from taskqueue.redis_presence import RedisAttendance
from taskqueue.tasks import QueueUnavailable

GONE = "Redis does not answer any more."


@dataclass(frozen=True, slots=True)
class Crew:
    """The executors that are alive; `away` says in words why that is not known."""

    present: tuple[Presence, ...] = ()
    away: str = ""

    def serving(self, project: str) -> tuple[Presence, ...]:
        """Return those that take tasks of a project."""
        return tuple(each for each in self.present if each.project in {None, project})


NOT_ASKED = Crew(away="Redis was not asked.")


@dataclass(slots=True)
class CrewReader:
    """Asks again and again; where the server was away at first, so it stays."""

    attendance: Attendance | None
    away: str = ""

    async def read(self) -> Crew:
        """Say who is there."""
        if self.attendance is None:
            return Crew(away=self.away)
        try:
            return Crew(tuple(await self.attendance.present()))
        except QueueUnavailable:
            return Crew(away=GONE)


@asynccontextmanager
async def crew_reader(redis_url: str) -> AsyncIterator[CrewReader]:
    """Lend somebody to ask who is there."""
    try:
        await check_redis(redis_url)
    except Unavailable as problem:
        yield CrewReader(None, str(problem))
        return
    async with connect(redis_url, max_connections=1) as redis:
        yield CrewReader(RedisAttendance(redis))
