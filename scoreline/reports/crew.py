"""Which executors are there to work on a batch; that Redis does not answer is a finding, not an error."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from eventlog.redis_streams import connect
from projections.queries.batches import BatchSnapshot
from scoreline.reports.lanes import LaneWait, read_lanes
from scoreline.servers.availability import Unavailable, check_redis
from taskqueue.executor_registry import ExecutorInstance, ExecutorRegistry
from taskqueue.keys import EXECUTORS
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from taskqueue.tasks import QueueUnavailable


@dataclass(frozen=True, slots=True)
class Crew:
    """The executors that are alive; `away` says in words why that is not known."""

    present: tuple[ExecutorInstance, ...] = ()
    away: str = ""
    beats: Mapping[str, float] = field(default_factory=dict)
    """When each instance was last heard of, on Redis' clock."""

    def serving(self, batch: BatchSnapshot) -> tuple[ExecutorInstance, ...]:
        """Return those that take tasks of a batch."""
        return tuple(
            each
            for each in self.present
            if each.eligibility.covers(run_id=batch.run_id, project=batch.project, requires=batch.requires)
        )


NOT_ASKED = Crew(away="Redis was not asked.")


@dataclass(slots=True)
class CrewReader:
    """Asks again and again; a server that is away may be back the next time."""

    redis_url: str
    executor_registry: ExecutorRegistry
    redis: Redis

    async def read(self) -> Crew:
        """Say who is there."""
        try:
            present = tuple(await self.executor_registry.live())
            beats: list[Any] = await self.redis.zrange(EXECUTORS, 0, -1, withscores=True)
            return Crew(present, beats={name.decode(): at for name, at in beats})
        except (QueueUnavailable, RedisError):
            return Crew(away=await self._why())

    async def lanes(self, batch_id: str) -> tuple[LaneWait, ...]:
        """Say what the lanes of a batch wait for."""
        return await read_lanes(self.redis, batch_id)

    async def _why(self) -> str:
        # Not the driver's words: they may quote pieces of the URL.
        try:
            await check_redis(self.redis_url)
        except Unavailable as problem:
            return str(problem)
        return "Redis did not say."


@asynccontextmanager
async def crew_reader(redis_url: str) -> AsyncIterator[CrewReader]:
    """Lend somebody to ask who is there."""
    try:
        redis = connect(redis_url, max_connections=1)
    except ValueError:
        await check_redis(redis_url)  # says how a URL is written
        raise
    async with redis:
        yield CrewReader(redis_url, RedisExecutorRegistry(redis), redis)
