"""The executors that can serve a batch; an unreachable Redis is a status, not an error."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from eventlog.redis_streams import connect
from projections.queries.batches import BatchSnapshot
from scoreline.reports.lanes import LaneWait, read_lanes
from scoreline.servers.availability import Unavailable
from scoreline.servers.redis_check import check_redis
from taskqueue.executor_registry import ExecutorInstance, ExecutorRegistry
from taskqueue.keys import EXECUTORS
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from taskqueue.tasks import QueueUnavailable


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """The live executors; `unavailable` is the reason why they are not known."""

    live: tuple[ExecutorInstance, ...] = ()
    unavailable: str = ""
    heartbeats: Mapping[str, float] = field(default_factory=dict)
    """The last heartbeat of each instance, on Redis' clock."""

    def serving(self, batch: BatchSnapshot) -> tuple[ExecutorInstance, ...]:
        """Return the executors that claim tasks of a batch."""
        return tuple(
            each
            for each in self.live
            if each.eligibility.covers(run_id=batch.run_id, project=batch.project, requires=batch.requires)
        )


FLEET_NOT_READ = FleetStatus(unavailable="Redis was not read.")


@dataclass(slots=True)
class FleetReader:
    """Reads the fleet's status repeatedly; an unreachable server may answer the next time."""

    redis_url: str
    executor_registry: ExecutorRegistry
    redis: Redis

    async def read(self) -> FleetStatus:
        """Return the live executors."""
        try:
            live = tuple(await self.executor_registry.live())
            heartbeats: list[Any] = await self.redis.zrange(EXECUTORS, 0, -1, withscores=True)
            return FleetStatus(live, heartbeats={name.decode(): at for name, at in heartbeats})
        except (QueueUnavailable, RedisError):
            return FleetStatus(unavailable=await self._why())

    async def lanes(self, batch_id: str) -> tuple[LaneWait, ...]:
        """Return what the lanes of a batch wait for."""
        return await read_lanes(self.redis, batch_id)

    async def _why(self) -> str:
        # Not the driver's message: it may quote parts of the URL.
        try:
            await check_redis(self.redis_url)
        except Unavailable as problem:
            return str(problem)
        return "Redis did not answer."


@asynccontextmanager
async def fleet_reader(redis_url: str) -> AsyncIterator[FleetReader]:
    """Open a reader of the fleet's status."""
    try:
        redis = connect(redis_url, max_connections=1)
    except ValueError:
        await check_redis(redis_url)  # names the form of a URL
        raise
    async with redis:
        yield FleetReader(redis_url, RedisExecutorRegistry(redis), redis)
